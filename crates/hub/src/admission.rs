//! Who may come in: places for logins and clients, and the way from a proof to a pool.

use std::sync::Arc;

use console::Role;
use model::{ClientId, Moment, Refusal};
use pool::Opens;

use crate::cell::PoolCell;
use crate::hub::Hub;
use crate::policy::ClientPolicy;
use crate::route::Seat;
use crate::secrets::Evidence;

/// Numbers of connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Admission {
    /// Not logged in yet.
    pub(crate) logins: u32,
    /// Entered, the console's not counted.
    pub(crate) clients: u32,
}

/// `login_connections_max` is reached: the connection is closed without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginsFull;

/// What became of a client that has proved who it is.
#[derive(Debug)]
pub enum Entered<C, S> {
    /// It is in the console.
    Console(Role),
    /// It is a client of a pool.
    Member(Member<C, S>),
}

/// A client's place.
#[derive(Debug)]
pub struct Member<C, S> {
    /// Its pool.
    pub cell: Arc<PoolCell<C, S>>,
    /// What holds for its session.
    pub policy: Arc<ClientPolicy>,
    /// Servers to open because the pool has a client now (`min_pool_size`).
    pub open: Opens,
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// A socket was accepted. If it is let in, [`Hub::login_over`] follows exactly once.
    pub fn admit(&mut self) -> Result<(), LoginsFull> {
        if self.admission.logins >= self.settings.general.login_connections_max {
            return Err(LoginsFull);
        }
        self.admission.logins += 1;
        Ok(())
    }

    /// The login of an admitted socket has ended: it has entered, or is closed.
    pub fn login_over(&mut self) {
        self.admission.logins = self.admission.logins.saturating_sub(1);
    }

    /// Sockets that are not logged in.
    pub fn logins(&self) -> u32 {
        self.admission.logins
    }

    /// A client has proved who it is: it gets its place, or is told what stands against it. What it showed is kept
    /// for logins to servers in its name.
    pub fn enter(
        &mut self,
        now: Moment,
        client: ClientId,
        handle: &C,
        seat: &Seat,
        evidence: Evidence,
    ) -> Result<Entered<C, S>, Refusal> {
        if seat.is_console {
            let role = self.console_login(seat).role().ok_or(Refusal::NotAllowed)?;
            self.settle(client, handle, seat, None);
            return Ok(Entered::Console(role));
        }
        if let Some(refusal) = self.shutdown_refusal() {
            return Err(refusal);
        }
        if self.is_full() {
            return Err(Refusal::MaxClientConn);
        }
        if !seat.may_exist || !self.ensure_entry(now, &seat.database) {
            return Err(Refusal::NoSuchDatabase(seat.database.clone()));
        }
        if self.entries.get(&seat.database).is_some_and(|entry| entry.is_disabled) {
            return Err(Refusal::DatabaseDisabled(seat.database.clone()));
        }
        self.check_client_limits(seat)?;
        self.secrets.learn(&seat.database, &seat.user, evidence);
        self.join(now, client, handle, seat)
    }

    /// The server of a client that logs in to it itself has let it in: its pool is for somebody who exists.
    pub fn let_in(&mut self, pool: model::PoolId) {
        if let Some(record) = self.pools.get_mut(&pool) {
            record.is_unproved = false;
        }
    }

    /// A client that had entered is gone. Answers its pool, if that is forgotten at once.
    pub fn leave(&mut self, now: Moment, client: ClientId) -> Option<model::PoolId> {
        let pool = self.clients.remove(client).and_then(|resident| self.part(now, &resident))?;
        self.drop_pool_if_over(pool);
        (!self.pools.contains_key(&pool)).then_some(pool)
    }

