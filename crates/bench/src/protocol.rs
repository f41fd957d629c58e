//! The little of protocol v3 that a load generator and a canned-reply server speak. Written apart from
//! the `wire` crate on purpose: what measures a pooler does not share its mistakes.

/// Ends a session.
pub const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];
/// The longest startup packet taken, as PostgreSQL's.
pub const STARTUP_LENGTH_MAX: usize = 10_000;
/// The longest message followed; PostgreSQL's own limit.
pub const MESSAGE_LENGTH_MAX: usize = 1 << 30;
/// How much of an error's body is kept.
const ERROR_LENGTH_MAX: usize = 2_048;

const VERSION_3_0: u32 = 196_608;
/// Asks whether the server speaks TLS.
pub const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A startup packet.
pub fn startup(user: &str, database: &str) -> Vec<u8> {
    let mut packet = vec![0; 4];
    packet.extend(VERSION_3_0.to_be_bytes());
    for word in ["user", user, "database", database, "application_name", "bench"] {
        packet.extend(word.as_bytes());
        packet.push(0);
    }
    packet.push(0);
    let length = packet.len() as u32;
    packet[..4].copy_from_slice(&length.to_be_bytes());
    packet
}

/// A Query message.
pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &[sql.as_bytes(), &[0]])
}

/// A message of that type with those parts for a body.
pub fn message(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut message = vec![kind];
    message.extend((length as u32).to_be_bytes());
    for part in parts {
        message.extend(*part);
    }
    message
}

/// An ErrorResponse in two fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// SQLSTATE.
    pub code: String,
    /// The message.
    pub message: String,
}

impl ServerError {
    /// Reads the body of an ErrorResponse, whole or cut.
    pub fn parse(body: &[u8]) -> ServerError {
        let field = |wanted: u8| {
            let found = body.split(|&byte| byte == 0).find(|field| field.first() == Some(&wanted));
            String::from_utf8_lossy(found.map_or(&[], |field| &field[1..])).into_owned()
        };
        ServerError { code: field(b'C'), message: field(b'M') }
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code, self.message)
    }
}

/// What a client must know of the server's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// ReadyForQuery.
    Ready,
    /// ErrorResponse.
    Error(ServerError),
    /// A length that cannot be: the stream is lost.
    Nonsense,
}

/// Finds the messages that matter in a stream cut anywhere; all others are counted past, never kept.
#[derive(Debug, Clone, Default)]
pub struct ReplyScanner {
    header: [u8; 5],
    header_length: u8,
    left: u32,
    error: Option<Vec<u8>>,
}

impl ReplyScanner {
    /// Reads on, and calls `seen` for each reply that matters.
    pub fn scan(&mut self, mut bytes: &[u8], mut seen: impl FnMut(Reply)) {
        while !bytes.is_empty() {
            if self.header_length < 5 {
                let taken = bytes.len().min(5 - usize::from(self.header_length));
                let from = usize::from(self.header_length);
                self.header[from..from + taken].copy_from_slice(&bytes[..taken]);
                self.header_length += taken as u8;
                bytes = &bytes[taken..];
                if self.header_length < 5 {
                    return;
                }
                let [_, a, b, c, d] = self.header;
                let length = u32::from_be_bytes([a, b, c, d]);
                if length < 4 || length as usize > MESSAGE_LENGTH_MAX {
                    return seen(Reply::Nonsense);
                }
                self.left = length - 4;
                if self.header[0] == b'E' {
                    self.error = Some(Vec::new());
                }
            }
            let taken = bytes.len().min(self.left as usize);
            if let Some(body) = &mut self.error {
                let kept = taken.min(ERROR_LENGTH_MAX.saturating_sub(body.len()));
                body.extend_from_slice(&bytes[..kept]);
            }
            self.left -= taken as u32;
            bytes = &bytes[taken..];
            if self.left == 0 {
                self.header_length = 0;
                if let Some(body) = self.error.take() {
                    seen(Reply::Error(ServerError::parse(&body)));
                } else if self.header[0] == b'Z' {
                    seen(Reply::Ready);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
