//! Limits on servers that span pools: those of a database and of a user, exact.

use std::sync::Arc;
use std::time::Duration;

use auth::LoginSecret;
use cluster::Wanted;
use model::{Moment, PoolId};
use pool::Ended;
use settings::{ServerAuth, SslMode};

use crate::cell::{PoolCell, PoolKey};
use crate::clusters::{NodeRef, Place, places};
use crate::fanout::Target;
use crate::hub::{Hub, Record};

/// How to open one server.
#[derive(Clone, Debug)]
pub struct OpenOrder {
    /// Where, in the order to try; never empty.
    pub places: Vec<Place>,
    /// The database's name on the server.
    pub dbname: String,
    /// Who we log in as.
    pub user: String,
    /// What with.
    pub secret: LoginSecret,
    /// What a server may ask of us.
    pub allowed: Vec<ServerAuth>,
    /// Parameters of the startup message besides user and database.
    pub parameters: Vec<(&'static str, String)>,
    /// TLS over TCP; never over Unix sockets.
    pub tls: SslMode,
    /// Run before the first use.
    pub connect_query: Option<String>,
    /// For connecting and logging in together.
    pub connect_timeout: Duration,
    /// The node, if the hosts are monitored: it counts the server until [`Hub::node_released`].
    pub node: Option<NodeRef>,
}

/// Why a server is not to be opened: tell the pool by [`pool::Pool::open_refused`].
#[derive(Debug)]
pub enum OpenRefusal<C, S> {
    /// `max_db_connections` or `max_user_connections` is reached. The pool is poked when there is room.
    Limit {
        /// An idle server of another pool to close for it, as in [`crate::Work::close`].
        evict: Option<(Arc<PoolCell<C, S>>, Ended<S>)>,
    },
    /// The database entry is gone.
    Gone,
    /// No node of the cluster is what the entry wants: the pool is held now.
    NoNode,
}

/// Which of the limits is reached.
#[derive(Clone, Copy)]
enum Reached {
    Database,
    User,
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// A pool wants to open a server. If it may, the server counts until [`Hub::server_gone`].
    pub fn open_server(&mut self, now: Moment, pool: PoolId) -> Result<OpenOrder, OpenRefusal<C, S>> {
        self.open_for(now, pool, false)
    }

    /// As [`Hub::open_server`], for a server that a client waits for which is in no queue: it shares none.
    pub fn open_own_server(&mut self, now: Moment, pool: PoolId) -> Result<OpenOrder, OpenRefusal<C, S>> {
        self.open_for(now, pool, true)
    }

    fn open_for(
        &mut self,
        now: Moment,
        pool: PoolId,
        is_waited_for: bool,
    ) -> Result<OpenOrder, OpenRefusal<C, S>> {
        let Some(record) = self.pools.get(&pool).filter(|record| !record.is_orphan) else {
            return Err(OpenRefusal::Gone);
        };
        let cell = Arc::clone(&record.cell);
        let settings = Arc::clone(&self.settings);
        let Some(database) = self.database(&settings, &cell.key.database) else {
            return Err(OpenRefusal::Gone);
        };
        if let Some(reached) = self.limit_reached(&cell) {
            if let Some(record) = self.pools.get_mut(&pool) {
                record.is_blocked = true;
            }
            return Err(OpenRefusal::Limit { evict: self.evict_for(&cell, reached, is_waited_for) });
        }
        let Ok(chosen) = self.choose(now, &cell.key) else {
            cell.lock().hold(now);
            return Err(OpenRefusal::NoNode);
        };
        let mut order = self.order(&cell, database);
        match chosen {
            Some((node, place)) => (order.node, order.places) = (Some(node), vec![place]),
            None => order.places = self.places(&cell.key.database, database),
        }
        self.count_server(pool, 1);
        Ok(order)
    }

    /// How to reach the servers of a pool for a lookup of a user. Such a connection serves many clients and is not one
    /// of the pool's.
    pub fn lookup_order(&mut self, now: Moment, cell: &PoolCell<C, S>) -> Option<OpenOrder> {
        self.shared_order(now, cell, false)
    }

