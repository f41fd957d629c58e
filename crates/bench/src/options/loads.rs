//! Which loads a command line means: the names it gives, or all, each with its own numbers of clients.

use super::{LoadName, Mode, Options};
use crate::plan::{Direction, Load, Login, Oltp, Script};

const ALL: [LoadName; 10] = [
    LoadName::Pgbench,
    LoadName::Tpcb,
    LoadName::Connect,
    LoadName::Row64k,
    LoadName::Copy,
    LoadName::Sysbench,
    LoadName::Crowd,
    LoadName::Canned,
    LoadName::Churn,
    LoadName::Memory,
];
const MODES: [Mode; 3] = [Mode::Simple, Mode::Extended, Mode::Prepared];
const LOGINS: [Login; 3] = [Login::Plain, Login::Scram, Login::Tls];
const BULK_LOGINS: [Login; 2] = [Login::Plain, Login::Tls];

impl Options {
    /// Every load, in the order of the report.
    pub(super) fn all_loads(&self) -> Vec<Load> {
        self.load_names().into_iter().flat_map(|name| self.loads_of(name)).collect()
    }

    fn load_names(&self) -> Vec<LoadName> {
        let mut names = Vec::new();
        let memory = self.memory.then_some(LoadName::Memory);
        for name in self.loads.iter().copied().chain(memory) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            let quick = [LoadName::Pgbench, LoadName::Canned];
            names.extend(if self.quick { &quick[..] } else { &ALL[..] });
        }
        names
    }

    fn loads_of(&self, name: LoadName) -> Vec<Load> {
        let counts = |usual: &[usize]| self.clients_or(usual);
        match name {
            LoadName::Pgbench => self.pgbench(Script::Select),
            LoadName::Tpcb => self.pgbench(Script::TpcB),
            LoadName::Connect => self.connect(),
            LoadName::Row64k => self.each_bulk_login(|login| {
                counts(&[20]).into_iter().map(|clients| Load::WideRow { clients, login }).collect()
            }),
            LoadName::Copy => self.each_bulk_login(|login| {
                [Direction::Out, Direction::In].map(|direction| Load::Copy { direction, login }).into()
            }),
            LoadName::Sysbench => [Oltp::ReadOnly, Oltp::ReadWrite]
                .into_iter()
                .flat_map(|script| {
                    counts(&[20]).into_iter().map(move |clients| Load::Sysbench { clients, script })
                })
                .collect(),
            LoadName::Crowd => counts(&[10_000]).into_iter().map(|clients| Load::Crowd { clients }).collect(),
            LoadName::Canned => {
                let usual: &[usize] = if self.quick { &[20, 200] } else { &[1, 20, 200, 1_000, 10_000] };
                counts(usual).into_iter().map(|clients| Load::Canned { clients }).collect()
            }
            LoadName::Churn => {
                counts(&[1, 50, 100]).into_iter().map(|clients| Load::Churn { clients }).collect()
            }
            LoadName::Memory => self.idle_clients.iter().map(|&clients| Load::Memory { clients }).collect(),
        }
    }

    /// How a client proved who it is does nothing to its bulk; that it comes through TLS does.
    fn each_bulk_login(&self, loads: impl Fn(Login) -> Vec<Load>) -> Vec<Load> {
        let logins = BULK_LOGINS.into_iter();
        let wanted = |login: &Login| self.logins.is_empty() || self.logins.contains(login);
        logins.filter(wanted).flat_map(loads).collect()
    }

    fn pgbench(&self, script: Script) -> Vec<Load> {
        let mut loads = Vec::new();
        for mode in self.modes_or_usual() {
            let usual: &[usize] = match (script, mode) {
                _ if self.quick => &[20, 200],
                (Script::Select, Mode::Simple) => &[1, 20, 200, 1_000],
                (Script::Select, _) => &[20, 200],
                _ => &[20],
            };
            let clients = self.clients_or(usual).into_iter();
            loads.extend(clients.map(|clients| Load::Pgbench { clients, script, mode }));
        }
        loads
    }

    fn connect(&self) -> Vec<Load> {
        let (script, mode) = (Script::Select, self.modes.first().copied().unwrap_or(Mode::Simple));
        let logins = if self.logins.is_empty() { &LOGINS[..] } else { &self.logins };
        let mut loads = Vec::new();
        for &login in logins {
            let usual: &[usize] = if login == Login::Plain { &[1, 50] } else { &[50] };
            let clients = self.clients_or(usual).into_iter();
            loads.extend(clients.map(|clients| Load::Connect { clients, script, mode, login }));
        }
        loads
    }

    fn modes_or_usual(&self) -> Vec<Mode> {
        match &self.modes[..] {
            [] if self.quick => vec![Mode::Simple],
            [] => MODES.to_vec(),
            given => given.to_vec(),
        }
    }

    fn clients_or(&self, usual: &[usize]) -> Vec<usize> {
        if self.clients.is_empty() { usual.to_vec() } else { self.clients.clone() }
    }
}
