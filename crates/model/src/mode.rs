//! When a server goes back to its pool.

use std::fmt;

/// PgBouncer's `pool_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolMode {
    /// When the client leaves.
    Session,
    /// When the transaction ends.
    Transaction,
    /// As `Transaction`, and a transaction of several statements is refused.
    Statement,
    /// Never: each client has a server of its own, which has let it in itself.
    Passthrough,
}

impl PoolMode {
    /// The word in pgbouncer.ini.
    pub fn name(self) -> &'static str {
        match self {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
            PoolMode::Statement => "statement",
            PoolMode::Passthrough => "passthrough",
        }
    }
}

impl fmt::Display for PoolMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
