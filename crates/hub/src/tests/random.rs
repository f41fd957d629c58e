//! Random events: what is counted is what is there, and no limit is ever passed.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Enter { database: usize, user: usize },
    Leave(usize),
    Wait(usize),
    Opened(usize),
    Failed(usize),
    Release(usize),
    Close(usize),
    Pause(Option<usize>),
    Resume(Option<usize>),
    Kill(usize),
    Reconnect,
    Reload(usize),
    Tick(u64),
}

const DATABASES: [&str; 4] = ["one", "two", "three", "four"];
const NAMES: [&str; 2] = ["ann", "bob"];

/// `three` and `four` are made from `*` or do not exist.
const SETTINGS: [&str; 3] = [
    "max_client_conn = 6\nautodb_idle_timeout = 5\npool_idle_timeout = 5\ndefault_pool_size = 2\n\
     max_db_connections = 3\nmax_user_connections = 4\n[databases]\none = host=a,b\ntwo = host=h\n* = host=h\n",
    "max_client_conn = 4\ndefault_pool_size = 1\nmax_user_client_connections = 3\nmin_pool_size = 1\n\
     max_db_connections = 2\nmax_user_connections = 3\n[databases]\none = host=c\n* = host=i\n",
    "max_client_conn = 8\nmax_db_client_connections = 2\nserver_lifetime = 3\ndefault_pool_size = 3\n\
     max_db_connections = 2\nmax_user_connections = 2\n[databases]\none = host=a user=ann\ntwo = host=h\n",
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = 0usize..32;
    let database = 0..DATABASES.len();
    let scope = prop::option::of(0..DATABASES.len());
    let step = prop_oneof![
        6 => (database.clone(), 0..NAMES.len()).prop_map(|(database, user)| Step::Enter { database, user }),
        3 => at.clone().prop_map(Step::Leave),
        8 => at.clone().prop_map(Step::Wait),
        8 => at.clone().prop_map(Step::Opened),
        2 => at.clone().prop_map(Step::Failed),
        6 => at.clone().prop_map(Step::Release),
        5 => at.prop_map(Step::Close),
        1 => scope.clone().prop_map(Step::Pause),
        2 => scope.prop_map(Step::Resume),
        1 => database.prop_map(Step::Kill),
        1 => Just(Step::Reconnect),
        1 => (0..SETTINGS.len()).prop_map(Step::Reload),
        3 => (0u64..10).prop_map(Step::Tick),
    ];
    prop::collection::vec(step, 1..100)
}

struct World {
    bench: Bench,
    clients: Vec<(ClientId, Cell)>,
    /// Allowed, not connected yet.
    opening: Vec<(Cell, Slot)>,
    lent: Vec<(Cell, Slot)>,
    idle: Vec<(Cell, Slot)>,
    /// The pool wants them closed.
    closing: Vec<(Cell, Slot)>,
}

fn pick<T>(list: &[T], at: usize) -> Option<usize> {
    if list.is_empty() { None } else { Some(at % list.len()) }
}

impl World {
    fn work(&mut self, work: Work<u64, u64>) {
        for (cell, ended) in work.close {
            self.take(&cell, ended.slot);
            self.closing.push((cell, ended.slot));
        }
        for (handle, _) in work.disconnect {
            if let Some(at) = self.clients.iter().position(|(id, _)| id.0 == handle) {
                let (id, _) = self.clients.remove(at);
                self.bench.hub.leave(self.bench.now, id);
            }
        }
        for (cell, open) in work.open {
            open.for_each(|slot| self.open(&cell, slot));
        }
    }

    /// Takes a server out of the list that it is in.
    fn take(&mut self, cell: &Cell, slot: Slot) {
        for list in [&mut self.lent, &mut self.idle] {
            list.retain(|(of, held)| !(Arc::ptr_eq(of, cell) && *held == slot));
        }
    }