    fn shared_order(&mut self, now: Moment, cell: &PoolCell<C, S>, is_of_primary: bool) -> Option<OpenOrder> {
        let settings = Arc::clone(&self.settings);
        let database = self.database(&settings, &cell.key.database)?;
        let mut order = self.order(cell, database);
        match self.any_node(now, &cell.key, is_of_primary) {
            Some((node, place)) => (order.node, order.places) = (Some(node), vec![place]),
            // Who is the primary nobody knows now; any other would be the wrong one.
            None if is_of_primary && self.is_choosy(&cell.key) => return None,
            None => order.places = self.places(&cell.key.database, database),
        }
        // There is none as long as the members are not known.
        (!order.places.is_empty()).then_some(order)
    }

    /// Whether a pool's servers must be on nodes of a certain role.
    fn is_choosy(&self, key: &PoolKey) -> bool {
        self.cluster_of(key).is_some_and(|(_, wanted, _)| wanted != Wanted::Any)
    }

    /// How to reach the servers of a pool to listen there, which is on the primary; `None` if its database is paused or
    /// gone, or there is no primary.
    pub fn listen_order(&mut self, now: Moment, cell: &PoolCell<C, S>) -> Option<OpenOrder> {
        if self.is_paused(&cell.key.database) { None } else { self.shared_order(now, cell, true) }
    }

    /// What a listener for a client of this pool must reach, to hear what its servers would; `None` if the pool is
    /// gone.
    pub fn listen_target(&self, pool: PoolId, encoding: &[u8]) -> Option<Target> {
        let key = &self.pools.get(&pool)?.cell.key;
        let database = self.database(&self.settings, &key.database)?;
        Some(Target {
            places: match (&database.topology, places(&self.settings, database)) {
                // Until the members are told: no other engine's are meant.
                (Some(topology), none) if none.is_empty() => crate::topology::landmark(topology),
                (_, places) => places,
            },
            dbname: database.dbname.clone().unwrap_or_else(|| key.database.clone()),
            encoding: encoding.into(),
        })
    }

    fn order(&self, cell: &PoolCell<C, S>, database: &settings::Database) -> OpenOrder {
        let key = &cell.key;
        let secret = self.secrets.for_server(Some(database), &key.database, &key.user, cell.is_forced);
        let settings = Arc::clone(&self.settings);
        let general = &settings.general;
        OpenOrder {
            places: Vec::new(),
            dbname: database.dbname.clone().unwrap_or_else(|| key.database.clone()),
            user: match &database.server_user_suffix {
                Some(suffix) if !cell.is_forced && !key.user.ends_with(suffix) => {
                    format!("{}{suffix}", key.user)
                }
                _ => key.user.clone(),
            },
            secret,
            allowed: general.server_auth_allowed.clone(),
            parameters: parameters(database),
            tls: general.server_tls_sslmode,
            connect_query: database.connect_query.clone().filter(|query| !query.is_empty()),
            connect_timeout: general.server_connect_timeout,
            node: None,
        }
    }

    /// A server that [`Hub::open_server`] allowed was connected to the host of this place in the order's list; hosts
    /// before it had failed.
    pub fn reached_host(&mut self, pool: PoolId, place: usize) {
        let Some(cell) = self.pool(pool).map(Arc::clone) else { return };
        if let Some(entry) = self.entries.get_mut(&cell.key.database) {
            entry.host_next = entry.host_next.wrapping_add(place);
        }
    }

