//! Plain sums of counters.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// How many counters there are.
pub const COUNTERS: usize = 13;

macro_rules! totals {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// What was counted since the pools it is about were made.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Totals {
            /// The counts in the order in which the console shows them.
            pub fn values(&self) -> [u64; COUNTERS] {
                [$(self.$field,)*]
            }

            /// What was added since `earlier`; zero where a pool that counted then is gone now.
            pub fn since(&self, earlier: &Totals) -> Totals {
                Totals { $($field: self.$field.saturating_sub(earlier.$field),)* }
            }
        }

        impl Add for Totals {
            type Output = Totals;

            fn add(self, other: Totals) -> Totals {
                Totals { $($field: self.$field.wrapping_add(other.$field),)* }
            }
        }
    };
}

totals! {
    /// Times that a client was given a server.
    server_assignment_count,
    /// Transactions begun.
    xact_count,
    /// Queries begun.
    query_count,
    /// Bytes from clients.
    received_bytes,
    /// Bytes from servers.
    sent_bytes,
    /// Microseconds in transactions.
    xact_time_us,
    /// Microseconds in queries.
    query_time_us,
    /// Microseconds of waiting for servers.
    wait_time_us,
    /// Parse messages from clients.
    client_parse_count,
    /// Parse messages to servers.
    server_parse_count,
    /// Bind messages.
    bind_count,
    /// Logins of clients.
    client_login_count,
    /// Times that a client began to keep its server for its session state.
    pin_count,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Totals) {
        *self = *self + other;
    }
}

impl Sum for Totals {
    fn sum<I: Iterator<Item = Totals>>(all: I) -> Totals {
        all.fold(Totals::default(), Totals::add)
    }
}
