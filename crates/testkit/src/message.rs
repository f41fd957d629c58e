//! Protocol messages, built and read by hand.
//!
//! On purpose not by the `wire` crate: what the pooler writes and reads is judged here by a second opinion.

use std::fmt;

/// One message of a server (or, in a fake server, of a client).
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// The type byte.
    pub tag: u8,
    /// What follows the length.
    pub body: Vec<u8>,
}

impl Message {
    /// A field of an ErrorResponse or NoticeResponse, by its letter.
    pub fn field(&self, letter: u8) -> Option<String> {
        let mut rest = self.body.as_slice();
        while let Some((&code, after)) = rest.split_first() {
            let end = after.iter().position(|&byte| byte == 0)?;
            if code == letter {
                return Some(String::from_utf8_lossy(&after[..end]).into_owned());
            }
            rest = &after[end + 1..];
        }
        None
    }

    /// SQLSTATE of an error or a notice; empty if there is none.
    pub fn sqlstate(&self) -> String {
        self.field(b'C').unwrap_or_default()
    }

    /// The primary text of an error or a notice; empty if there is none.
    pub fn text(&self) -> String {
        self.field(b'M').unwrap_or_default()
    }

    /// The zero-terminated strings of the body, as in ParameterStatus or CommandComplete.
    pub fn strings(&self) -> Vec<String> {
        self.body
            .split_inclusive(|&byte| byte == 0)
            .filter_map(|part| part.strip_suffix(&[0]))
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect()
    }

    /// The columns' values of a DataRow, as text.
    pub fn values(&self) -> Vec<Option<String>> {
        let mut reader = Reader { rest: &self.body };
        let count = reader.int16().unwrap_or(0).max(0);
        (0..count).map_while(|_| reader.value()).collect()
    }

    /// The columns' names of a RowDescription.
    pub fn columns(&self) -> Vec<String> {
        self.column_types().into_iter().map(|(name, _)| name).collect()
    }

    /// The columns' names and type ids of a RowDescription.
    pub fn column_types(&self) -> Vec<(String, u32)> {
        let mut reader = Reader { rest: &self.body };
        let count = reader.int16().unwrap_or(0).max(0);
        (0..count).map_while(|_| reader.column()).collect()
    }

