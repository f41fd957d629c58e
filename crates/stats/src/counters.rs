//! The counters of one pool on one worker.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::totals::Totals;

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident, $add:ident;)*) => {
        /// What one worker counted about one pool.
        ///
        /// One thread adds, any thread reads. An addition is therefore a load and a store and not a locked
        /// instruction: of two threads that add to the same counter at once, one addition may be lost, and
        /// each writer must have its own `Counters`. They fill whole pairs of cache lines, so that a worker
        /// never waits for another's.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters {
            $($field: AtomicU64,)*
        }

        impl Counters {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $add(&self, amount: u64) {
                    add(&self.$field, amount);
                }
            )*

            /// The counts as they are now. Counters that belong together may be apart by what is being
            /// added at this moment.
            pub fn totals(&self) -> Totals {
                Totals { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Times that a client was given a server.
    server_assignment_count, add_server_assignment_count;
    /// Transactions, counted when they begin.
    xact_count, add_xact_count;
    /// Queries, counted when they begin; a pipeline is one.
    query_count, add_query_count;
    /// Bytes received from clients.
    received_bytes, add_received_bytes;
    /// Bytes received from servers, which are those sent to clients.
    sent_bytes, add_sent_bytes;
    /// Microseconds in transactions, added when they end.
    xact_time_us, add_xact_time_us;
    /// Microseconds in queries, added when they end.
    query_time_us, add_query_time_us;
    /// Microseconds that clients waited for a server, added when they get it.
    wait_time_us, add_wait_time_us;
    /// Parse messages of named statements from clients.
    client_parse_count, add_client_parse_count;
    /// Parse messages of named statements to servers.
    server_parse_count, add_server_parse_count;
    /// Bind messages of named statements.
    bind_count, add_bind_count;
    /// Clients that logged in.
    client_login_count, add_client_login_count;
    /// Times that a client began to keep its server for its session state.
    pin_count, add_pin_count;
}

#[inline]
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}
