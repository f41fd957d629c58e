//! Messages of a login, cut out of what was received. Does not know what they mean.

use wire::{HEADER_SIZE, Header, HeaderFault};

use super::fault::LoginFault;

/// One whole message of a server.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The type byte.
    pub tag: u8,
    /// What comes after the length word.
    pub body: &'a [u8],
}

/// The first message in `bytes` and how many bytes it takes, or `None` while it is not all there.
///
/// A caller that keeps what is left over never has to hold more than [`MESSAGE_BYTES_MAX`] plus one read.
pub fn next_message(bytes: &[u8]) -> Result<Option<(Message<'_>, usize)>, LoginFault> {
    let Some(header) = Header::peek(bytes) else { return Ok(None) };
    header.check_server().map_err(|fault| match fault {
        HeaderFault::TooLong(_) => LoginFault::MessageTooLong(header.tag),
        HeaderFault::BadLength | HeaderFault::UnknownType => LoginFault::BadLength(header.tag),
    })?;
    if header.body() > MESSAGE_BYTES_MAX as u64 {
        return Err(LoginFault::MessageTooLong(header.tag));
    }
    let end = HEADER_SIZE + header.body() as usize;
    let whole = bytes.get(HEADER_SIZE..end);
    Ok(whole.map(|body| (Message { tag: header.tag, body }, end)))
}

/// The largest body that a server may send before it is ready. PostgreSQL's largest is a long error's.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
