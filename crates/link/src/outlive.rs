//! A client that outlives its server: what is answered in the server's place, and what may be sent to another.
//!
//! Only where servers come and go without the client's doing, and where nothing of a session is left on them:
//! [`crate::Policy::rides_out`].

use model::{Moment, PoolMode, Refusal};
use server::{Broken, Owed};
use sql::repeat::{Repeat, repeat};
use wire::Header;
use wire::client::{BindHead, Parse, tag};
use wire::server::TransactionStatus;

use crate::from_server::Ear;
use crate::link::Link;
use crate::out::Out;

/// SQLSTATEs of a server that takes nobody: whatever was sent to it, it has not looked at.
const NOT_TAKEN: [&str; 2] = ["57P03", "53300"];
/// SQLSTATE of a session that was ended in order, its transaction aborted before the word was given.
const ENDED: &str = "57P01";
/// SQLSTATEs with which a server says that it goes, and not that the client did something wrong.
pub(crate) const GOING: [&str; 4] = ["57P01", "57P02", "57P03", "53300"];

impl Link {
    /// Whether the client can go on after the loss of its server: nothing of its session is there or may be, and it is
    /// not in the middle of a message of the server.
    pub fn may_outlive(&self) -> bool {
        let Some(server) = &self.server else { return false };
        self.policy.rides_out
            && self.policy.mode != PoolMode::Session
            && !self.policy.dedicated
            && self.state.as_ref().is_none_or(|state| state.is_nothing_lost())
            && (server.receiving == 0 || server.swallowing)
            && !server.ledger.may_come_to_doubt()
            && !server.ledger.is_doubtful()
    }

    /// Whether what the client has sent since it got this server, given as it came, may be sent to another one:
    /// nothing of the answer has reached the client, and the first server has done nothing that lasts.
    pub fn may_repeat(&self, sent: &[u8]) -> bool {
        let Some(server) = &self.server else { return false };
        let allowed = match &server.broken {
            Some(Broken::Fatal(code, _)) if NOT_TAKEN.contains(&&**code) => return true,
            Some(Broken::Fatal(code, _)) if **code == *ENDED => Repeat::IfAborted,
            _ => Repeat::Always,
        };
        self.worst(sent).is_some_and(|worst| worst <= allowed)
    }

    /// Answers all that the lost server owes, as a server would that does not know what became of it. True if there is
    /// nothing more to be said; else the client has not ended its batch or its message yet: give `on_client` what
    /// it sends, and call this again.
    pub fn answer_for_the_dead(&mut self, now: Moment, out: &mut Out) -> bool {
        let Some(server) = self.server.as_deref_mut() else { return true };
        (server.receiving, server.swallowing) = (0, false);
        let mut bytes = Vec::new();
        // Each turn takes an entry from the ledger, or puts the error before a ReadyForQuery.
        for _ in 0..2 * server.ledger.len() + 2 {
            server.broken = None;
            let Some(front) = server.ledger.front() else { break };
            bytes.clear();
            let is_ready = matches!(front.owed, Owed::Query | Owed::FunctionCall | Owed::Sync);
            if is_ready && self.has_told_loss {
                wire::encode::ready_for_query(&mut bytes, TransactionStatus::Idle);
            } else {
                let refusal = Refusal::OutcomeUnknown;
                wire::encode::report(
                    &mut bytes,
                    wire::encode::Severity::Error,
                    refusal.sqlstate(),
                    &refusal.to_string(),
                    None,
                );
            }
            self.has_told_loss = !(is_ready && self.has_told_loss);
            let before = out.to_client.len();
            let mut ear = Ear::new(server, Some(&mut self.client), Some(&mut self.state), out);
            let _ = ear.run(&bytes);
            out.to_client.own_from(before, &bytes);
        }
        self.quiet_since = now;
        let is_over = server.ledger.is_empty()
            && !server.ledger.is_unsynced()
            && server.status == TransactionStatus::Idle
            && self.client.sending == 0;
        if is_over {
            self.has_told_loss = false;
        }
        is_over
    }

    fn worst(&self, sent: &[u8]) -> Option<Repeat> {
        let mut worst = Repeat::Always;
        let mut has_unnamed = false;
        let mut rest = sent;
        while let Some(header) = Header::peek(rest) {
            let end = usize::try_from(header.total()).ok().filter(|end| *end <= rest.len())?;
            let body = &rest[5..end];
            rest = &rest[end..];
            let text = match header.tag {
                tag::QUERY => wire::client::query(body).ok()?,
                tag::PARSE => {
                    let parse = Parse::read(body).ok()?;
                    has_unnamed |= parse.name.is_empty();
                    parse.query()
                }
                tag::BIND => match BindHead::peek(body)?.statement {
                    b"" if has_unnamed => continue,
                    b"" => return None,
                    name => {
                        worst = worst.max(repeat(self.client.statement(name)?.text()));
                        continue;
                    }
                },
                tag::DESCRIBE | tag::EXECUTE | tag::SYNC | tag::CLOSE | tag::FLUSH => continue,
                _ => return None,
            };
            worst = worst.max(repeat(text));
        }
        rest.is_empty().then_some(worst)
    }
}
