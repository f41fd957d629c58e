//! Builders of messages, each appended to the caller's buffer.

use crate::server::TransactionStatus;
use crate::startup::Version;

/// A message being written: its length is filled in when the closure returns.
///
/// A body over `i32::MAX` cannot be framed; such a message is taken back and `false` returned, so that a
/// caller who renames something in a message of the largest size sends nothing rather than a lie.
pub fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) -> bool {
    let start = out.len();
    out.push(tag);
    finish(out, start, 1, body)
}

fn finish(out: &mut Vec<u8>, start: usize, tag_size: usize, body: impl FnOnce(&mut Vec<u8>)) -> bool {
    out.extend_from_slice(&[0; 4]);
    body(out);
    let Ok(length) = i32::try_from(out.len() - start - tag_size) else {
        out.truncate(start);
        return false;
    };
    out[start + tag_size..start + tag_size + 4].copy_from_slice(&length.to_be_bytes());
    true
}

/// Appends `text` and its zero byte. A zero within `text` ends it, as it would for the reader.
pub fn cstr(out: &mut Vec<u8>, text: &[u8]) {
    let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
    out.extend_from_slice(&text[..end]);
    out.push(0);
}

// What a client sends.

/// StartupMessage.
pub fn startup<'a>(
    out: &mut Vec<u8>,
    version: Version,
    parameters: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> bool {
    let start = out.len();
    finish(out, start, 0, |out| {
        out.extend_from_slice(&version.major.to_be_bytes());
        out.extend_from_slice(&version.minor.to_be_bytes());
        for (name, value) in parameters {
            cstr(out, name);
            cstr(out, value);
        }
        out.push(0);
    })
}

/// SSLRequest.
pub const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// CancelRequest.
pub fn cancel_request(out: &mut Vec<u8>, process_id: u32, key: &[u8]) {
    let start = out.len();
    finish(out, start, 0, |out| {
        out.extend_from_slice(&80_877_102_u32.to_be_bytes());
        out.extend_from_slice(&process_id.to_be_bytes());
        out.extend_from_slice(key);
    });
}

/// Query.
pub fn query(out: &mut Vec<u8>, text: &[u8]) -> bool {
    message(out, b'Q', |out| cstr(out, text))
}

/// Parse of a statement whose text and types are `rest`, as [`crate::client::Parse`] gives them.
pub fn parse(out: &mut Vec<u8>, name: &[u8], rest: &[u8]) -> bool {
    message(out, b'P', |out| {
        cstr(out, name);
        out.extend_from_slice(rest);
    })
}

/// Bind of text parameters, with text results.
pub fn bind_text(out: &mut Vec<u8>, portal: &[u8], statement: &[u8], values: &[Option<&[u8]>]) -> bool {
    message(out, b'B', |out| {
        cstr(out, portal);
        cstr(out, statement);
        out.extend_from_slice(&0_u16.to_be_bytes());
        out.extend_from_slice(&u16::try_from(values.len()).unwrap_or(u16::MAX).to_be_bytes());
        for value in values.iter().take(usize::from(u16::MAX)) {
            data_value(out, *value);
        }
        out.extend_from_slice(&0_u16.to_be_bytes());
    })
}

/// Describe (`D`) or Close (`C`) of a statement (`S`) or portal (`P`).
pub fn target(out: &mut Vec<u8>, tag: u8, kind: u8, name: &[u8]) -> bool {
    message(out, tag, |out| {
        out.push(kind);
        cstr(out, name);
    })
}

/// Execute of all rows.
pub fn execute(out: &mut Vec<u8>, portal: &[u8]) -> bool {
    message(out, b'E', |out| {
        cstr(out, portal);
        out.extend_from_slice(&0_u32.to_be_bytes());
    })
}

/// Sync.
pub fn sync(out: &mut Vec<u8>) {
    message(out, b'S', |_| {});
}

/// Terminate.
pub const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];

/// PasswordMessage with clear text or an md5 hash.
pub fn password(out: &mut Vec<u8>, text: &[u8]) -> bool {
    message(out, b'p', |out| cstr(out, text))
}

/// SASLInitialResponse.
pub fn sasl_initial(out: &mut Vec<u8>, mechanism: &str, data: &[u8]) -> bool {
    message(out, b'p', |out| {
        cstr(out, mechanism.as_bytes());
        out.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(data);
    })
}

/// SASLResponse.
pub fn sasl_response(out: &mut Vec<u8>, data: &[u8]) -> bool {
    message(out, b'p', |out| out.extend_from_slice(data))
}

// What a server sends.

/// AuthenticationOk.
pub fn auth_ok(out: &mut Vec<u8>) {
    auth(out, 0, &[]);
}

/// AuthenticationCleartextPassword.
pub fn auth_cleartext(out: &mut Vec<u8>) {
    auth(out, 3, &[]);
}

/// AuthenticationMD5Password.
pub fn auth_md5(out: &mut Vec<u8>, salt: [u8; 4]) {
    auth(out, 5, &salt);
}

/// AuthenticationSASL with the mechanisms offered.
pub fn auth_sasl(out: &mut Vec<u8>, mechanisms: &[&str]) {
    message(out, b'R', |out| {
        out.extend_from_slice(&10_u32.to_be_bytes());
        for mechanism in mechanisms {
            cstr(out, mechanism.as_bytes());
        }
        out.push(0);
    });
}

