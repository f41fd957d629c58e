//! Databases that a client makes, drops, renames, moves or copies: nobody of ours may lie idle in them.
//!
//! PostgreSQL does this only while no session is in the database, and waits five seconds for the last one to go. An
//! application that has closed its connections has done its part; the servers that are left are ours to close. Where
//! clients are connected nothing is closed: then PostgreSQL says that the database is in use, as it would without us.

use std::sync::Arc;
use std::time::Duration;

use model::{Moment, PoolId};

use crate::cell::PoolCell;
use crate::fanout::Target;
use crate::hub::Hub;
use crate::work::Work;

/// As long as PostgreSQL waits, and a little more.
const LASTS: Duration = Duration::from_secs(6);
/// How often is looked for servers that have become idle since.
const AGAIN: Duration = Duration::from_millis(50);
/// So many are known at a time; the oldest makes room.
const VACANCIES_MAX: usize = 64;

/// A database that is to be left.
pub(crate) struct Vacancy {
    target: Target,
    until: Moment,
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// A client of the pool `from` is about to do that to the database of this name on its server.
    pub fn vacate(&mut self, now: Moment, from: PoolId, dbname: &str) -> Work<C, S> {
        let mut work = Work::none();
        let Some(mut target) = self.listen_target(from, b"") else { return work };
        dbname.clone_into(&mut target.dbname);
        self.vacancies.retain(|known| known.target != target);
        if self.vacancies.len() >= VACANCIES_MAX {
            self.vacancies.remove(0);
        }
        self.leave_database(now, &target, &mut work);
        self.vacancies.push(Vacancy { target, until: now + LASTS });
        work
    }

    /// The databases that are to be left, each with the pools whose servers would be in it.
    pub fn vacancies(&self) -> Vec<(Target, Vec<PoolId>)> {
        let pools = |target: &Target| self.pools_in(target).iter().map(|cell| cell.id).collect();
        self.vacancies.iter().map(|known| (known.target.clone(), pools(&known.target))).collect()
    }

    pub(crate) fn tick_vacancies(&mut self, now: Moment, work: &mut Work<C, S>) {
        if self.vacancies.is_empty() {
            return;
        }
        self.vacancies.retain(|known| known.until > now);
        let targets: Vec<Target> = self.vacancies.iter().map(|known| known.target.clone()).collect();
        for target in targets {
            self.leave_database(now, &target, work);
        }
    }

    pub(crate) fn vacancies_due(&self, now: Moment) -> Moment {
        if self.vacancies.is_empty() { Moment::NEVER } else { now + AGAIN }
    }

    /// Closes the idle servers of pools without clients. And what was said of a database that was not there yet no longer
    /// keeps clients away.
    fn leave_database(&self, now: Moment, target: &Target, work: &mut Work<C, S>) {
        for cell in self.pools_in(target) {
            let is_used = self.pools.get(&cell.id).is_none_or(|record| record.clients > 0);
            let mut pool = cell.lock();
            let open = pool.forget_refusal(now);
            if !is_used && !pool.is_drained() {
                let idle = pool.reconnect();
                work.close_all(&cell, idle);
            }
            work.open_all(&cell, open);
        }
    }

    fn pools_in(&self, target: &Target) -> Vec<Arc<PoolCell<C, S>>> {
        let is_there = |cell: &PoolCell<C, S>| {
            let database = self.database(&self.settings, &cell.key.database);
            let dbname = database.and_then(|own| own.dbname.as_ref()).unwrap_or(&cell.key.database);
            // Nearly all end here, before their hosts are looked at.
            *dbname == target.dbname && self.listen_target(cell.id, b"").as_ref() == Some(target)
        };
        let cells = self.pools.values().map(|record| &record.cell);
        cells.filter(|cell| is_there(cell)).map(Arc::clone).collect()
    }
}