    fn part(&mut self, now: Moment, resident: &crate::residents::Resident<C>) -> Option<model::PoolId> {
        let pool = resident.pool?;
        self.admission.clients -= 1;
        self.count_user(&resident.user, |counts| counts.clients -= 1);
        let record = self.pools.get_mut(&pool)?;
        record.clients -= 1;
        record.unused_since = now;
        let is_last = record.clients == 0;
        let cell = Arc::clone(&record.cell);
        let is_passing = record.is_orphan || record.is_unproved;
        if !record.is_orphan
            && let Some(entry) = self.entries.get_mut(&cell.key.database)
        {
            entry.clients -= 1;
            entry.unused_since = now;
        }
        if is_last && !cell.is_forced {
            // Nothing is opened for having fewer clients.
            let _ = cell.lock().keep_min(now, false);
        }
        is_passing.then_some(pool)
    }

    pub(crate) fn console_login<'a>(&'a self, seat: &'a Seat) -> console::Login<'a> {
        console::Login {
            user: &seat.user,
            admin_users: &self.settings.general.admin_users,
            stats_users: &self.settings.general.stats_users,
            own_user: seat.is_own_user,
            auth_any: self.settings.general.auth_type == settings::AuthType::Any,
        }
    }

    /// Whether `max_client_conn` is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.admission.clients >= self.settings.general.max_client_conn
    }

    fn join(
        &mut self,
        now: Moment,
        client: ClientId,
        handle: &C,
        seat: &Seat,
    ) -> Result<Entered<C, S>, Refusal> {
        let settings = Arc::clone(&self.settings);
        let forced = self.database(&settings, &seat.database).and_then(|database| database.user.as_deref());
        let is_any = settings.general.auth_type == settings::AuthType::Any && !seat.is_passthrough;
        if forced.is_none() && is_any {
            return Err(Refusal::BouncerConfigError);
        }
        let server_user = forced.unwrap_or(&seat.user);
        if seat.is_passthrough && forced.is_some() {
            // Changed since it was looked at: that user is not the client's.
            return Err(Refusal::DatabaseChanged);
        }
        let count = self.pools.len();
        let cell = self.pool_of(now, &seat.database, server_user);
        let is_new = self.pools.len() > count;
        let policy = self.policy(cell.id, &seat.user).ok_or(Refusal::BouncerConfigError)?;
        if let Some(record) = self.pools.get_mut(&cell.id) {
            record.clients += 1;
            record.is_unproved = seat.is_passthrough && (is_new || record.is_unproved);
        }
        if let Some(entry) = self.entries.get_mut(&seat.database) {
            entry.clients += 1;
        }
        self.admission.clients += 1;
        self.count_user(&seat.user, |counts| counts.clients += 1);
        self.settle(client, handle, seat, Some(cell.id));
        let open = cell.lock().keep_min(now, !seat.is_passthrough);
        Ok(Entered::Member(Member { cell, policy, open }))
    }

    fn settle(&mut self, client: ClientId, handle: &C, seat: &Seat, pool: Option<model::PoolId>) {
        let user = self.user_name(&seat.user);
        self.clients.insert(client, handle.clone(), pool, user);
    }

    /// `max_db_client_connections` and `max_user_client_connections`, which do not concern administrators.
    fn check_client_limits(&self, seat: &Seat) -> Result<(), Refusal> {
        let is_admin = self.settings.general.admin_users.contains(&seat.user);
        let Some(database) = self.database(&self.settings, &seat.database) else { return Ok(()) };
        let effective = self.settings.effective(database, &seat.user);
        let in_database = self.entries.get(&seat.database).map_or(0, |entry| entry.clients);
        let of_user = self.user_counts(&seat.user).clients;
        if is_admin {
            Ok(())
        } else if effective.max_db_client_connections().is_some_and(|most| in_database >= most) {
            Err(Refusal::MaxDbClientConnections)
        } else if effective.max_user_client_connections().is_some_and(|most| of_user >= most) {
            Err(Refusal::MaxUserClientConnections)
        } else {
            Ok(())
        }
    }
}
