//! Tables and outcomes as messages. Values are made of their text, in the format that the client asked for.

use std::borrow::Cow;

use model::{Cell, Column, ColumnType};
use wire::encode;
use wire::encode::Severity;
use wire::server::tag;

use crate::failure::Failure;
use crate::reply::Notice;

/// How a value travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// The formats of a portal's columns: none for text throughout, one for all columns, or one a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Formats(Vec<Format>);

impl Formats {
    /// Reads the codes of a Bind to a statement of so many columns.
    pub(crate) fn from_codes(
        codes: impl ExactSizeIterator<Item = u16>,
        columns: usize,
    ) -> Result<Formats, Failure> {
        if columns == 0 {
            return Ok(Formats::default());
        }
        if codes.len() > 1 && codes.len() != columns {
            return Err(Failure::InvalidFormats);
        }
        let format = |code| match code {
            0 => Ok(Format::Text),
            1 => Ok(Format::Binary),
            _ => Err(Failure::InvalidFormats),
        };
        codes.map(format).collect::<Result<_, _>>().map(Formats)
    }

    fn of(&self, column: usize) -> Format {
        match self.0.as_slice() {
            [] => Format::Text,
            [one] => *one,
            each => each.get(column).copied().unwrap_or(Format::Text),
        }
    }
}

/// RowDescription, or NoData if there are no columns.
pub(crate) fn description(out: &mut Vec<u8>, columns: &[Column], formats: &Formats) {
    let Some(count) = u16::try_from(columns.len()).ok().filter(|&count| count > 0) else {
        out.extend_from_slice(&encode::NO_DATA);
        return;
    };
    encode::message(out, tag::ROW_DESCRIPTION, |out| {
        out.extend_from_slice(&count.to_be_bytes());
        for (at, column) in columns.iter().enumerate() {
            encode::cstr(out, column.name.as_bytes());
            // Neither a table nor a column of one.
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&column.kind.oid().to_be_bytes());
            out.extend_from_slice(&column.kind.width().to_be_bytes());
            // No modifier of the type.
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            out.extend_from_slice(&(formats.of(at) as u16).to_be_bytes());
        }
    });
}

/// ParameterDescription of no parameters.
pub(crate) fn no_parameters(out: &mut Vec<u8>) {
    encode::message(out, tag::PARAMETER_DESCRIPTION, |out| out.extend_from_slice(&[0, 0]));
}

/// PortalSuspended.
pub(crate) fn portal_suspended(out: &mut Vec<u8>) {
    encode::message(out, tag::PORTAL_SUSPENDED, |_| {});
}

/// DataRow.
pub(crate) fn row(out: &mut Vec<u8>, columns: &[Column], formats: &Formats, cells: &[Cell]) {
    let values: Vec<Option<Cow<'_, [u8]>>> = columns
        .iter()
        .zip(cells)
        .enumerate()
        .map(|(at, (column, cell))| {
            let text = cell.as_deref()?;
            match formats.of(at) {
                Format::Text => Some(Cow::Borrowed(text.as_bytes())),
                Format::Binary => binary(column.kind, text),
            }
        })
        .collect();
    encode::data_row(out, values.iter().map(Option::as_deref));
}

/// ErrorResponse after which the session lives.
pub(crate) fn error(out: &mut Vec<u8>, failure: &Failure) {
    encode::report(out, Severity::Error, failure.sqlstate(), &failure.to_string(), failure.detail());
}

/// NoticeResponse.
pub(crate) fn notice(out: &mut Vec<u8>, notice: Notice) {
    let code = wire::sqlstate::SUCCESSFUL_COMPLETION;
    encode::report(out, Severity::Notice, code, notice.text(), notice.detail());
}

/// A value in its type's binary format; `None`, thus NULL, if the text is not one of the type.
fn binary(kind: ColumnType, text: &str) -> Option<Cow<'_, [u8]>> {
    match kind {
        ColumnType::Text | ColumnType::Bytea => Some(Cow::Borrowed(text.as_bytes())),
        ColumnType::Int4 => text.parse::<i32>().ok().map(|n| Cow::Owned(n.to_be_bytes().to_vec())),
        ColumnType::Int8 => text.parse::<i64>().ok().map(|n| Cow::Owned(n.to_be_bytes().to_vec())),
        ColumnType::Numeric => text.parse::<u64>().ok().map(|n| Cow::Owned(binary_numeric(n))),
    }
}

/// PostgreSQL's numeric: the number of digits to base 10,000, the first one's weight, sign, decimals; digits.
fn binary_numeric(mut value: u64) -> Vec<u8> {
    let mut digits = Vec::new();
    while value > 0 {
        digits.push((value % 10_000) as u16);
        value /= 10_000;
    }
    // At most five, as u64 has 20 decimal digits. The weight of zero is zero.
    let count = digits.len() as u16;
    let header = [count, count.saturating_sub(1), 0, 0];
    header.into_iter().chain(digits.into_iter().rev()).flat_map(u16::to_be_bytes).collect()
}
