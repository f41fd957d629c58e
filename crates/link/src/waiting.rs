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
    /// are dealt with; the rest of a message that is not whole is dropped as it comes.
    pub fn cancel_waiting(&mut self, input: &[u8], out: &mut Out) -> usize {
        let mut at = 0;
        let mut is_over = false;
        while let Some(header) = Header::peek(&input[at..]).filter(|header| header.check_client().is_ok()) {
            if is_over || header.tag == tag::TERMINATE {
                break;
            }
            let here = (input.len() - at) as u64;
            let take = header.total().min(here);
            self.client.sending = header.total() - take;
            self.client.rest = Rest::Discard;
            at += take as usize;
            is_over = matches!(header.tag, tag::QUERY | tag::SYNC | tag::FUNCTION_CALL);
        }
        if at > 0 {
            let refusal = model::Refusal::QueryCanceled;
            out.to_client.make(|bytes| {
                encode::report(bytes, Severity::Error, refusal.sqlstate(), &refusal.to_string(), None);
                encode::ready_for_query(bytes, TransactionStatus::Idle);
            });
        }
        at
    }
}
