//! Databases that a client makes, drops, renames or copies are left by all connections that nobody uses.
//!
//! Which those are, the hub says of servers; the connections of our own, which wait for the next question, are known here.

use model::PoolId;

use super::Control;
use crate::home::Home;

impl Control {
    /// A client of this pool is about to do that.
    pub(super) fn vacate(&self, home: &Home, names: &[Box<[u8]>]) {
        for name in names.iter().filter_map(|name| std::str::from_utf8(name).ok()) {
            tracing::debug!("{:?}: the database {name} is to be left", home.cell);
            let work = self.shared.hub.lock().vacate(self.shared.clock.now(), home.cell.id, name);
            self.shared.carry_out(work);
        }
        self.leave_databases();
    }

    /// The same, for as long as PostgreSQL may wait for it.
    pub(super) fn leave_databases(&self) {
        let vacancies: Vec<(hub::Target, Vec<PoolId>)> = self.shared.hub.lock().vacancies();
        for (target, pools) in vacancies {
            self.shared.listeners.leave_database(&target);
            self.lookups.leave_database(&target.dbname);
            self.catalogs.forget(&pools);
        }
    }
}
