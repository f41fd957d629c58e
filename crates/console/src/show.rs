//! The tables of `SHOW`: columns that tools know by name, order and type, and the rows under them.

mod cell;
mod config;
mod databases;
mod dns_hosts;
mod dns_zones;
mod listeners;
mod lists;
mod mem;
mod nodes;
mod parameter;
mod peer_pools;
mod peers;
mod pins;
mod pools;
mod routes;
mod sockets;
mod state;
mod stats;
mod totals;
mod users;
mod version;

use model::{Column, Table};

use crate::command::Show;
use crate::snapshot::Snapshot;

pub(crate) use parameter::{ONE, one, parameter, parameter_columns};

/// The columns of a table.
pub fn columns(show: Show) -> &'static [Column] {
    match show {
        Show::ActiveSockets | Show::Sockets => sockets::WITH_BUFFERS,
        Show::Clients => sockets::CLIENT_COLUMNS,
        Show::Servers => sockets::SERVER_COLUMNS,
        Show::Config => config::COLUMNS,
        Show::Databases => databases::COLUMNS,
        Show::DnsHosts => dns_hosts::COLUMNS,
        Show::DnsZones => dns_zones::COLUMNS,
        Show::Listeners => listeners::COLUMNS,
        Show::Lists => lists::COLUMNS,
        Show::Mem => mem::COLUMNS,
        Show::Nodes => nodes::COLUMNS,
        Show::PeerPools => peer_pools::COLUMNS,
        Show::Peers => peers::COLUMNS,
        Show::Pins => pins::COLUMNS,
        Show::Pools => pools::COLUMNS,
        Show::Routes => routes::COLUMNS,
        Show::State => state::COLUMNS,
        Show::Stats => stats::COLUMNS,
        Show::StatsAverages => stats::AVERAGES_COLUMNS,
        Show::StatsTotals => stats::TOTALS_COLUMNS,
        Show::Totals => totals::COLUMNS,
        Show::Users => users::COLUMNS,
        Show::Version => version::COLUMNS,
    }
}

/// A table with its rows. Each line reads the fields of the snapshot that it names.
pub fn table(show: Show, snapshot: &Snapshot) -> Table {
    let rows = match show {
        Show::ActiveSockets => sockets::active(&snapshot.clients, &snapshot.servers),
        Show::Clients => sockets::clients(&snapshot.clients),
        Show::Config => config::rows(&snapshot.config),
        Show::Databases => databases::rows(&snapshot.databases),
        Show::DnsHosts => dns_hosts::rows(&snapshot.dns_hosts),
        Show::DnsZones => dns_zones::rows(&snapshot.dns_zones),
        Show::Listeners => listeners::rows(&snapshot.listeners),
        Show::Lists => lists::rows(&snapshot.lists),
        Show::Mem => mem::rows(&snapshot.mem),
        Show::Nodes => nodes::rows(&snapshot.nodes),
        Show::PeerPools => peer_pools::rows(&snapshot.peer_pools),
        Show::Peers => peers::rows(&snapshot.peers),
        Show::Pins => pins::rows(&snapshot.pins),
        Show::Pools => pools::rows(&snapshot.pools),
        Show::Routes => routes::rows(&snapshot.routes),
        Show::Servers => sockets::servers(&snapshot.servers),
        Show::Sockets => sockets::all(&snapshot.clients, &snapshot.servers),
        Show::State => state::rows(snapshot.state),
        Show::Stats => stats::rows(&snapshot.stats),
        Show::StatsAverages => stats::averages(&snapshot.stats),
        Show::StatsTotals => stats::totals(&snapshot.stats),
        Show::Totals => totals::rows(&snapshot.totals),
        Show::Users => users::rows(&snapshot.users),
        Show::Version => version::rows(&snapshot.version),
    };
    Table { columns: columns(show).to_vec(), rows }
}
