//! A connection that listens: what it is told, and what it says between and in its answers.
//!
//! It is nobody's server: no client's byte reaches it but names of channels, quoted. Order of calls: [`tell`] or
//! [`ask`] writes one question; each message goes into [`Listening::handle`], and the next question waits until
//! that has answered [`Said::Ready`] or [`Said::Refused`]. Notifications come at any time.

use wire::server::{TransactionStatus, tag};

use crate::login::{LoginFailed, Message};

/// Writes one query that opens and closes channels. They take effect together, or not at all.
pub fn tell<'a>(
    out: &mut Vec<u8>,
    listen: impl Iterator<Item = &'a [u8]>,
    unlisten: impl Iterator<Item = &'a [u8]>,
) {
    let mut text = Vec::new();
    for channel in listen {
        text.extend_from_slice(b"LISTEN ");
        quote(&mut text, channel);
    }
    for channel in unlisten {
        text.extend_from_slice(b"UNLISTEN ");
        quote(&mut text, channel);
    }
    wire::encode::query(out, &text);
}

/// Writes a question that costs nothing: does it live?
pub fn ask(out: &mut Vec<u8>) {
    wire::encode::query(out, b"");
}

fn quote(text: &mut Vec<u8>, name: &[u8]) {
    text.push(b'"');
    for &byte in name {
        if byte == b'"' {
            text.push(b'"');
        }
        text.push(byte);
    }
    text.extend_from_slice(b"\";");
}

/// What a message comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// Nothing that matters.
    Nothing,
    /// The question is answered.
    Ready,
    /// The question was refused, in these words.
    Refused(LoginFailed),
    /// Somebody has notified.
    Notification {
        /// The process that did.
        process_id: u32,
        /// On which channel.
        channel: &'a [u8],
        /// What he says.
        payload: &'a [u8],
    },
    /// The connection is at its end, for this reason.
    End(LoginFailed),
}

/// A message of this type does not belong where it came, or is not of the form its type demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit(pub u8);

/// The state of the conversation.
#[derive(Debug, Default)]
pub struct Listening {
    is_asked: bool,
    refused: Option<LoginFailed>,
}

impl Listening {
    /// A question was written.
    pub fn asked(&mut self) {
        self.is_asked = true;
    }

    /// Takes the server's next message.
    ///
    /// # Errors
    /// What the protocol does not allow here: the connection must be closed.
    pub fn handle<'a>(&mut self, message: Message<'a>) -> Result<Said<'a>, Unfit> {
        let unfit = Unfit(message.tag);
        match message.tag {
            tag::NOTIFICATION_RESPONSE => {
                let (process_id, channel, payload) =
                    wire::server::notification(message.body).map_err(|_| unfit)?;
                Ok(Said::Notification { process_id, channel, payload })
            }
            tag::NOTICE_RESPONSE | tag::PARAMETER_STATUS => Ok(Said::Nothing),
            tag::ERROR_RESPONSE => {
                let failed = LoginFailed::read(message.body);
                if !self.is_asked || failed.severity != "ERROR" {
                    return Ok(Said::End(failed));
                }
                self.refused = Some(failed);
                Ok(Said::Nothing)
            }
            tag::COMMAND_COMPLETE | tag::EMPTY_QUERY_RESPONSE if self.is_asked && self.refused.is_none() => {
                Ok(Said::Nothing)
            }
            tag::READY_FOR_QUERY if self.is_asked => {
                if wire::server::ready_for_query(message.body) != Ok(TransactionStatus::Idle) {
                    return Err(unfit);
                }
                self.is_asked = false;
                Ok(self.refused.take().map_or(Said::Ready, Said::Refused))
            }
            _ => Err(unfit),
        }
    }
}
