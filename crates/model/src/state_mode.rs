//! What becomes of the state that a client leaves in its session.

use std::fmt;

/// The setting `session_state`, for pool modes that share servers between transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StateMode {
    /// What can go with the client does; a client with any other keeps its server while that lasts.
    #[default]
    Carry,
    /// A client with any state keeps its server while it lasts.
    Pin,
    /// A statement that would make the client keep its server is answered with an error.
    Refuse,
    /// Statements are not looked at.
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