    fn open(&mut self, cell: &Cell, slot: Slot) {
        match self.bench.hub.open_server(self.bench.now, cell.id) {
            Ok(_) => self.opening.push((Arc::clone(cell), slot)),
            Err(refusal) => {
                cell.lock().open_refused(self.bench.now, slot);
                if let OpenRefusal::Limit { evict: Some((other, ended)) } = refusal {
                    self.take(&other, ended.slot);
                    self.closing.push((other, ended.slot));
                }
            }
        }
    }

    fn gone(&mut self, cell: &Cell) {
        for poked in self.bench.hub.server_gone(self.bench.now, cell.id) {
            let open = poked.lock().poke(self.bench.now);
            open.for_each(|slot| self.open(&poked, slot));
        }
    }

    fn after(&mut self, cell: Cell, slot: Slot, after: After<u64, u64>) {
        match after {
            After::Handover { .. } => self.lent.push((cell, slot)),
            After::Idle => self.idle.push((cell, slot)),
            After::Close => self.closing.push((cell, slot)),
            After::Canceling | After::Dedicated => unreachable!("nobody asked for that"),
        }
    }

    fn step(&mut self, step: &Step) {
        let now = self.bench.now;
        match *step {
            Step::Enter { database, user } => {
                if let Ok((id, Entered::Member(member))) = self.bench.enter(DATABASES[database], NAMES[user])
                {
                    self.clients.push((id, Arc::clone(&member.cell)));
                    member.open.for_each(|slot| self.open(&member.cell, slot));
                }
            }
            Step::Leave(at) => {
                if let Some(at) = pick(&self.clients, at) {
                    let (id, _) = self.clients.remove(at);
                    self.bench.hub.leave(now, id);
                }
            }
            Step::Wait(at) => self.wait(at),
            Step::Opened(at) => {
                if let Some(at) = pick(&self.opening, at) {
                    let (cell, slot) = self.opening.remove(at);
                    let opened = cell.lock().opened(now, slot, 0, W0);
                    opened.open.for_each(|slot| self.open(&cell, slot));
                    self.after(cell, slot, opened.after);
                }
            }
            Step::Failed(at) => {
                if let Some(at) = pick(&self.opening, at) {
                    let (cell, slot) = self.opening.remove(at);
                    let failed = cell.lock().open_failed(now, slot, pool::Failure::Connect);
                    failed.open.for_each(|slot| self.open(&cell, slot));
                    self.gone(&cell);
                }
            }
            Step::Release(at) => {
                if let Some(at) = pick(&self.lent, at) {
                    let (cell, slot) = self.lent.remove(at);
                    let after = self.bench.release(&cell, slot);
                    self.after(cell, slot, after);
                }
            }
            Step::Close(at) => {
                if let Some(at) = pick(&self.closing, at) {
                    let (cell, slot) = self.closing.remove(at);
                    let open = cell.lock().closed(now, slot);
                    self.gone(&cell);
                    open.for_each(|slot| self.open(&cell, slot));
                }
            }
            Step::Reload(which) => {
                let work = self.bench.hub.reload(now, inputs(SETTINGS[which], USERS)).work;
                self.work(work);
            }
            Step::Tick(seconds) => {
                self.bench.pass(seconds);
                let work = self.bench.hub.tick(self.bench.now);
                self.work(work);
            }
            Step::Pause(_) | Step::Resume(_) | Step::Kill(_) | Step::Reconnect => self.command(step),
        }
    }

    fn wait(&mut self, at: usize) {
        let Some(at) = pick(&self.clients, at) else { return };
        let cell = Arc::clone(&self.clients[at].1);
        let answer = cell.lock().checkout(self.bench.now, W0, &0, self.bench.now + Duration::from_secs(20));
        match answer {
            Checkout::Granted(grant) => {
                self.take(&cell, grant.slot);
                self.lent.push((cell, grant.slot));
            }
            Checkout::Queued { open, .. } => open.for_each(|slot| self.open(&cell, slot)),
            Checkout::Refused(_) => unreachable!("no login fails here"),
        }
    }

