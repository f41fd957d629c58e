//! The published experiments of the field, each as a run of ours: the same commands as far as they fit one
//! machine, over a PostgreSQL with the same limits. What was published is in `published`, and is printed
//! beside ours by `beside`.

pub mod beside;
pub mod published;

use crate::options::Mode;
use crate::plan::{Load, Login, Oltp, Plan, Script};
use crate::setup::Setup;
use crate::target::Kind;
use clap::ValueEnum;

/// The experiments by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// AWS RDS Proxy: 100 to 700 clients, 10 queries each, max_connections 550
    RdsProxy,
    /// Short connections: pgbench -S -C extended, 100 clients
    ShortConnections,
    /// TPC-B by 1000 clients over a pool of 100: spread of latency, and where the wait sits
    ThousandClients,
    /// HAProxy as a pool: 150 and more clients over 100 connections, the price of connecting
    #[value(name = "haproxy-150")]
    Haproxy150,
    /// PgBouncer and Pgpool-II: TPC-B with -C by 10 to 200 clients
    PgpoolConnect,
    /// A managed service's limit: TPC-B prepared, 950 and 1000 clients over max_connections 300 and 960
    #[value(name = "managed-950")]
    Managed950,
    /// Session state: what looking for it costs, ten sets of settings, and the servers that state needs
    SessionState,
    /// sysbench OLTP, read-only and read-write, with its prepared statements
    SysbenchOltp,
}

/// One PostgreSQL with its targets, and what they go through.
#[derive(Debug, Clone)]
pub struct Stage {
    /// What is run.
    pub plan: Plan,
    /// How large everything is.
    pub setup: Setup,
    /// Whether steps that cannot end well are run all the same, for what they show.
    pub shows_walls: bool,
}

/// What an experiment leaves to the command line.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The targets.
    pub targets: Vec<Kind>,
    /// Instead of the experiment's clients; empty for those.
    pub clients: Vec<usize>,
    /// Rounds.
    pub rounds: usize,
    /// Seconds.
    pub seconds: u32,
    /// Instead of the experiment's scale.
    pub scale: Option<u32>,
    /// Instead of the experiment's pool.
    pub pool_size: Option<usize>,
}

/// Clients whose need of servers is counted.
const STATEFUL_CLIENTS: usize = 100;

fn stateful(percent: u8) -> Load {
    let script = Script::Stateful { percent };
    Load::Pgbench { clients: STATEFUL_CLIENTS, script, mode: Mode::Simple }
}

/// The sizes of an experiment.
struct Experiment {
    connections_max: usize,
    pool_size: usize,
    scale: u32,
    clients: &'static [usize],
}