/// AuthenticationSASLContinue.
pub fn auth_sasl_continue(out: &mut Vec<u8>, data: &[u8]) {
    auth(out, 11, data);
}

/// AuthenticationSASLFinal.
pub fn auth_sasl_final(out: &mut Vec<u8>, data: &[u8]) {
    auth(out, 12, data);
}

fn auth(out: &mut Vec<u8>, kind: u32, data: &[u8]) {
    message(out, b'R', |out| {
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// ParameterStatus.
pub fn parameter_status(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    message(out, b'S', |out| {
        cstr(out, name);
        cstr(out, value);
    });
}

/// BackendKeyData.
pub fn backend_key(out: &mut Vec<u8>, process_id: u32, key: &[u8]) {
    message(out, b'K', |out| {
        out.extend_from_slice(&process_id.to_be_bytes());
        out.extend_from_slice(key);
    });
}

/// NegotiateProtocolVersion: the newest minor version spoken and the options not understood.
pub fn negotiate_protocol_version<'a>(
    out: &mut Vec<u8>,
    newest_minor: u16,
    options: impl ExactSizeIterator<Item = &'a [u8]>,
) {
    message(out, b'v', |out| {
        out.extend_from_slice(&(0x0003_0000 | u32::from(newest_minor)).to_be_bytes());
        out.extend_from_slice(&u32::try_from(options.len()).unwrap_or(u32::MAX).to_be_bytes());
        for option in options {
            cstr(out, option);
        }
    });
}

/// NotificationResponse. Neither text may hold a zero.
pub fn notification(out: &mut Vec<u8>, process_id: u32, channel: &[u8], payload: &[u8]) {
    message(out, b'A', |out| {
        out.extend_from_slice(&process_id.to_be_bytes());
        cstr(out, channel);
        cstr(out, payload);
    });
}

/// ReadyForQuery.
pub fn ready_for_query(out: &mut Vec<u8>, status: TransactionStatus) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status.byte()]);
}

/// ParseComplete.
pub const PARSE_COMPLETE: [u8; 5] = [b'1', 0, 0, 0, 4];
/// CloseComplete.
pub const CLOSE_COMPLETE: [u8; 5] = [b'3', 0, 0, 0, 4];
/// BindComplete.
pub const BIND_COMPLETE: [u8; 5] = [b'2', 0, 0, 0, 4];
/// NoData.
pub const NO_DATA: [u8; 5] = [b'n', 0, 0, 0, 4];
/// EmptyQueryResponse.
pub const EMPTY_QUERY: [u8; 5] = [b'I', 0, 0, 0, 4];

/// CommandComplete.
pub fn command_complete(out: &mut Vec<u8>, tag: &[u8]) {
    message(out, b'C', |out| cstr(out, tag));
}

/// One column of a RowDescription in text format, without a table.
pub struct Field<'a> {
    /// The column's name.
    pub name: &'a str,
    /// The type's oid.
    pub oid: u32,
    /// The type's width, -1 if it varies.
    pub width: i16,
}

/// RowDescription.
pub fn row_description<'a>(out: &mut Vec<u8>, fields: impl ExactSizeIterator<Item = Field<'a>>) {
    message(out, b'T', |out| {
        out.extend_from_slice(&u16::try_from(fields.len()).unwrap_or(u16::MAX).to_be_bytes());
        for field in fields {
            cstr(out, field.name.as_bytes());
            out.extend_from_slice(&0_u32.to_be_bytes());
            out.extend_from_slice(&0_u16.to_be_bytes());
            out.extend_from_slice(&field.oid.to_be_bytes());
            out.extend_from_slice(&field.width.to_be_bytes());
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            out.extend_from_slice(&0_u16.to_be_bytes());
        }
    });
}

/// DataRow of text values; `None` is NULL.
pub fn data_row<'a>(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = Option<&'a [u8]>>) {
    message(out, b'D', |out| {
        out.extend_from_slice(&u16::try_from(values.len()).unwrap_or(u16::MAX).to_be_bytes());
        for value in values {
            data_value(out, value);
        }
    });
}

fn data_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        Some(bytes) => {
            out.extend_from_slice(&i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

/// How bad a report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The session ends.
    Fatal,
    /// The statement ends.
    Error,
    /// Nothing ends, but something may be wrong.
    Warning,
    /// Nothing ends.
    Notice,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Severity::Fatal => "FATAL",
            Severity::Error => "ERROR",
            Severity::Warning => "WARNING",
            Severity::Notice => "NOTICE",
        }
    }
}

/// ErrorResponse, or NoticeResponse for [`Severity::Notice`] and [`Severity::Warning`].
pub fn report(out: &mut Vec<u8>, severity: Severity, code: &str, text: &str, detail: Option<&str>) {
    let tag = if matches!(severity, Severity::Notice | Severity::Warning) { b'N' } else { b'E' };
    message(out, tag, |out| {
        let mut field = |kind: u8, text: &str| {
            out.push(kind);
            cstr(out, text.as_bytes());
        };
        field(b'S', severity.word());
        field(b'V', severity.word());
        field(b'C', code);
        field(b'M', text);
        if let Some(detail) = detail {
            field(b'D', detail);
        }
        out.push(0);
    });
}