    /// A 32-bit number at this place of the body.
    pub fn int32_at(&self, place: usize) -> Option<i32> {
        let bytes = self.body.get(place..place.checked_add(4)?)?;
        Some(i32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// The short form used in tests: `D`, `ZI`, `C(SELECT 1)`, `E(26000)`, `S(TimeZone)`, `R(0)`.
    pub fn letter(&self) -> String {
        let tag = char::from(self.tag);
        let first = || self.strings().into_iter().next().unwrap_or_default();
        match self.tag {
            b'Z' => format!("Z{}", self.body.first().map_or('?', |&status| char::from(status))),
            b'C' | b'S' => format!("{tag}({})", first()),
            b'E' | b'N' => format!("{tag}({})", self.sqlstate()),
            b'R' => format!("R({})", self.int32_at(0).unwrap_or(-1)),
            b'A' => {
                let channel = self.body.get(4..).unwrap_or_default();
                let end = channel.iter().position(|&byte| byte == 0).unwrap_or(channel.len());
                format!("A({})", String::from_utf8_lossy(&channel[..end]))
            }
            _ if self.tag.is_ascii_graphic() => tag.to_string(),
            other => format!("\\x{other:02x}"),
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.body[..self.body.len().min(200)];
        write!(f, "{}[{} bytes: {}]", self.letter(), self.body.len(), shown.escape_ascii())
    }
}

/// Whether an answer, in letters, is that of a query that was stopped: by chance even before its row description.
pub fn is_canceled(answer: &str, status: char) -> bool {
    let end = format!("E(57014) Z{status}");
    answer == end || answer == format!("T {end}")
}

/// The short form of several messages, e.g. `1 2 T D C(SELECT 1) ZI`; a run of nine or more as `D*1000`.
pub fn letters(messages: &[Message]) -> String {
    let mut parts = Vec::new();
    for group in messages.chunk_by(|a, b| a.letter() == b.letter()) {
        let letter = group[0].letter();
        if group.len() > 8 {
            parts.push(format!("{letter}*{}", group.len()));
        } else {
            parts.extend(std::iter::repeat_n(letter, group.len()));
        }
    }
    parts.join(" ")
}

/// The rows among these messages, as text.
pub fn rows(messages: &[Message]) -> Vec<Vec<Option<String>>> {
    messages.iter().filter(|message| message.tag == b'D').map(Message::values).collect()
}

/// Takes one whole message from the front of `bytes`: the message and what it took.
///
/// Panics on a length that cannot be: then the peer is broken, and a test should say so.
pub fn split(bytes: &[u8]) -> Option<(Message, usize)> {
    let (&tag, rest) = bytes.split_first()?;
    let length = i32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
    let body = usize::try_from(length).ok().and_then(|length| length.checked_sub(4));
    let body = body.unwrap_or_else(|| panic!("message {:?} has the length {length}", char::from(tag)));
    let end = 5 + body;
    Some((Message { tag, body: bytes.get(5..end)?.to_vec() }, end))
}

// What a client sends.

/// Any message: a tag, the right length, a body.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    message_of_length(tag, length_of(body), body)
}

/// A message with a length of your choice, right or wrong.
pub fn message_of_length(tag: u8, length: i32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// StartupMessage of any version; parameters in the order given.
pub fn startup(version: (u16, u16), parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&version.0.to_be_bytes());
    body.extend_from_slice(&version.1.to_be_bytes());
    for (name, value) in parameters {
        string(&mut body, name);
        string(&mut body, value);
    }
    body.push(0);
    untagged(&body)
}

pub fn ssl_request() -> Vec<u8> {
    untagged(&80_877_103_i32.to_be_bytes())
}

pub fn gssenc_request() -> Vec<u8> {
    untagged(&80_877_104_i32.to_be_bytes())
}

pub fn cancel_request(pid: u32, secret: &[u8]) -> Vec<u8> {
    let mut body = 80_877_102_i32.to_be_bytes().to_vec();
    body.extend_from_slice(&pid.to_be_bytes());
    body.extend_from_slice(secret);
    untagged(&body)
}

pub fn query(sql: &str) -> Vec<u8> {
    let mut body = Vec::new();
    string(&mut body, sql);
    message(b'Q', &body)
}

pub fn parse(name: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    let mut body = Vec::new();
    string(&mut body, name);
    string(&mut body, sql);
    body.extend_from_slice(&count_of(types.len()));
    for oid in types {
        body.extend_from_slice(&oid.to_be_bytes());
    }
    message(b'P', &body)
}

/// Bind with all parameters and results as text.
pub fn bind(portal: &str, statement: &str, parameters: &[Option<&str>]) -> Vec<u8> {
    let mut body = Vec::new();
    string(&mut body, portal);
    string(&mut body, statement);
    body.extend_from_slice(&count_of(0));
    body.extend_from_slice(&count_of(parameters.len()));
    for parameter in parameters {
        value(&mut body, parameter.map(str::as_bytes));
    }
    body.extend_from_slice(&count_of(0));
    message(b'B', &body)
}

pub fn describe_statement(name: &str) -> Vec<u8> {
    kind_and_name(b'D', b'S', name)
}

pub fn describe_portal(name: &str) -> Vec<u8> {
    kind_and_name(b'D', b'P', name)
}

/// Execute; a limit of 0 means all rows.
pub fn execute(portal: &str, rows_max: i32) -> Vec<u8> {
    let mut body = Vec::new();
    string(&mut body, portal);
    body.extend_from_slice(&rows_max.to_be_bytes());
    message(b'E', &body)
}

pub fn close_statement(name: &str) -> Vec<u8> {
    kind_and_name(b'C', b'S', name)
}

pub fn close_portal(name: &str) -> Vec<u8> {
    kind_and_name(b'C', b'P', name)
}

pub fn sync() -> Vec<u8> {
    message(b'S', &[])
}

pub fn flush() -> Vec<u8> {
    message(b'H', &[])
}

pub fn terminate() -> Vec<u8> {
    message(b'X', &[])
}

pub fn copy_data(bytes: &[u8]) -> Vec<u8> {
    message(b'd', bytes)
}

pub fn copy_done() -> Vec<u8> {
    message(b'c', &[])
}

pub fn copy_fail(why: &str) -> Vec<u8> {
    let mut body = Vec::new();
    string(&mut body, why);
    message(b'f', &body)
}

/// FunctionCall with all arguments and the result as text.
pub fn function_call(oid: u32, arguments: &[Option<&str>]) -> Vec<u8> {
    let mut body = oid.to_be_bytes().to_vec();
    body.extend_from_slice(&count_of(0));
    body.extend_from_slice(&count_of(arguments.len()));
    for argument in arguments {
        value(&mut body, argument.map(str::as_bytes));
    }
    body.extend_from_slice(&count_of(0));
    message(b'F', &body)
}

/// PasswordMessage.
pub fn password(password: &str) -> Vec<u8> {
    let mut body = Vec::new();
    string(&mut body, password);
    message(b'p', &body)
}

/// SASLInitialResponse.
pub fn sasl_initial(mechanism: &str, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    string(&mut body, mechanism);
    value(&mut body, Some(data));
    message(b'p', &body)
}

/// SASLResponse.
pub fn sasl_response(data: &[u8]) -> Vec<u8> {
    message(b'p', data)
}

/// Several messages as one write.
pub fn all(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.concat()
}

// Pieces of messages.

pub(crate) fn untagged(body: &[u8]) -> Vec<u8> {
    let mut bytes = length_of(body).to_be_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn string(body: &mut Vec<u8>, text: &str) {
    body.extend_from_slice(text.as_bytes());
    body.push(0);
}

pub(crate) fn value(body: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => body.extend_from_slice(&(-1_i32).to_be_bytes()),
        Some(bytes) => {
            body.extend_from_slice(&(length_of(bytes) - 4).to_be_bytes());
            body.extend_from_slice(bytes);
        }
    }
}

pub(crate) fn count_of(count: usize) -> [u8; 2] {
    u16::try_from(count).expect("a test has fewer values").to_be_bytes()
}

fn kind_and_name(tag: u8, kind: u8, name: &str) -> Vec<u8> {
    let mut body = vec![kind];
    string(&mut body, name);
    message(tag, &body)
}

fn length_of(body: &[u8]) -> i32 {
    i32::try_from(body.len() + 4).expect("a test's message is below 2 GB")
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    fn int16(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    fn value(&mut self) -> Option<Option<String>> {
        let length = self.take().map(i32::from_be_bytes)?;
        if length < 0 {
            return Some(None);
        }
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(Some(String::from_utf8_lossy(bytes).into_owned()))
    }

    fn column(&mut self) -> Option<(String, u32)> {
        let end = self.rest.iter().position(|&byte| byte == 0)?;
        let name = String::from_utf8_lossy(&self.rest[..end]).into_owned();
        self.rest = &self.rest[end + 1..];
        // Table, column, type, size, modifier, format.
        let _table_and_column = self.take::<6>()?;
        let oid = self.take().map(u32::from_be_bytes)?;
        let _size_modifier_format = self.take::<8>()?;
        Some((name, oid))
    }
}
