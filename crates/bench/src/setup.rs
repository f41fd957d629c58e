//! How large everything is made, and what the database is filled with, for one stage of a run. Follows
//! from the plan and the options alone.

use crate::plan::Load;
use crate::target::configure::Sizes;

/// The sizes of a stage.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Clients of the largest load.
    pub clients: usize,
    /// PostgreSQL's `max_connections`.
    pub connections_max: usize,
    /// The poolers'.
    pub sizes: Sizes,
    /// pgbench's scale.
    pub scale: u32,
    /// What `pgbench -i` is told besides.
    pub fill_options: &'static [&'static str],
}

/// PostgreSQL's `max_connections` where nothing asks for another.
pub const CONNECTIONS_MAX: usize = 300;
/// Clients that poolers let in beyond those of the largest load: no load is to meet that limit.
const CLIENTS_SPARE: usize = 100;
/// Connections of a server that no pooler may take: the watcher's, the superuser's reserve.
pub const CONNECTIONS_KEPT: usize = 10;

impl Setup {
    /// For those loads.
    pub fn new(pool_size: usize, scale: u32, loads: &[Load]) -> Setup {
        let clients_max = loads.iter().map(|load| load.clients()).max().unwrap_or(1);
        let sizes = Sizes {
            pool_size,
            // With -C a client is back before its last connection is seen to be gone.
            clients_max: 2 * clients_max + CLIENTS_SPARE,
            haproxy_clients_max: 2 * clients_max + CLIENTS_SPARE,
            haproxy_servers_max: None,
            pgpool_children: clients_max,
        };
        Setup { clients: clients_max, connections_max: CONNECTIONS_MAX, sizes, scale, fill_options: &[] }
            .walled(CONNECTIONS_MAX)
    }

    /// With PostgreSQL's `max_connections` there.
    pub fn walled(mut self, connections_max: usize) -> Setup {
        self.connections_max = connections_max;
        // pgpool asks that its children fit below the server's limit.
        self.sizes.pgpool_children = self.pgpool_children(self.clients);
        self
    }

    /// Children for so many clients: one each, as far as the server has room.
    pub fn pgpool_children(&self, clients: usize) -> usize {
        clients.min(self.connections_max.saturating_sub(CONNECTIONS_KEPT)).max(1)
    }
}

/// What a database is filled with besides pgbench's own tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filling {
    /// Rows of 64 KB.
    pub wide_rows: bool,
    /// A table for bulk to go into.
    pub sink: bool,
    /// sysbench's tables.
    pub sysbench: bool,
}

impl Filling {
    /// What those loads need.
    pub fn of(loads: &[Load]) -> Filling {
        Filling {
            wide_rows: loads.iter().any(|load| matches!(load, Load::WideRow { .. })),
            sink: loads.iter().any(|load| matches!(load, Load::Copy { .. })),
            sysbench: loads.iter().any(|load| matches!(load, Load::Sysbench { .. })),
        }
    }
}
