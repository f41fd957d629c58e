//! What is due by time, in all pools and among the pools themselves.

use std::time::Duration;

use console::Shutdown;
use model::{Moment, PoolId};

use crate::hub::{Hub, Record};
use crate::work::Work;

/// While servers are waited for, newly waiting clients are refused so often.
const REFUSE_EVERY: Duration = Duration::from_millis(333);

impl<C: Clone, S: Clone> Hub<C, S> {
    /// Does what is due.
    pub fn tick(&mut self, now: Moment) -> Work<C, S> {
        let mut work = Work::none();
        for record in self.pools.values() {
            let mut pool = record.cell.lock();
            if pool.next_tick() <= now {
                let due = pool.tick(now);
                work.due(&record.cell, due);
            }
        }
        if self.state.shutdown == Some(Shutdown::WaitForServers) {
            self.refuse_waiting(&mut work);
        }
        self.tick_clusters(now, &mut work);
        self.tick_vacancies(now, &mut work);
        self.drop_unused_pools(now);
        self.drop_unused_entries(now);
        work
    }

    /// When [`Hub::tick`] has something to do. A pool's own moment can become earlier without the hub: whoever queues a
    /// client looks at [`pool::Pool::next_tick`].
    pub fn next_tick(&self, now: Moment) -> Moment {
        let mut due = self.entries_due().min(self.clusters_due());
        for record in self.pools.values() {
            let pool = record.cell.lock().next_tick();
            due = due.min(pool).min(self.pool_due(record));
        }
        let refuse = match self.state.shutdown {
            Some(Shutdown::WaitForServers) => now + REFUSE_EVERY,
            _ => Moment::NEVER,
        };
        due.min(refuse).min(self.vacancies_due(now))
    }

    /// When a pool is forgotten: at once if its database is gone, else after `pool_idle_timeout`.
    fn pool_due(&self, record: &Record<C, S>) -> Moment {
        if record.clients > 0 || record.servers > 0 {
            return Moment::NEVER;
        }
        if self.keeps_reader(record) {
            return Moment::NEVER;
        }
        let pool = record.cell.lock();
        if !pool.is_empty() {
            Moment::NEVER
        } else if record.is_orphan || record.is_unproved || record.cell.key.reader.is_some() {
            Moment::default()
        } else if record.cell.is_forced && pool.limits().min_size > 0 {
            Moment::NEVER
        } else {
            record.unused_since.deadline(self.settings.general.pool_idle_timeout)
        }
    }

    fn drop_unused_pools(&mut self, now: Moment) {
        let records = self.pools.values();
        let over: Vec<PoolId> =
            records.filter(|record| self.pool_due(record) <= now).map(|record| record.cell.id).collect();
        for id in over {
            self.drop_pool(id);
        }
    }
}