    /// A server is gone, or never came to be: its socket is closed and [`pool::Pool::closed`] or
    /// [`pool::Pool::open_failed`] has been called. To be called exactly once for each [`Hub::open_server`] that allowed
    /// one. Answers the pools that wait for the room it leaves, who waits
    /// longest first: poke them in this order.
    pub fn server_gone(&mut self, now: Moment, pool: PoolId) -> Vec<Arc<PoolCell<C, S>>> {
        let Some(cell) = self.pool(pool).map(Arc::clone) else { return Vec::new() };
        self.count_server(pool, -1);
        let mut is_orphan = false;
        if let Some(record) = self.pools.get_mut(&pool) {
            record.unused_since = now;
            is_orphan = record.is_orphan;
        }
        if !is_orphan && let Some(entry) = self.entries.get_mut(&cell.key.database) {
            entry.unused_since = now;
        }
        self.drop_pool_if_over(pool);
        let concerns = |record: &&mut Record<C, S>| {
            let key = &record.cell.key;
            record.is_blocked && (key.database == cell.key.database || key.user == cell.key.user)
        };
        let mut blocked = Vec::new();
        for record in self.pools.values_mut().filter(concerns) {
            record.is_blocked = false;
            let oldest = record.cell.lock().oldest_waiter().unwrap_or(Moment::NEVER);
            blocked.push((oldest, Arc::clone(&record.cell)));
        }
        blocked.sort_by_key(|(oldest, _)| *oldest);
        blocked.into_iter().map(|(_, cell)| cell).collect()
    }

    /// How many servers there are in all.
    pub fn servers(&self) -> u32 {
        self.pools.values().map(|record| record.servers).sum()
    }

    fn limit_reached(&self, cell: &PoolCell<C, S>) -> Option<Reached> {
        let effective = self.effective(&self.settings, &cell.key);
        let in_database = self.entries.get(&cell.key.database).map_or(0, |entry| entry.servers);
        let of_user = self.user_counts(&cell.key.user).servers;
        if effective.max_db_connections().is_some_and(|most| in_database >= most) {
            Some(Reached::Database)
        } else if effective.max_user_connections().is_some_and(|most| of_user >= most) {
            Some(Reached::User)
        } else {
            None
        }
    }

    /// The server that is idle longest under the limit, if somebody waits: not for filling up `min_pool_size`.
    fn evict_for(
        &self,
        cell: &PoolCell<C, S>,
        reached: Reached,
        is_waited_for: bool,
    ) -> Option<(Arc<PoolCell<C, S>>, Ended<S>)> {
        if !is_waited_for && cell.lock().waiting() == 0 {
            return None;
        }
        let under = |record: &&Record<C, S>| match reached {
            Reached::Database => !record.is_orphan && record.cell.key.database == cell.key.database,
            Reached::User => record.cell.key.user == cell.key.user,
        };
        let candidates = self.pools.values().filter(under);
        let idle = candidates.filter_map(|record| Some((record.cell.lock().oldest_idle()?, &record.cell)));
        let (_, oldest) = idle.min_by_key(|(since, _)| *since)?;
        let ended = oldest.lock().evict_idle()?;
        Some((Arc::clone(oldest), ended))
    }

    /// All hosts, beginning with the one whose turn it is.
    fn places(&mut self, name: &str, database: &settings::Database) -> Vec<Place> {
        let mut hosts = places(&self.settings, database);
        let Some(entry) = self.entries.get_mut(name).filter(|_| hosts.len() > 1) else { return hosts };
        let count = hosts.len();
        hosts.rotate_left(entry.host_next % count);
        if database.load_balance_hosts != settings::LoadBalance::Disable {
            entry.host_next = (entry.host_next + 1) % count;
        }
        hosts
    }

    fn count_server(&mut self, pool: PoolId, change: i32) {
        let Some(record) = self.pools.get_mut(&pool) else { return };
        record.servers = record.servers.saturating_add_signed(change);
        let (cell, is_orphan) = (Arc::clone(&record.cell), record.is_orphan);
        if !is_orphan && let Some(entry) = self.entries.get_mut(&cell.key.database) {
            entry.servers = entry.servers.saturating_add_signed(change);
        }
        self.count_user(&cell.key.user, |counts| {
            counts.servers = counts.servers.saturating_add_signed(change)
        });
    }
}

fn parameters(database: &settings::Database) -> Vec<(&'static str, String)> {
    let all = [
        ("client_encoding", &database.client_encoding),
        ("datestyle", &database.datestyle),
        ("timezone", &database.timezone),
        ("application_name", &database.application_name),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
}
