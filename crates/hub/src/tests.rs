//! A hub of numbers: clients and servers are ids, time is what the test says.

mod cancel;
mod drain;
mod fanout;
mod limits;
mod login;
mod membership;
mod random;
mod reload;
mod vacancy;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use auth::hba::{Hba, Origin};
use auth::ident::IdentMaps;
use auth::scram::MockKey;
use auth::userlist::Userlist;
use model::{ClientId, Moment, Refusal, WorkerId};
use pool::{After, Checkout, Released, Slot};
use settings::Settings;

use crate::*;

pub(crate) type TestHub = Hub<u64, u64>;
pub(crate) type Cell = Arc<PoolCell<u64, u64>>;

pub(crate) const W0: WorkerId = WorkerId(0);

/// Two users, both with clear-text passwords.
pub(crate) const USERS: &str = "\"ann\" \"a\"\n\"bob\" \"b\"\n";

/// A hub, its clock, and ids for what is to come.
pub(crate) struct Bench {
    pub(crate) hub: TestHub,
    pub(crate) now: Moment,
    ids: u64,
}

/// The settings of an ini file's text, which is put behind `[pgbouncer]`.
pub(crate) fn settings(ini: &str) -> Settings {
    let text = format!("[pgbouncer]\nauth_type = trust\n{ini}");
    let outcome = settings::read("howdah.ini", &|_: &str| Ok(text.clone().into_bytes()));
    outcome.settings.expect("settings without problems")
}

pub(crate) fn inputs(ini: &str, users: &str) -> Inputs {
    let (userlist, problems) = Userlist::parse(users.as_bytes());
    assert!(problems.is_empty(), "{problems:?}");
    Inputs { settings: settings(ini), userlist, hba: Hba::default(), idents: IdentMaps::default() }
}

pub(crate) fn facts<'a>(database: &'a str, user: &'a str) -> Facts<'a> {
    Facts {
        database,
        database_may_exist: true,
        user,
        origin: Origin::Tcp { address: IpAddr::V4(Ipv4Addr::LOCALHOST), tls: false },
        certificate_name: None,
        system_user: None,
        is_own_user: false,
        replication: Replication::No,
    }
}

pub(crate) fn database(name: &str) -> Scope {
    Scope::Database(name.to_owned())
}

impl Bench {
    pub(crate) fn new(ini: &str) -> Bench {
        Bench::with(inputs(ini, USERS))
    }

    pub(crate) fn with(inputs: Inputs) -> Bench {
        Bench { hub: Hub::new(inputs, MockKey::new([7; 32])), now: Moment(1_000_000), ids: 0 }
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
    }

    pub(crate) fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(crate) fn identify(&mut self, facts: &Facts<'_>) -> Plan<u64, u64> {
        self.hub.identify(self.now, facts)
    }

    /// Takes the proof for granted.
    pub(crate) fn enter(
        &mut self,
        database: &str,
        user: &str,
    ) -> Result<(ClientId, Entered<u64, u64>), Refusal> {
        let seat = self.identify(&facts(database, user)).seat;
        let id = self.id();
        let entered = self.hub.enter(self.now, ClientId(id), &id, &seat, Evidence::None)?;
        Ok((ClientId(id), entered))
    }

    pub(crate) fn member(&mut self, database: &str, user: &str) -> (ClientId, Cell) {
        match self.enter(database, user) {
            Ok((id, Entered::Member(member))) => (id, member.cell),
            other => panic!("{user} enters {database}, not {other:?}"),
        }
    }

    pub(crate) fn refused(&mut self, database: &str, user: &str) -> Refusal {
        match self.enter(database, user) {
            Err(refusal) => refusal,
            Ok(entered) => panic!("{user} does not enter {database}: {entered:?}"),
        }
    }

    /// A client of the pool asks for a server; answers the places to open.
    pub(crate) fn wait(&mut self, cell: &Cell) -> Vec<Slot> {
        let id = self.id();
        match cell.lock().checkout(self.now, W0, &id, Moment::NEVER) {
            Checkout::Queued { open, .. } => open.collect(),
            other => panic!("no server is idle, not {other:?}"),
        }
    }

    /// A server of the pool, lent to a client.
    pub(crate) fn lend(&mut self, cell: &Cell) -> Slot {
        let open = self.wait(cell);
        assert_eq!(open.len(), 1);
        self.hub.open_server(self.now, cell.id).expect("no limit is reached");
        let server = self.id();
        let opened = cell.lock().opened(self.now, open[0], server, W0);
        assert!(matches!(opened.after, After::Handover { .. }));
        open[0]
    }

    pub(crate) fn release(&mut self, cell: &Cell, slot: Slot) -> After<u64, u64> {
        cell.lock().release(self.now, slot, W0, Released::Clean)
    }

    /// The server's socket is closed.
    pub(crate) fn close(&mut self, cell: &Cell, slot: Slot) -> Vec<Cell> {
        // Whoever waits in this pool comes again by a poke.
        let _ = cell.lock().closed(self.now, slot);
        self.hub.server_gone(self.now, cell.id)
    }

    pub(crate) fn close_all(&mut self, work: Work<u64, u64>) {
        for (cell, ended) in work.close {
            self.close(&cell, ended.slot);
        }
    }
}
