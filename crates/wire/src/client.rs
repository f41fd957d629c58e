//! Views of what a client sends after its startup message. Each takes the body without the header.

use crate::cursor::{Cursor, Malformed};

/// Message types of a client.
pub mod tag {
    #![allow(missing_docs)]
    pub const BIND: u8 = b'B';
    pub const CLOSE: u8 = b'C';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_FAIL: u8 = b'f';
    pub const DESCRIBE: u8 = b'D';
    pub const EXECUTE: u8 = b'E';
    pub const FLUSH: u8 = b'H';
    pub const FUNCTION_CALL: u8 = b'F';
    pub const PARSE: u8 = b'P';
    pub const PASSWORD: u8 = b'p';
    pub const QUERY: u8 = b'Q';
    pub const SYNC: u8 = b'S';
    pub const TERMINATE: u8 = b'X';
}

/// What a Describe or Close names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `S`: a prepared statement.
    Statement,
    /// `P`: a portal.
    Portal,
}

/// A Parse message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// The statement's name; empty for the unnamed one.
    pub name: &'a [u8],
    /// The text and the parameter types as they came: what makes two statements the same.
    pub rest: &'a [u8],
}

impl<'a> Parse<'a> {
    /// Reads a whole body.
    pub fn read(body: &'a [u8]) -> Result<Parse<'a>, Malformed> {
        let mut cursor = Cursor::new(body);
        let name = cursor.cstr()?;
        let rest = cursor.rest();
        cursor.cstr()?;
        let types = cursor.u16()?;
        cursor.bytes(usize::from(types) * 4)?;
        if cursor.is_empty() { Ok(Parse { name, rest }) } else { Err(Malformed) }
    }

    /// The SQL text.
    pub fn query(self) -> &'a [u8] {
        Cursor::new(self.rest).cstr().unwrap_or_default()
    }
}

/// The names at the head of a Bind message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindHead<'a> {
    /// The portal to make; empty for the unnamed one.
    pub portal: &'a [u8],
    /// The statement it is made of; empty for the unnamed one.
    pub statement: &'a [u8],
}

impl<'a> BindHead<'a> {
    /// Reads both names from the first bytes of a body; `None` while they are not all there.
    pub fn peek(body: &'a [u8]) -> Option<BindHead<'a>> {
        let mut cursor = Cursor::new(body);
        let portal = cursor.cstr().ok()?;
        let statement = cursor.cstr().ok()?;
        Some(BindHead { portal, statement })
    }

    /// Bytes that both names and their zeros take.
    pub fn size(self) -> usize {
        self.portal.len() + self.statement.len() + 2
    }
}

/// Reads a Describe or Close body: what kind of thing, and its name.
pub fn target(body: &[u8]) -> Result<(Target, &[u8]), Malformed> {
    let mut cursor = Cursor::new(body);
    let target = match cursor.u8()? {
        b'S' => Target::Statement,
        b'P' => Target::Portal,
        _ => return Err(Malformed),
    };
    let name = cursor.cstr()?;
    if cursor.is_empty() { Ok((target, name)) } else { Err(Malformed) }
}

/// Reads a Query body: its text.
pub fn query(body: &[u8]) -> Result<&[u8], Malformed> {
    let mut cursor = Cursor::new(body);
    let text = cursor.cstr()?;
    if cursor.is_empty() { Ok(text) } else { Err(Malformed) }
}

/// Reads a password message: its text, which an empty password leaves empty.
pub fn password(body: &[u8]) -> Result<&[u8], Malformed> {
    query(body)
}

/// A SASLInitialResponse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaslInitial<'a> {
    /// The mechanism chosen.
    pub mechanism: &'a [u8],
    /// The first data, if any came along.
    pub data: Option<&'a [u8]>,
}

impl<'a> SaslInitial<'a> {
    /// Reads a whole body. The inner length must be -1 or exactly what is left.
    pub fn parse(body: &'a [u8]) -> Result<SaslInitial<'a>, Malformed> {
        let mut cursor = Cursor::new(body);
        let mechanism = cursor.cstr()?;
        let length = cursor.u32()?;
        if length == u32::MAX {
            return if cursor.is_empty() {
                Ok(SaslInitial { mechanism, data: None })
            } else {
                Err(Malformed)
            };
        }
        let data = cursor.rest();
        if data.len() as u64 == u64::from(length) {
            Ok(SaslInitial { mechanism, data: Some(data) })
        } else {
            Err(Malformed)
        }
    }
}