impl Scenario {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::RdsProxy => "rds-proxy",
            Scenario::ShortConnections => "short-connections",
            Scenario::ThousandClients => "thousand-clients",
            Scenario::Haproxy150 => "haproxy-150",
            Scenario::PgpoolConnect => "pgpool-connect",
            Scenario::Managed950 => "managed-950",
            Scenario::SessionState => "session-state",
            Scenario::SysbenchOltp => "sysbench-oltp",
        }
    }

    fn experiment(self) -> Experiment {
        let (connections_max, pool_size, scale, clients): (_, _, _, &'static [usize]) = match self {
            // RDS Proxy may take all of the server's connections; 100 is what the others pool.
            Scenario::RdsProxy => (550, 100, 4, &[100, 200, 300, 400, 500, 600, 700]),
            Scenario::ShortConnections => (300, 100, 10, &[100]),
            Scenario::ThousandClients => (1_100, 100, 20, &[1_000]),
            Scenario::Haproxy150 => (500, 100, 10, &[50, 150, 200]),
            // Its pools are as large as it takes for 100 clients to be served at once.
            Scenario::PgpoolConnect => (110, 100, 10, &[10, 20, 40, 80, 100, 200]),
            Scenario::Managed950 => (960, 100, 20, &[950, 1_000]),
            Scenario::SessionState => (300, 20, 10, &[200]),
            Scenario::SysbenchOltp => (300, 20, 1, &[10, 64]),
        };
        Experiment { connections_max, pool_size, scale, clients }
    }

    /// The runs that it is made of, one after the other.
    pub fn stages(self, asked: &Asked) -> Vec<Stage> {
        let experiment = self.experiment();
        let clients = if asked.clients.is_empty() { experiment.clients } else { &asked.clients };
        if self == Scenario::SessionState {
            return self.state_stages(asked, &experiment, clients);
        }
        let walls: &[usize] = match self {
            Scenario::Managed950 => &[300, 960],
            _ => &[experiment.connections_max],
        };
        walls.iter().map(|&wall| self.stage(asked, &experiment, clients, wall)).collect()
    }

    /// First what looking costs, over a pool that all must share; then what state needs, over a pool that gives
    /// every client a server if it must.
    fn state_stages(self, asked: &Asked, experiment: &Experiment, clients: &[usize]) -> Vec<Stage> {
        let mut asked = asked.clone();
        let has_howdah = asked.targets.iter().any(|kind| kind.is_howdah());
        if has_howdah && !asked.targets.contains(&Kind::HowdahOff) {
            asked.targets.push(Kind::HowdahOff);
        }
        let shared = self.stage(&asked, experiment, clients, experiment.connections_max);
        let loads: Vec<Load> = [0, 1, 10, 50].map(stateful).into();
        let setup = Setup::new(STATEFUL_CLIENTS, shared.setup.scale, &loads);
        let apart = Stage { plan: Plan { loads, ..shared.plan.clone() }, setup, shows_walls: true };
        vec![shared, apart]
    }

    fn stage(self, asked: &Asked, experiment: &Experiment, clients: &[usize], wall: usize) -> Stage {
        let loads: Vec<_> = clients.iter().flat_map(|&clients| self.loads(clients, wall)).collect();
        let pool_size = asked.pool_size.unwrap_or(experiment.pool_size);
        let mut setup = Setup::new(pool_size, asked.scale.unwrap_or(experiment.scale), &loads).walled(wall);
        match self {
            Scenario::RdsProxy => setup.fill_options = &["--unlogged-tables", "--foreign-keys"],
            Scenario::Haproxy150 => setup.sizes.haproxy_servers_max = Some(pool_size),
            _ => {}
        }
        let plan =
            Plan { targets: asked.targets.clone(), loads, rounds: asked.rounds, seconds: asked.seconds };
        Stage { plan, setup, shows_walls: true }
    }

    fn loads(self, clients: usize, wall: usize) -> Vec<Load> {
        let connect = |script, mode| Load::Connect { clients, script, mode, login: Login::Plain };
        match self {
            Scenario::RdsProxy => vec![Load::Burst { clients, each: 10 }],
            Scenario::ShortConnections => vec![connect(Script::Select, Mode::Extended)],
            Scenario::ThousandClients => {
                vec![Load::Pgbench { clients, script: Script::TpcB, mode: Mode::Extended }]
            }
            Scenario::Haproxy150 => vec![
                Load::Pgbench { clients, script: Script::Select, mode: Mode::Simple },
                connect(Script::Select, Mode::Simple),
            ],
            Scenario::PgpoolConnect => vec![connect(Script::TpcB, Mode::Simple)],
            Scenario::Managed950 => vec![Load::Walled { clients, wall }],
            Scenario::SessionState => {
                let of = |script, mode| Load::Pgbench { clients, script, mode };
                vec![
                    of(Script::Select, Mode::Simple),
                    of(Script::Select, Mode::Prepared),
                    of(Script::Sets, Mode::Simple),
                ]
            }
            Scenario::SysbenchOltp => [Oltp::ReadOnly, Oltp::ReadWrite]
                .into_iter()
                .map(|script| Load::Sysbench { clients, script })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