    fn command(&mut self, step: &Step) {
        let now = self.bench.now;
        let scope = |which: Option<usize>| which.map_or(Scope::All, |which| database(DATABASES[which]));
        let hub = &mut self.bench.hub;
        let work = match *step {
            Step::Pause(which) => hub.pause(now, &scope(which)),
            Step::Resume(which) => hub.resume(now, &scope(which)),
            Step::Kill(which) => hub.kill(now, &scope(Some(which))),
            _ => hub.reconnect(&Scope::All),
        };
        if let Ok(work) = work {
            self.work(work);
        }
    }

    fn assert_agrees(&self, before: &BTreeMap<String, u64>) {
        let hub = &self.bench.hub;
        let live = [&self.opening, &self.lent, &self.idle, &self.closing];
        let mut servers: BTreeMap<&str, u64> = BTreeMap::new();
        for (cell, _) in live.into_iter().flatten() {
            *servers.entry(cell.key.user.as_str()).or_default() += 1;
        }
        assert_eq!(u64::from(hub.servers()), servers.values().sum::<u64>(), "servers in all");
        for row in hub.user_rows() {
            let counted = servers.get(row.name.as_str()).copied().unwrap_or(0);
            assert_eq!(row.servers, counted, "servers of {}", row.name);
            let grown = row.servers > before.get(&row.name).copied().unwrap_or(0);
            assert!(
                !grown || row.servers_max == 0 || row.servers <= row.servers_max,
                "servers of {}",
                row.name
            );
        }
        let mut clients = 0;
        for row in hub.database_rows() {
            clients += row.clients;
            let cells = hub.cells(Some(&row.name));
            let own = |cell: &Cell| cells.iter().any(|own| Arc::ptr_eq(own, cell));
            let counted = live.into_iter().flatten().filter(|(cell, _)| own(cell)).count();
            assert_eq!(row.servers, counted as u64, "servers of {}", row.name);
            let grown = row.servers > before.get(&format!("db {}", row.name)).copied().unwrap_or(0);
            assert!(!grown || row.servers <= row.servers_max, "{row:?}");
        }
        assert_eq!(clients, self.clients.len() as u64, "clients in all");
        for cell in hub.pools() {
            cell.lock().assert_consistent(self.bench.now);
        }
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        let users = self.bench.hub.user_rows().into_iter().map(|row| (row.name, row.servers));
        let databases = self.bench.hub.database_rows().into_iter();
        users.chain(databases.map(|row| (format!("db {}", row.name), row.servers))).collect()
    }

    /// When all is closed and all have left, nothing is left.
    fn assert_empties(&mut self) {
        self.command(&Step::Pause(None));
        for _ in 0..100 {
            for (id, _) in std::mem::take(&mut self.clients) {
                self.bench.hub.leave(self.bench.now, id);
            }
            self.step(&Step::Tick(30));
            while !self.opening.is_empty() {
                self.step(&Step::Opened(0));
            }
            while !self.lent.is_empty() {
                self.step(&Step::Release(0));
            }
            while !self.closing.is_empty() {
                self.step(&Step::Close(0));
            }
        }
        assert!(self.idle.is_empty(), "a paused pool keeps no idle server");
        assert!(self.bench.hub.is_drained(&Scope::All));
        assert_eq!(self.bench.hub.servers(), 0);
        assert!(self.bench.hub.next_tick(self.bench.now) > self.bench.now, "nothing is left to do");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn hub_counts_what_is_there(steps in steps()) {
        let mut world = World {
            bench: Bench::new(SETTINGS[0]),
            clients: Vec::new(),
            opening: Vec::new(),
            lent: Vec::new(),
            idle: Vec::new(),
            closing: Vec::new(),
        };
        for step in &steps {
            let before = world.counts();
            world.step(step);
            world.assert_agrees(&before);
        }
        world.assert_empties();
    }
}
