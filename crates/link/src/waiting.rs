//! A client that waits for a server and is canceled: answered here, because no server ever saw its query.

use client::Rest;
use wire::Header;
use wire::client::tag;
use wire::encode::{self, Severity};
use wire::server::TransactionStatus;

use crate::link::Link;
use crate::out::Out;

impl Link {
    /// Takes the client's query away from the front of `input` and answers it as PostgreSQL would have, had it
    /// been canceled there: an error, and ReadyForQuery at the end of what is skipped. Returns how many bytes
    /// are dealt with; the rest of a query that is not whole is dropped as it comes.
    ///
    /// A batch whose Sync is not here yet is left alone: there would be nothing to end the skipping.
    pub fn cancel_waiting(&mut self, input: &[u8], out: &mut Out) -> usize {
        let mut at = 0;
        let mut is_batch = false;
        while let Some(header) = Header::peek(&input[at..]).filter(|header| header.check_client().is_ok()) {
            let take = header.total().min((input.len() - at) as u64);
            at += take as usize;
            match header.tag {
                tag::TERMINATE => break,
                tag::SYNC => {}
                tag::QUERY | tag::FUNCTION_CALL if !is_batch => {}
                tag::FLUSH | tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL => continue,
                _ => {
                    is_batch = true;
                    continue;
                }
            }
            if let Some(channels) = &mut self.channels {
                channels.forget_wish();
            }
            self.client.sending = header.total() - take;
            self.client.rest = Rest::Discard;
            let refusal = model::Refusal::QueryCanceled;
            out.to_client.make(|bytes| {
                if header.tag != tag::SYNC || is_batch {
                    encode::report(bytes, Severity::Error, refusal.sqlstate(), &refusal.to_string(), None);
                }
                encode::ready_for_query(bytes, TransactionStatus::Idle);
            });
            return at;
        }
        0
    }
}
