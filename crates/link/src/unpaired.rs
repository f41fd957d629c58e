//! A server whose client is gone, until another may have it: cleaned, or closed, never handed on dirty.

use server::{Broken, Left, Server};
use wire::server::TransactionStatus;

use crate::from_server::Ear;
use crate::out::Out;
use crate::policy::Policy;

/// What becomes of a server without a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Another client may have it now.
    Clean,
    /// Write what is in `out`, read on, ask again.
    Cleaning,
    /// Close it.
    Close,
}

/// Clears every kind of state that can be cleared.
const DISCARD_ALL: &[u8] = b"DISCARD ALL";

/// The client has left. Decides what the server needs; bytes for it are put into `out`.
///
/// Half a message sent, a reply still owed or a COPY under way: nobody can say what the server would make of
/// another byte, so it is closed. An open transaction is rolled back in a message of its own, because
/// `ROLLBACK; DISCARD ALL` in one string is one transaction and fails.
pub fn left(server: &mut Server, policy: &Policy, out: &mut Out) -> Fate {
    if !server.is_quiet()
        || server.broken.is_some()
        || server.ledger.is_doubtful()
        || server.ledger.is_copying()
        || server.left == Left::Forever
    {
        return Fate::Close;
    }
    clean(server, policy, out)
}

/// A server that is clean but was in doubt shows that it lives.
pub fn check(server: &mut Server, out: &mut Out) {
    server.owe_query();
    out.to_server.make(|bytes| wire::encode::query(bytes, b""));
}

/// Bytes from a server without a client. Returns how many are dealt with and what is next.
pub fn on_server(server: &mut Server, policy: &Policy, input: &[u8], out: &mut Out) -> (usize, Fate) {
    let (consumed, is_sound) = Ear::new(server, None, None, out).run(input);
    if !is_sound || server.broken.is_some() {
        return (consumed, Fate::Close);
    }
    if !server.is_quiet() || consumed < input.len() {
        return (consumed, Fate::Cleaning);
    }
    // It was rolled back before anything else: so it does not do what it is told.
    if server.status != TransactionStatus::Idle {
        return (consumed, Fate::Close);
    }
    (consumed, clean(server, policy, out))
}

fn clean(server: &mut Server, policy: &Policy, out: &mut Out) -> Fate {
    let text: &[u8] = if server.status != TransactionStatus::Idle {
        b"ROLLBACK"
    } else if server.left == Left::Discardable {
        server.left = Left::Nothing;
        server.soiled &= *policy.reset_query != *DISCARD_ALL;
        DISCARD_ALL
    } else if server.soiled && policy.resets() {
        server.soiled = false;
        &policy.reset_query
    } else {
        return Fate::Clean;
    };
    server.owe_query();
    out.to_server.make(|bytes| wire::encode::query(bytes, text));
    Fate::Cleaning
}

/// Why a server is closed, for the log.
pub fn reason(server: &Server) -> String {
    match &server.broken {
        Some(Broken::BadHeader) => "bad packet header from server".to_owned(),
        Some(Broken::Unexpected(tag)) => format!("unexpected message '{}' from server", tag.escape_ascii()),
        Some(Broken::Malformed(tag)) => format!("malformed message '{}' from server", tag.escape_ascii()),
        Some(Broken::Fatal(code, text)) => format!("server ended the session: {code} {text}"),
        Some(Broken::OursFailed(code, text)) => format!("our own query failed: {code} {text}"),
        Some(Broken::ResultChanged) => "result of a prepared statement has changed".to_owned(),
        None if server.left == Left::Forever => "client left state that nothing clears".to_owned(),
        None => "client left in the middle of a transaction".to_owned(),
    }
}
