//! Pause, resume, kill, disable, reconnect, shutdown: what the console and the signals steer.

use console::{Failure, Shutdown};
use model::Refusal;
use model::{ClientId, Moment};

pub use console::Scope;

use crate::hub::Hub;
use crate::work::Work;

/// The state of the whole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// `PAUSE` or `KILL` without a name was said, or servers are waited for.
    is_paused: bool,
    /// A shutdown that waits for servers or clients.
    pub(crate) shutdown: Option<Shutdown>,
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// `PAUSE`: servers are closed as they come free, clients wait. Done when [`Hub::is_drained`].
    pub fn pause(&mut self, now: Moment, scope: &Scope) -> Result<Work<C, S>, Failure> {
        self.mark_paused(now, scope)?;
        let mut work = Work::none();
        for cell in self.cells(name_of(scope)) {
            let idle = cell.lock().pause();
            work.close_all(&cell, idle);
        }
        Ok(work)
    }

    /// `RESUME`: undoes `PAUSE` and `KILL` of the same scope.
    pub fn resume(&mut self, now: Moment, scope: &Scope) -> Result<Work<C, S>, Failure> {
        if self.state.shutdown.is_some() {
            return Err(Failure::ShuttingDown);
        }
        match scope {
            Scope::All if !self.state.is_paused => return Err(Failure::NotPaused),
            Scope::All => self.state.is_paused = false,
            Scope::Database(name) => match self.entries.get_mut(name) {
                None => return Err(Failure::NoSuchDatabase(name.clone())),
                Some(entry) if !entry.is_paused => return Err(Failure::DatabaseNotPaused(name.clone())),
                Some(entry) => entry.is_paused = false,
            },
        }
        let mut work = Work::none();
        for cell in self.cells(name_of(scope)) {
            if !self.is_paused(&cell.key.database) {
                let open = cell.lock().resume(now);
                work.open_all(&cell, open);
            }
        }
        Ok(work)
    }

    /// `KILL`: closes clients and servers at once, and pauses.
    pub fn kill(&mut self, now: Moment, scope: &Scope) -> Result<Work<C, S>, Failure> {
        if self.state.is_paused {
            return Err(Failure::AlreadyPaused);
        }
        self.mark_paused(now, scope)?;
        Ok(self.end_all(name_of(scope), &Refusal::DatabaseRemoved))
    }

    /// `DISABLE`: new clients are refused.
    pub fn disable(&mut self, now: Moment, name: &str) -> Result<(), Failure> {
        self.set_disabled(now, name, true)
    }

    /// `ENABLE`: undoes `DISABLE`.
    pub fn enable(&mut self, now: Moment, name: &str) -> Result<(), Failure> {
        self.set_disabled(now, name, false)
    }

    /// `RECONNECT`: every server is closed as soon as it is free. `WAIT_CLOSE` is done when [`Hub::is_renewed`].
    pub fn reconnect(&mut self, scope: &Scope) -> Result<Work<C, S>, Failure> {
        self.known(scope)?;
        Ok(self.renew(name_of(scope)))
    }

    /// `KILL_CLIENT`: whom to disconnect with [`Refusal::AdminForcedDisconnect`].
    pub fn kill_client(&self, id: ClientId) -> Result<C, Failure> {
        self.client(id).cloned().ok_or(Failure::ClientNotFound)
    }

    /// `SHUTDOWN` in a mode that waits, or one of the signals that mean it. A second call may go from waiting for
    /// clients to waiting for servers. Done when [`Hub::is_over`].
    pub fn shutdown(&mut self, mode: Shutdown) -> Work<C, S> {
        self.state.shutdown = Some(mode);
        let mut work = Work::none();
        if mode == Shutdown::WaitForServers {
            self.state.is_paused = true;
            for cell in self.cells(None) {
                let idle = cell.lock().pause();
                work.close_all(&cell, idle);
            }
            self.refuse_waiting(&mut work);
        }
        work
    }

    /// The shutdown under way.
    pub fn shutdown_mode(&self) -> Option<Shutdown> {
        self.state.shutdown
    }

    /// Whether all is paused together.
    pub fn is_all_paused(&self) -> bool {
        self.state.is_paused
    }

    /// Whether no server is left in the scope: `PAUSE` is done.
    pub fn is_drained(&self, scope: &Scope) -> bool {
        let within = |record: &&crate::hub::Record<C, S>| {
            name_of(scope).is_none_or(|name| record.cell.key.database == name)
        };
        self.pools
            .values()
            .filter(within)
            .all(|record| record.servers == 0 && record.cell.lock().is_drained())
    }

    /// Whether no server is left in the scope that was to be closed: `WAIT_CLOSE` is done.
    pub fn is_renewed(&self, scope: &Scope) -> bool {
        self.cells(name_of(scope)).iter().all(|cell| cell.lock().close_needed_left() == 0)
    }

    /// A name that `WAIT_CLOSE` may wait for.
    pub fn known(&self, scope: &Scope) -> Result<(), Failure> {
        match scope {
            Scope::Database(name) if !self.entries.contains_key(name) => {
                Err(Failure::NoSuchDatabase(name.clone()))
            }
            Scope::Database(_) | Scope::All => Ok(()),
        }
    }

    /// Whether the shutdown under way has nothing left to wait for.
    pub fn is_over(&self) -> bool {
        match self.state.shutdown {
            None => false,
            Some(Shutdown::Immediate) => true,
            Some(Shutdown::WaitForServers) => self.is_drained(&Scope::All),
            Some(Shutdown::WaitForClients) => self.admission.clients == 0,
        }
    }

    /// What newcomers are told while the process is going to end.
    pub(crate) fn shutdown_refusal(&self) -> Option<Refusal> {
        self.state.shutdown.map(|_| Refusal::ShuttingDown)
    }

    /// While servers are waited for, nobody will get one.
    pub(crate) fn refuse_waiting(&self, work: &mut Work<C, S>) {
        for record in self.pools.values() {
            let waiting = record.cell.lock().refuse_waiting();
            work.refuse_all(waiting, &Refusal::ServerShuttingDown);
        }
    }

    /// Whether pools of a database are paused, together with all or alone.
    pub(crate) fn is_paused(&self, database: &str) -> bool {
        self.state.is_paused || self.entries.get(database).is_some_and(|entry| entry.is_paused)
    }

    /// Marks servers to be closed when free.
    pub(crate) fn renew(&mut self, database: Option<&str>) -> Work<C, S> {
        let mut work = Work::none();
        for cell in self.cells(database) {
            let idle = cell.lock().reconnect();
            work.close_all(&cell, idle);
        }
        work
    }

    /// Ends all servers and clients at once; the pools stay paused where they are marked so.
    pub(crate) fn end_all(&mut self, database: Option<&str>, refusal: &Refusal) -> Work<C, S> {
        let mut work = Work::none();
        let cells = self.cells(database);
        for cell in &cells {
            let mut pool = cell.lock();
            if self.is_paused(&cell.key.database) {
                let idle = pool.pause();
                work.close_all(cell, idle);
            }
            let killed = pool.kill();
            work.close_all(cell, killed.servers);
            // Who waits has entered, or is the lookup of somebody who has not.
            work.refuse_all(killed.clients, refusal);
        }
        let of_pools = |pool: Option<model::PoolId>| cells.iter().any(|cell| Some(cell.id) == pool);
        let clients = self.clients.iter().filter(|resident| of_pools(resident.pool));
        work.disconnect.extend(clients.map(|resident| (resident.handle.clone(), refusal.clone())));
        work
    }

    fn mark_paused(&mut self, now: Moment, scope: &Scope) -> Result<(), Failure> {
        match scope {
            Scope::All if self.state.is_paused => Err(Failure::AlreadyPaused),
            Scope::All => {
                self.state.is_paused = true;
                Ok(())
            }
            Scope::Database(name) => {
                self.ensure_entry(now, name);
                let entry =
                    self.entries.get_mut(name).ok_or_else(|| Failure::NoSuchDatabase(name.clone()))?;
                entry.is_paused = true;
                Ok(())
            }
        }
    }

    fn set_disabled(&mut self, now: Moment, name: &str, is_disabled: bool) -> Result<(), Failure> {
        self.ensure_entry(now, name);
        let entry = self.entries.get_mut(name).ok_or_else(|| Failure::NoSuchDatabase(name.to_owned()))?;
        entry.is_disabled = is_disabled;
        Ok(())
    }
}

fn name_of(scope: &Scope) -> Option<&str> {
    match scope {
        Scope::All => None,
        Scope::Database(name) => Some(name),
    }
}
