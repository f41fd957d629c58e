//! One kind of session state: how it is made, how it is seen, how it is ended, and what becomes of it between
//! transactions.
//!
//! Scripts are text, a statement a line. `statement | value | value` has parameters; `\parse NAME SQL`,
//! `\run NAME | value`, `\close NAME` speak of statements by the protocol.

use testkit::message::{self, all, bind, close_statement, describe_portal, execute, parse, query, sync};

/// What a pooler in transaction mode is to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// It goes with its client: the server is free between transactions.
    Carried,
    /// The client keeps its server as long as it is there.
    Pins,
}

pub struct Kind {
    pub name: &'static str,
    pub holds: Holds,
    pub startup: &'static [(&'static str, &'static str)],
    pub make: &'static str,
    pub look: &'static str,
    /// Ends the state. Empty where nothing but the end of the session does.
    pub end: &'static str,
    /// PostgreSQL does not take it in a transaction block.
    pub is_alone: bool,
    pub protocols: &'static [Protocol],
    /// What it looks like to somebody else cannot be foretold.
    pub is_private: bool,
}

impl Kind {
    pub const fn carried(
        name: &'static str,
        make: &'static str,
        look: &'static str,
        end: &'static str,
    ) -> Kind {
        Kind {
            name,
            holds: Holds::Carried,
            startup: &[],
            make,
            look,
            end,
            is_alone: false,
            protocols: &PROTOCOLS,
            is_private: false,
        }
    }

    pub const fn pins(name: &'static str, make: &'static str, look: &'static str, end: &'static str) -> Kind {
        let mut kind = Kind::carried(name, make, look, end);
        kind.holds = Holds::Pins;
        kind
    }

    pub const fn alone(mut self) -> Kind {
        self.is_alone = true;
        self
    }

    pub const fn private(mut self) -> Kind {
        self.is_private = true;
        self
    }

    pub const fn startup(mut self, startup: &'static [(&'static str, &'static str)]) -> Kind {
        self.startup = startup;
        self
    }

    pub const fn by(mut self, protocols: &'static [Protocol]) -> Kind {
        self.protocols = protocols;
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A Query for each statement.
    Simple,
    /// Parse, Bind, Describe, Execute, Sync for each.
    Extended,
    /// As extended; a transaction is one write with one Sync, and statements on their own are one write, too.
    Pipelined,
}

pub const PROTOCOLS: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Pipelined];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Each statement is its own transaction.
    Alone,
    Commit,
    Rollback,
    /// An error in the transaction, and COMMIT after it.
    Error,
    /// The client's connection is reset in a later transaction.
    ClientKilled,
    /// The server goes while the client is in no transaction.
    ServerKilled,
    /// The server goes in a later transaction.
    ServerKilledMidway,
}

pub const ENDINGS: [Ending; 7] = [
    Ending::Alone,
    Ending::Commit,
    Ending::Rollback,
    Ending::Error,
    Ending::ClientKilled,
    Ending::ServerKilled,
    Ending::ServerKilledMidway,
];

/// One step of a script.
#[derive(Clone, Debug)]
pub enum Step {
    Sql { sql: String, values: Vec<String> },
    Parse { name: String, sql: String },
    Run { name: String, values: Vec<String> },
    Close { name: String },
}

/// Reads a script.
pub fn steps(script: &str) -> Vec<Step> {
    script.lines().map(str::trim).filter(|line| !line.is_empty()).map(step).collect()
}

fn step(line: &str) -> Step {
    let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
    match command {
        "\\parse" => {
            let (name, sql) = rest.split_once(' ').expect("\\parse NAME SQL");
            Step::Parse { name: name.into(), sql: sql.into() }
        }
        "\\run" => {
            let (name, values) = with_values(rest);
            Step::Run { name, values }
        }
        "\\close" => Step::Close { name: rest.into() },
        _ => {
            let (sql, values) = with_values(line);
            Step::Sql { sql, values }
        }
    }
}

fn with_values(line: &str) -> (String, Vec<String>) {
    let mut parts = line.split(" | ").map(str::to_owned);
    // split() gives one part at least.
    (parts.next().unwrap_or_default(), parts.collect())
}

impl Step {
    /// As messages; without a Sync if it is one of several.
    pub fn messages(&self, protocol: Protocol, ends: bool) -> Vec<u8> {
        let mut parts = match self {
            Step::Sql { sql, values } if protocol == Protocol::Simple => return query(&filled(sql, values)),
            Step::Sql { sql, values } => {
                let values: Vec<Option<&str>> = values.iter().map(|value| Some(value.as_str())).collect();
                vec![parse("", sql, &[]), bind("", "", &values), describe_portal(""), execute("", 0)]
            }
            Step::Parse { name, sql } => vec![parse(name, sql, &[]), message::describe_statement(name)],
            Step::Run { name, values } => {
                let values: Vec<Option<&str>> = values.iter().map(|value| Some(value.as_str())).collect();
                vec![bind("", name, &values), execute("", 0)]
            }
            Step::Close { name } => vec![close_statement(name)],
        };
        if ends {
            parts.push(sync());
        }
        all(&parts)
    }
}

/// The values in the place of their numbers, as constants.
fn filled(sql: &str, values: &[String]) -> String {
    let numbered = values.iter().enumerate();
    numbered.fold(sql.to_owned(), |sql, (place, value)| {
        sql.replace(&format!("${}", place + 1), &format!("'{}'", value.replace('\'', "''")))
    })
}
