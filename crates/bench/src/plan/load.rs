//! The loads: what each is called, what it needs, about how long it takes.

use crate::options::Mode;
use crate::target::Kind;
use clap::ValueEnum;
use std::time::Duration;

/// A load and its number of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Load {
    /// pgbench against PostgreSQL, its connections open all the time.
    Pgbench {
        /// Clients.
        clients: usize,
        /// What it runs.
        script: Script,
        /// How it sends that.
        mode: Mode,
    },
    /// `pgbench -C`: a new connection per transaction.
    Connect {
        /// Clients.
        clients: usize,
        /// What it runs.
        script: Script,
        /// How it sends that.
        mode: Mode,
        /// How it comes in.
        login: Login,
    },
    /// `pgbench -S -t`: so many transactions each, and over; what counts is coming in.
    Burst {
        /// Clients.
        clients: usize,
        /// Transactions each.
        each: u32,
    },
    /// TPC-B, prepared, over a PostgreSQL with that `max_connections`.
    Walled {
        /// Clients.
        clients: usize,
        /// `max_connections`.
        wall: usize,
    },
    /// sysbench against PostgreSQL.
    Sysbench {
        /// Clients.
        clients: usize,
        /// What it runs.
        script: Oltp,
    },
    /// pgbench with a row of 64 KB.
    WideRow {
        /// Clients.
        clients: usize,
        /// How they come in.
        login: Login,
    },
    /// 100 MB in one COPY, by one client of our own: pgbench knows no COPY.
    Copy {
        /// Which way.
        direction: Direction,
        /// How it comes in.
        login: Login,
    },
    /// Our closed loop against PostgreSQL: more clients than pgbench can hold.
    Crowd {
        /// Clients.
        clients: usize,
    },
    /// Our closed loop against the canned-reply server.
    Canned {
        /// Clients.
        clients: usize,
    },
    /// Clients that come, ask once and go, against the canned-reply server.
    Churn {
        /// Clients.
        clients: usize,
    },
    /// Idle clients over the canned-reply server.
    Memory {
        /// Clients.
        clients: usize,
    },
}

/// What pgbench runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Script {
    /// `-S`: one row by its key.
    Select,
    /// pgbench's own: five statements in a transaction.
    TpcB,
    /// One row of 64 KB.
    WideRow,
    /// One row by its key, by clients that set one of ten values of two settings when they came.
    Sets,
    /// One row by its key and a pause; so many of a hundred transactions hold a session lock over the pause.
    Stateful {
        /// How many of a hundred.
        percent: u8,
    },
}

/// How clients log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Login {
    /// Without a password.
    Plain,
    /// With a password, by SCRAM of few iterations: else pgbench's own hashing hides the pooler.
    Scram,
    /// Without a password, through TLS.
    Tls,
}

/// sysbench's scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Oltp {
    /// `oltp_read_only`.
    ReadOnly,
    /// `oltp_read_write`.
    ReadWrite,
}

impl Oltp {
    /// The script's name.
    pub fn word(self) -> &'static str {
        match self {
            Oltp::ReadOnly => "oltp_read_only",
            Oltp::ReadWrite => "oltp_read_write",
        }
    }
}

/// Which way a COPY goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// `COPY ... TO STDOUT`.
    Out,
    /// `COPY ... FROM STDIN`.
    In,
}

/// The least row that counts as a large one.
pub const WIDE_ROW_BYTES: u64 = 65_536;
/// What a COPY moves.
pub const COPY_BYTES: u64 = 100_000_000;

impl Load {
    /// How many clients it has.
    pub fn clients(self) -> usize {
        match self {
            Load::Copy { .. } => 1,
            Load::Pgbench { clients, .. }
            | Load::Connect { clients, .. }
            | Load::WideRow { clients, .. }
            | Load::Burst { clients, .. }
            | Load::Walled { clients, .. }
            | Load::Sysbench { clients, .. }
            | Load::Crowd { clients }
            | Load::Canned { clients }
            | Load::Churn { clients }
            | Load::Memory { clients } => clients,
        }
    }

    /// How its clients log in.
    pub fn login(self) -> Login {
        match self {
            Load::Connect { login, .. } | Load::WideRow { login, .. } | Load::Copy { login, .. } => login,
            _ => Login::Plain,
        }
    }

    /// The heading of its table.
    pub fn title(self) -> String {
        let clients = self.clients();
        let plural = if clients == 1 { "" } else { "s" };
        let what = match self {
            Load::Pgbench { script, mode, .. } => format!("pgbench {}{}", script.words(), mode.word()),
            Load::Connect { script, mode, login, .. } => {
                let login = login.words();
                format!("pgbench {}-C {}{login}", script.words(), mode.word())
            }
            Load::WideRow { login, .. } => format!("pgbench 64 KB row simple{}", login.words()),
            Load::Burst { each, .. } => format!("pgbench -S -t {each}"),
            Load::Walled { wall, .. } => format!("pgbench TPC-B prepared, max_connections {wall}"),
            Load::Sysbench { script, .. } => format!("sysbench {}", script.word()),
            Load::Copy { direction, login } => {
                format!("COPY of 100 MB {} the client{}", direction.preposition(), login.words())
            }
            Load::Crowd { .. } => "closed loop on PostgreSQL".to_owned(),
            Load::Canned { .. } => "canned replies".to_owned(),
            Load::Churn { .. } => "a connection per canned reply".to_owned(),
            Load::Memory { .. } => return format!("memory, {clients} idle client{plural}"),
        };
        format!("{what}, {clients} client{plural}")
    }

