//! When a server goes back to its pool, and what is done about the state that a client leaves in its session.

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
}

impl PoolMode {
    /// The word in pgbouncer.ini.
    pub fn name(self) -> &'static str {
        match self {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
            PoolMode::Statement => "statement",
        }
    }
}

impl fmt::Display for PoolMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is done about session state in transaction mode: `session_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StateMode {
    /// It goes with the client where it can, and keeps the server where it cannot.
    #[default]
    Carry,
    /// All of it keeps the server.
    Pin,
    /// A statement that would make some is refused.
    Refuse,
    /// Nothing is looked at, as in PgBouncer.
    Off,
}

impl StateMode {
    /// All of them.
    pub const ALL: [StateMode; 4] = [StateMode::Carry, StateMode::Pin, StateMode::Refuse, StateMode::Off];

    /// The word in pgbouncer.ini.
    pub fn name(self) -> &'static str {
        match self {
            StateMode::Carry => "carry",
            StateMode::Pin => "pin",
            StateMode::Refuse => "refuse",
            StateMode::Off => "off",
        }
    }
}

impl fmt::Display for StateMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
