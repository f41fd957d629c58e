//! What the data plane says in the log about clients and servers, in the words that PgBouncer's tools match.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use model::Refusal;

use crate::moored::Moored;
use crate::session::Session;
use crate::shared::Shared;

/// How a client is named in a line.
pub struct ClientName<'a>(pub &'a Session);

impl fmt::Display for ClientName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.0.who();
        let (database, user) =
            who.as_ref().map_or(("(nodb)", "(nouser)"), |who| (&*who.database, &*who.user));
        write!(f, "C-{:#x}: {database}/{user}@", self.0.id.0)?;
        address(f, self.0.origin.address())
    }
}

/// How a server is named in a line.
pub struct ServerName<'a>(pub &'a Moored);

impl fmt::Display for ServerName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = &self.0.home.cell;
        write!(f, "S-{:#x}: {}/{}@", self.0.id.0, cell.key.database, cell.key.user)?;
        write!(f, "{}", self.0.facts.remote)
    }
}

fn address(f: &mut fmt::Formatter<'_>, peer: Option<SocketAddr>) -> fmt::Result {
    match peer {
        Some(peer) => write!(f, "{peer}"),
        None => f.write_str("unix"),
    }
}

/// A client tries to log in, or has.
pub fn login_attempt(shared: &Shared, session: &Arc<Session>) {
    if shared.settings().general.log_connections
        && let Some(who) = session.who()
    {
        let tls = if who.tls.is_empty() { "no" } else { &who.tls };
        tracing::info!(
            socket = %ClientName(session),
            "login attempt: db={} user={} tls={tls} replication={}",
            who.database,
            who.user,
            who.replication
        );
    }
}

/// A client's session has ended.
pub fn client_closed(shared: &Shared, session: &Session, refusal: Option<&Refusal>) {
    let general = &shared.settings().general;
    if let Some(refusal) = refusal
        && general.log_pooler_errors
    {
        tracing::warn!(socket = %ClientName(session), "pooler error: {refusal}");
    }
    if general.log_disconnections {
        let age = shared.clock.unix_seconds().saturating_sub(session.connected_unix.into());
        match refusal {
            Some(refusal) => {
                tracing::info!(socket = %ClientName(session), "closing because: {refusal} (age={age}s)");
            }
            None => {
                tracing::info!(socket = %ClientName(session), "closing because: client close request (age={age}s)");
            }
        }
    }
}

/// A client begins to keep its server.
pub fn pinned(session: &Session, words: &str) {
    tracing::info!(socket = %ClientName(session), "keeps its server: {words}");
}

/// A server was connected.
pub fn server_opened(shared: &Shared, moored: &Moored) {
    if shared.settings().general.log_connections {
        tracing::info!(
            socket = %ServerName(moored),
            "new connection to server (from {})",
            moored.facts.local
        );
    }
}

/// A server is closed.
pub fn server_closed(shared: &Shared, moored: &Moored, reason: &str) {
    if shared.settings().general.log_disconnections {
        let age = shared.clock.unix_seconds().saturating_sub(moored.facts.connected_unix);
        tracing::info!(socket = %ServerName(moored), "closing because: {reason} (age={age}s)");
    }
}
