//! One simple query whose answer is one short row of text. Does not know what is asked, nor on which connection.
//!
//! Order of calls: [`Question::begin`] writes it; each message of the server goes into [`Question::handle`] until it is
//! done.

use std::fmt;

use wire::server::{TransactionStatus, tag};

use super::fault::{LoginFailed, Tag};
use super::frame::Message;

/// The columns of the row; `None` for NULL.
pub type Columns = Vec<Option<Box<[u8]>>>;

/// A question that is being answered.
#[derive(Debug)]
pub struct Question {
    row: Option<Columns>,
    is_complete: bool,
    bytes_left: usize,
}

/// What comes next.
#[derive(Debug)]
pub enum QuestionStep {
    /// The next message goes here.
    Next(Question),
    /// The row. The connection can be used again.
    Done(Columns),
}

/// Why there is no answer. After any of these the connection must not be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionError {
    /// The server's own words.
    Failed(LoginFailed),
    /// A message of this type does not belong where it came, or has no such form.
    Unexpected(u8),
    /// Not one row, or the server never comes to an end, or is in a transaction afterwards.
    NotOneRow,
}

impl Question {
    /// Writes the question.
    pub fn begin(text: &str, out: &mut Vec<u8>) -> Question {
        // It is ours and short, so it fits.
        let _ = wire::encode::query(out, text.as_bytes());
        Question { row: None, is_complete: false, bytes_left: BYTES_MAX }
    }

    /// Takes the server's next message.
    ///
    /// # Errors
    /// Whatever is not the one row.
    pub fn handle(mut self, message: Message<'_>) -> Result<QuestionStep, QuestionError> {
        let size = wire::HEADER_SIZE + message.body.len();
        self.bytes_left = self.bytes_left.checked_sub(size).ok_or(QuestionError::NotOneRow)?;
        match message.tag {
            tag::NOTICE_RESPONSE
            | tag::NOTIFICATION_RESPONSE
            | tag::PARAMETER_STATUS
            | tag::ROW_DESCRIPTION => {}
            tag::ERROR_RESPONSE => return Err(QuestionError::Failed(LoginFailed::read(message.body))),
            tag::DATA_ROW if self.row.is_none() && !self.is_complete => {
                self.row = Some(row(message.body).ok_or(QuestionError::Unexpected(message.tag))?);
            }
            tag::COMMAND_COMPLETE if !self.is_complete => self.is_complete = true,
            tag::READY_FOR_QUERY if self.is_complete => {
                let is_idle = wire::server::ready_for_query(message.body)
                    .is_ok_and(|status| status == TransactionStatus::Idle);
                let row = self.row.filter(|_| is_idle).ok_or(QuestionError::NotOneRow)?;
                return Ok(QuestionStep::Done(row));
            }
            tag => return Err(QuestionError::Unexpected(tag)),
        }
        Ok(QuestionStep::Next(self))
    }
}

fn row(body: &[u8]) -> Option<Columns> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut columns = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        rest = behind;
        let column = match i32::from_be_bytes(*length) {
            -1 => None,
            length => {
                let (value, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                rest = behind;
                Some(value.into())
            }
        };
        columns.push(column);
    }
    rest.is_empty().then_some(columns)
}

impl fmt::Display for QuestionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuestionError::Failed(failed) => failed.fmt(f),
            QuestionError::Unexpected(tag) => write!(f, "unexpected message {} from server", Tag(*tag)),
            QuestionError::NotOneRow => f.write_str("the answer is not one row"),
        }
    }
}

impl std::error::Error for QuestionError {}

/// All that a server may send in answer.
const BYTES_MAX: usize = 64 << 10;