    /// The word it has in a report: loads that differ in clients alone share it.
    pub fn word(self) -> String {
        match self {
            Load::Pgbench { script, mode, .. } => format!("{}-{}", script.word(), mode.word()),
            Load::Connect { script, mode, login, .. } => {
                format!("connect-{}-{}-{}", script.word(), mode.word(), login.word())
            }
            Load::WideRow { login, .. } => format!("row64k-simple{}", login.suffix()),
            Load::Burst { .. } => "burst".to_owned(),
            Load::Walled { wall, .. } => format!("walled-{wall}"),
            Load::Sysbench { script, .. } => format!("sysbench-{}", script.word()),
            Load::Copy { direction, login } => format!("copy-{}{}", direction.word(), login.suffix()),
            Load::Crowd { .. } => "crowd".to_owned(),
            Load::Canned { .. } => "canned".to_owned(),
            Load::Churn { .. } => "churn".to_owned(),
            Load::Memory { .. } => "memory".to_owned(),
        }
    }

    /// Whether PostgreSQL stands behind it, and not the canned-reply server.
    pub fn needs_postgres(self) -> bool {
        !matches!(self, Load::Canned { .. } | Load::Churn { .. } | Load::Memory { .. })
    }

    /// Whether this target has anything to show under this load.
    pub fn suits(self, target: Kind) -> bool {
        match self {
            Load::Memory { .. } => target != Kind::Direct && target.reaches_canned(),
            Load::Canned { .. } | Load::Churn { .. } => target.reaches_canned(),
            // A target that runs already has the one login that its URL says.
            _ => self.login() == Login::Plain || !matches!(target, Kind::Given(_)),
        }
    }

    /// Memory does not drift with the machine, and bulk takes long: both need fewer rounds.
    pub fn rounds_max(self) -> usize {
        match self {
            Load::Memory { .. } => 1,
            Load::Copy { .. } => 3,
            _ => usize::MAX,
        }
    }

    /// The longest it may run beyond its time. What takes longer has hung, and that is its result.
    pub fn spare(self) -> Duration {
        Duration::from_secs(15) + Duration::from_millis(10) * self.clients() as u32
    }

    /// A first guess of what a step takes, for the time left.
    pub fn guess(self, seconds: u32) -> Duration {
        let clients = self.clients() as f64;
        let more = match self {
            Load::Pgbench { .. } | Load::WideRow { .. } | Load::Walled { .. } => 0.2 + clients * 0.001,
            Load::Connect { .. } | Load::Sysbench { .. } | Load::Churn { .. } => 0.3,
            Load::Canned { .. } | Load::Crowd { .. } => 0.5 + clients * 0.0002,
            Load::Burst { .. } => return Duration::from_secs_f64(0.2 + clients * 0.002),
            Load::Copy { .. } => return Duration::from_secs_f64(0.7),
            Load::Memory { .. } => return Duration::from_secs_f64(0.5 + clients * 0.0003),
        };
        Duration::from_secs_f64(f64::from(seconds) + more)
    }
}

impl Script {
    /// In a title, with the blank behind it.
    fn words(self) -> String {
        match self {
            Script::Select => "-S ".to_owned(),
            Script::TpcB => "TPC-B ".to_owned(),
            Script::WideRow => "64 KB row ".to_owned(),
            Script::Sets => "ten sets of settings ".to_owned(),
            Script::Stateful { percent } => format!("state in {percent}% of transactions "),
        }
    }

    /// In a report.
    fn word(self) -> String {
        match self {
            Script::Select => "select".to_owned(),
            Script::TpcB => "tpcb".to_owned(),
            Script::WideRow => "row64k".to_owned(),
            Script::Sets => "sets".to_owned(),
            Script::Stateful { percent } => format!("state-{percent}"),
        }
    }
}

impl Direction {
    fn preposition(self) -> &'static str {
        match self {
            Direction::Out => "to",
            Direction::In => "from",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Direction::Out => "out",
            Direction::In => "in",
        }
    }
}

impl Login {
    /// Behind the word of a load that is usually plain.
    fn suffix(self) -> &'static str {
        match self {
            Login::Plain => "",
            Login::Scram => "-scram",
            Login::Tls => "-tls",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Login::Plain => "",
            Login::Scram => " with SCRAM",
            Login::Tls => " through TLS",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Login::Plain => "plain",
            Login::Scram => "scram",
            Login::Tls => "tls",
        }
    }
}
