//! Each table's columns against what tools were written for, and rows made of a snapshot.

use std::time::Duration;

use model::{ColumnType, PoolMode, Table};
use stats::{Averages, Totals};

use crate::{
    Buffers, ClientRow, ClientState, ConfigRow, DatabaseRow, DnsHostRow, DnsZoneRow, ListCounts, ListenerRow,
    MemRow, NodeRow, PeerPoolRow, PeerRow, PinRow, Pinned, PoolRow, Replication, ServerRow, ServerState,
    Show, Snapshot, Socket, State, StatsRow, UserRow, show,
};

/// PgBouncer's columns: each a name and the letter of its type. t is text, i int4, q int8, N numeric.
fn check_columns(show: Show, expected: &str) {
    let letter = |kind| match kind {
        ColumnType::Text => "t",
        ColumnType::Int4 => "i",
        ColumnType::Int8 => "q",
        ColumnType::Numeric => "N",
        ColumnType::Bytea => "b",
    };
    let columns: Vec<String> =
        show::columns(show).iter().map(|column| format!("{} {}", column.name, letter(column.kind))).collect();
    let expected: Vec<&str> = expected.split(',').map(str::trim).collect();
    assert_eq!(columns, expected, "{show:?}");
}

const SOCKET: &str = "type t, user t, database t, replication t, state t, addr t, port i, local_addr t, \
    local_port i, connect_time t, request_time t, wait i, wait_us i, close_needed i, ptr t, link t, \
    remote_pid i, tls t, application_name t, prepared_statements i, id i";

#[test]
fn columns_are_those_that_tools_read() {
    let buffers = "recv_pos i, pkt_pos i, pkt_remain i, send_pos i, send_remain i, pkt_avail i, send_avail i";
    check_columns(Show::Clients, &format!("{SOCKET}, pinned_since t, pin_reason t"));
    check_columns(Show::Servers, &format!("{SOCKET}, pinned i"));
    check_columns(Show::Sockets, &format!("{SOCKET}, {buffers}"));
    check_columns(Show::ActiveSockets, &format!("{SOCKET}, {buffers}"));
    check_columns(
        Show::Pools,
        "database t, user t, cl_active i, cl_waiting i, cl_active_cancel_req i, cl_waiting_cancel_req i, \
         sv_active i, sv_active_cancel i, sv_being_canceled i, sv_idle i, sv_used i, sv_tested i, \
         sv_login i, maxwait i, maxwait_us i, pool_mode t, load_balance_hosts t, sv_pinned i, \
         standby t",
    );
    check_columns(
        Show::Pins,
        "database t, user t, application_name t, reason t, statement t, current i, total N, hint t",
    );
    check_columns(
        Show::PeerPools,
        "peer_id i, cl_active_cancel_req i, cl_waiting_cancel_req i, sv_active_cancel i, sv_login i",
    );
    check_columns(
        Show::Databases,
        "name t, host t, port i, database t, force_user t, pool_size i, min_pool_size i, \
         reserve_pool_size i, server_lifetime i, pool_mode t, load_balance_hosts t, max_connections i, \
         current_connections i, max_client_connections i, current_client_connections i, paused i, disabled i",
    );
    check_columns(
        Show::Users,
        "name t, pool_size t, reserve_pool_size t, pool_mode t, max_user_connections i, \
         current_connections i, max_user_client_connections i, current_client_connections i",
    );
    check_columns(Show::Peers, "peer_id i, host t, port i, pool_size i");
    check_columns(
        Show::Listeners,
        "id q, database t, state t, addr t, port i, remote_pid i, client_encoding t, clients i, channels i, \
         notifications q, losses q",
    );
    check_columns(Show::Lists, "list t, items i");
    check_columns(Show::Totals, "name t, value N");
    check_columns(Show::Config, "key t, value t, default t, changeable t");
    check_columns(Show::Version, "version t");
    check_columns(Show::State, "key t, value t");
    check_columns(Show::Mem, "name t, size i, used i, free i, memtotal i");
    check_columns(
        Show::Nodes,
        "databases t, host t, port i, role t, state t, timeline i, lag_bytes q, lag_ms q, since t, \
         connections i, last_error t, member t, tags t, topology t",
    );
    check_columns(Show::DnsHosts, "hostname t, ttl q, addrs t");
    check_columns(Show::DnsZones, "zonename t, serial q, count i");
}

#[test]
fn statistics_have_the_columns_that_tools_read() {
    check_columns(
        Show::Stats,
        "database t, total_server_assignment_count N, total_xact_count N, total_query_count N, \
         total_received N, total_sent N, total_xact_time N, total_query_time N, total_wait_time N, \
         total_client_parse_count N, total_server_parse_count N, total_bind_count N, \
         total_client_login_count N, avg_server_assignment_count N, avg_xact_count N, avg_query_count N, \
         avg_recv N, avg_sent N, avg_xact_time N, avg_query_time N, avg_wait_time N, \
         avg_client_parse_count N, avg_server_parse_count N, avg_bind_count N, avg_client_login_count N, \
         total_pin_count N, avg_pin_count N",
    );
    check_columns(
        Show::StatsTotals,
        "database t, server_assignment_count N, xact_count N, query_count N, bytes_received N, bytes_sent N, \
         xact_time N, query_time N, wait_time N, client_parse_count N, server_parse_count N, bind_count N, \
         client_login_count N, pin_count N",
    );
    check_columns(
        Show::StatsAverages,
        "database t, server_assignment_count N, xact_count N, query_count N, bytes_received N, bytes_sent N, \
         xact_time N, query_time N, wait_time N, avg_client_parse_count N, avg_server_parse_count N, \
         avg_bind_count N, avg_client_login_count N, avg_pin_count N",
    );
}

fn socket(id: u64, link: Option<u64>) -> Socket {
    Socket {
        user: Some("u".to_owned()),
        database: Some("d".to_owned()),
        addr: "127.0.0.1".to_owned(),
        port: 40_000,
        local_addr: "127.0.0.1".to_owned(),
        local_port: 6432,
        connect_time: "2026-01-02 03:04:05 UTC".to_owned(),
        request_time: "2026-01-02 03:04:06 UTC".to_owned(),
        wait: Duration::from_micros(2_000_003),
        id,
        link,
        prepared_statements: 4,
        ..Socket::default()
    }
}

fn snapshot() -> Snapshot {
    let client = |state, id, link| ClientRow { state, socket: socket(id, link), pinned: None };
    let server = |state, id, link| ServerRow { state, socket: socket(id, link), is_pinned: false };
    Snapshot {
        clients: vec![
            client(ClientState::Active, 31, Some(7)),
            client(ClientState::Active, 32, None),
            client(ClientState::Waiting, 33, None),
            client(ClientState::ActiveCancelRequest, 34, None),
            client(ClientState::WaitingCancelRequest, 35, None),
            client(ClientState::Login, 36, None),
        ],
        servers: vec![
            server(ServerState::Active, 7, Some(31)),
            server(ServerState::Active, 8, None),
            server(ServerState::Idle, 9, None),
            server(ServerState::Used, 10, None),
            server(ServerState::Tested, 11, None),
            server(ServerState::Login, 12, None),
            server(ServerState::ActiveCancel, 13, None),
            server(ServerState::BeingCanceled, 14, None),
        ],
        ..Snapshot::default()
    }
}

/// Rows as text, with cells apart by `|` and NULL as `-`.
fn rows(show: Show, snapshot: &Snapshot) -> Vec<String> {
    let Table { columns, rows } = show::table(show, snapshot);
    for row in &rows {
        assert_eq!(row.len(), columns.len());
        for (column, cell) in columns.iter().zip(row) {
            let is_number = cell.as_deref().is_none_or(|text| text.parse::<u64>().is_ok());
            assert!(column.kind == ColumnType::Text || is_number, "{}: {cell:?}", column.name);
        }
    }
    let cell = |cell: &model::Cell| cell.clone().unwrap_or_else(|| "-".to_owned());
    rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("|")).collect()
}

fn check(show: Show, snapshot: Snapshot, expected: &[&str]) {
    assert_eq!(rows(show, &snapshot), expected);
}

#[test]
fn client_row_in_full() {
    assert_eq!(
        rows(Show::Clients, &snapshot())[0],
        "C|u|d|none|active|127.0.0.1|40000|127.0.0.1|6432|2026-01-02 03:04:05 UTC|2026-01-02 03:04:06 UTC|\
         2|3|0|0x1f|0x7|0|||4|31|-|-"
    );
}

#[test]
fn server_row_in_full() {
    let mut server = ServerRow { state: ServerState::Tested, socket: socket(7, None), is_pinned: true };
    server.socket.user = None;
    server.socket.database = None;
    server.socket.replication = Replication::Physical;
    server.socket.close_needed = true;
    server.socket.remote_pid = 4321;
    server.socket.tls = "TLSv1.3".to_owned();
    server.socket.application_name = "app".to_owned();
    let snapshot = Snapshot { servers: vec![server], ..Snapshot::default() };
    assert_eq!(
        rows(Show::Servers, &snapshot)[0],
        "S|(nouser)|(nodb)|physical|tested|127.0.0.1|40000|127.0.0.1|6432|2026-01-02 03:04:05 UTC|\
         2026-01-02 03:04:06 UTC|2|3|1|0x7||4321|TLSv1.3|app|4|7|1"
    );
}

/// The `state` and `id` of each row.
fn states(show: Show) -> Vec<String> {
    let rows = show::table(show, &snapshot()).rows;
    let text = |row: &Vec<model::Cell>, at: usize| row[at].clone().expect("not NULL");
    rows.iter().map(|row| format!("{} {}", text(row, 4), text(row, 20))).collect()
}

#[test]
fn states_of_clients_and_servers() {
    assert_eq!(
        states(Show::Clients),
        ["active 31", "idle 32", "waiting 33", "active_cancel_req 34", "waiting_cancel_req 35"]
    );
    assert_eq!(
        states(Show::Servers),
        [
            "active 7",
            "idle 8",
            "idle 9",
            "used 10",
            "tested 11",
            "new 12",
            "active_cancel 13",
            "being_canceled 14"
        ]
    );
}

#[test]
fn states_of_sockets_have_their_side_before_them() {
    assert_eq!(
        states(Show::Sockets),
        [
            "cl_active 31",
            "cl_active 32",
            "cl_waiting 33",
            "cl_login 36",
            "sv_active 7",
            "sv_active 8",
            "sv_idle 9",
            "sv_used 10",
            "sv_tested 11",
            "sv_login 12"
        ]
    );
    assert_eq!(states(Show::ActiveSockets), ["cl_active 31", "sv_active 7"]);
}

#[test]
fn sockets_with_bytes_in_their_buffers_are_active() {
    let mut snapshot = snapshot();
    snapshot.clients.truncate(3);
    snapshot.servers.clear();
    snapshot.clients[2].socket.buffers =
        Buffers { recv_pos: 1, pkt_pos: 2, pkt_remain: 3, send_pos: 4, pkt_avail: 5, send_avail: 6 };
    let rows = rows(Show::ActiveSockets, &snapshot);
    assert_eq!(rows.len(), 2);
    assert!(rows[1].ends_with("|33|1|2|3|4|0|5|6"), "{}", rows[1]);
}

#[test]
fn pools_are_sorted_by_database_and_user() {
    let pool = |database: &str, user: &str, load_balance_hosts| PoolRow {
        database: database.to_owned(),
        user: user.to_owned(),
        clients_active: 1,
        clients_waiting: 2,
        clients_active_cancel: 3,
        clients_waiting_cancel: 4,
        servers_active: 5,
        servers_active_cancel: 6,
        servers_being_canceled: 7,
        servers_idle: 8,
        servers_used: 9,
        servers_tested: 10,
        servers_login: 11,
        wait_max: Duration::from_micros(12_000_013),
        pool_mode: PoolMode::Transaction,
        load_balance_hosts,
        servers_pinned: 14,
        standby: (user == "z").then(|| "h:1".to_owned()),
    };
    let pools = vec![pool("b", "a", None), pool("a", "z", Some("round-robin")), pool("a", "b", None)];
    check(
        Show::Pools,
        Snapshot { pools, ..Snapshot::default() },
        &[
            "a|b|1|2|3|4|5|6|7|8|9|10|11|12|13|transaction|-|14|-",
            "a|z|1|2|3|4|5|6|7|8|9|10|11|12|13|transaction|round-robin|14|h:1",
            "b|a|1|2|3|4|5|6|7|8|9|10|11|12|13|transaction|-|14|-",
        ],
    );
}

#[test]
fn pins_of_most_clients_come_first() {
    let pin = |user: &str, current, total| PinRow {
        database: "d".to_owned(),
        user: user.to_owned(),
        application_name: "app".to_owned(),
        reason: "LISTEN".to_owned(),
        statement: "LISTEN".to_owned(),
        current,
        total,
        hint: "do not".to_owned(),
    };
    check(
        Show::Pins,
        Snapshot { pins: vec![pin("a", 1, 9), pin("b", 2, 2), pin("c", 1, 10)], ..Snapshot::default() },
        &[
            "d|b|app|LISTEN|LISTEN|2|2|do not",
            "d|c|app|LISTEN|LISTEN|1|10|do not",
            "d|a|app|LISTEN|LISTEN|1|9|do not",
        ],
    );
}

#[test]
fn client_that_keeps_its_server_shows_since_when_and_why() {
    let pinned = Pinned { since: "today".to_owned(), reason: "temporary object".to_owned() };
    let client = ClientRow { state: ClientState::Active, socket: socket(1, None), pinned: Some(pinned) };
    let snapshot = Snapshot { clients: vec![client], ..Snapshot::default() };
    assert!(rows(Show::Clients, &snapshot)[0].ends_with("|today|temporary object"));
}

#[test]
fn databases_show_what_holds_for_them() {
    let database = |name: &str, host: Option<&str>| DatabaseRow {
        name: name.to_owned(),
        host: host.map(str::to_owned),
        port: 5432,
        database: "real".to_owned(),
        force_user: host.map(|_| "boss".to_owned()),
        pool_size: 20,
        min_pool_size: 1,
        reserve_pool_size: 2,
        server_lifetime: Duration::from_secs(3600),
        pool_mode: host.map(|_| PoolMode::Session),
        load_balance_hosts: host.map(|_| "disable"),
        servers_max: 30,
        servers: 3,
        clients_max: 40,
        clients: 4,
        paused: true,
        disabled: false,
    };
    let databases = vec![database("z", None), database("a", Some("h1,h2"))];
    check(
        Show::Databases,
        Snapshot { databases, ..Snapshot::default() },
        &[
            "a|h1,h2|5432|real|boss|20|1|2|3600|session|disable|30|3|40|4|1|0",
            "z|-|5432|real|-|20|1|2|3600|-|-|30|3|40|4|1|0",
        ],
    );
}

#[test]
fn listeners_show_where_they_listen_and_for_how_many() {
    let listener = |id, addr: Option<&str>, state| ListenerRow {
        id,
        database: "app".to_owned(),
        addr: addr.map(str::to_owned),
        port: 5432,
        remote_pid: 77,
        client_encoding: "UTF8".to_owned(),
        state,
        clients: 200,
        channels: 3,
        notifications: 4_000_000_000,
        losses: 1,
    };
    let listeners = vec![listener(1, Some("127.0.0.1"), "listening"), listener(2, None, "lost")];
    check(
        Show::Listeners,
        Snapshot { listeners, ..Snapshot::default() },
        &[
            "1|app|listening|127.0.0.1|5432|77|UTF8|200|3|4000000000|1",
            "2|app|lost|-|5432|77|UTF8|200|3|4000000000|1",
        ],
    );
}

#[test]
fn users_sizes_are_aligned_or_empty() {
    let user = |name: &str, own: Option<u64>| UserRow {
        name: name.to_owned(),
        pool_size: own,
        reserve_pool_size: own,
        pool_mode: own.map(|_| PoolMode::Statement),
        servers_max: 1,
        servers: 2,
        clients_max: 3,
        clients: 4,
    };
    let users = vec![user("b", Some(15)), user("a", None)];
    check(
        Show::Users,
        Snapshot { users, ..Snapshot::default() },
        &["a|||-|1|2|3|4", "b|       15|       15|statement|1|2|3|4"],
    );
}

#[test]
fn lists_are_fourteen() {
    let lists = ListCounts { databases: 1, clients_used: 2, dns_pending: 3, ..ListCounts::default() };
    check(
        Show::Lists,
        Snapshot { lists, ..Snapshot::default() },
        &[
            "databases|1",
            "users|0",
            "peers|0",
            "pools|0",
            "peer_pools|0",
            "free_clients|0",
            "used_clients|2",
            "login_clients|0",
            "free_servers|0",
            "used_servers|0",
            "dns_names|0",
            "dns_zones|0",
            "dns_queries|0",
            "dns_pending|3",
        ],
    );
}

#[test]
fn statistics_are_sorted_by_database() {
    let row = |database: &str| StatsRow {
        database: database.to_owned(),
        totals: Totals {
            server_assignment_count: 1,
            client_login_count: u64::MAX,
            pin_count: 7,
            ..Totals::default()
        },
        averages: Averages {
            server_assignments_per_s: 2,
            client_logins_per_s: 3,
            pins_per_s: 4,
            ..Averages::default()
        },
    };
    let snapshot = Snapshot { stats: vec![row("b"), row("a")], ..Snapshot::default() };
    let totals = "1|0|0|0|0|0|0|0|0|0|0|18446744073709551615";
    let averages = "2|0|0|0|0|0|0|0|0|0|0|3";
    assert_eq!(
        rows(Show::Stats, &snapshot),
        [format!("a|{totals}|{averages}|7|4"), format!("b|{totals}|{averages}|7|4")]
    );
    assert_eq!(rows(Show::StatsTotals, &snapshot), [format!("a|{totals}|7"), format!("b|{totals}|7")]);
    assert_eq!(rows(Show::StatsAverages, &snapshot), [format!("a|{averages}|4"), format!("b|{averages}|4")]);
}

#[test]
fn totals_are_a_line_each() {
    let totals = Totals { received_bytes: 5, ..Totals::default() };
    let averages = Averages { binds_per_s: 6, ..Averages::default() };
    let rows = rows(Show::Totals, &Snapshot { totals: (totals, averages), ..Snapshot::default() });
    let names: Vec<&str> = rows.iter().filter_map(|row| row.split('|').next()).collect();
    let counted = [
        "server_assignment_count",
        "xact_count",
        "query_count",
        "client_bytes",
        "server_bytes",
        "xact_time",
        "query_time",
        "wait_time",
        "ps_client_parse_count",
        "ps_server_parse_count",
        "ps_bind_count",
        "client_login_count",
        "pin_count",
    ];
    let expected: Vec<String> =
        ["total", "avg"].iter().flat_map(|kind| counted.map(|name| format!("{kind}_{name}"))).collect();
    assert_eq!(names, expected);
    assert_eq!(rows[3], "total_client_bytes|5");
    assert_eq!(rows[23], "avg_ps_bind_count|6");
}

#[test]
fn settings_are_sorted_and_unset_ones_are_null() {
    let row = |key: &str, value: Option<&str>, changeable| ConfigRow {
        key: key.to_owned(),
        value: value.map(str::to_owned),
        default: None,
        changeable,
    };
    let config = vec![row("verbose", None, false), row("admin_users", Some("root"), true)];
    check(
        Show::Config,
        Snapshot { config, ..Snapshot::default() },
        &["admin_users|root|-|yes", "verbose|-|-|no"],
    );
}

#[test]
fn state_is_one_of_three() {
    let check = |state, expected: [&str; 3]| {
        check(Show::State, Snapshot { state, ..Snapshot::default() }, &expected);
    };
    check(State::Active, ["active|yes", "paused|no", "suspended|no"]);
    check(State::Paused, ["active|no", "paused|yes", "suspended|no"]);
    check(State::Suspended, ["active|no", "paused|no", "suspended|yes"]);
}

#[test]
fn small_tables() {
    let snapshot = Snapshot {
        version: "Howdah 1.2.3".to_owned(),
        peers: vec![PeerRow { peer_id: 1, host: Some("/tmp".to_owned()), port: 6432, pool_size: 5 }],
        peer_pools: vec![PeerPoolRow {
            peer_id: 1,
            clients_active_cancel: 2,
            clients_waiting_cancel: 3,
            servers_active_cancel: 4,
            servers_login: 5,
        }],
        mem: vec![MemRow { name: "client".to_owned(), size: 80, used: 2, free: 3, total_bytes: 400 }],
        nodes: vec![NodeRow {
            databases: "app,app_ro".to_owned(),
            host: "db1".to_owned(),
            port: 5432,
            role: "standby",
            state: "up",
            timeline: Some(3),
            lag: Some((4096, Duration::from_millis(20))),
            since: "2026-11-21 08:00:00 UTC".to_owned(),
            connections: 7,
            last_error: String::new(),
            member: "n2 replica streaming".to_owned(),
            tags: "nosync".to_owned(),
            topology: "paused".to_owned(),
        }],
        dns_hosts: vec![DnsHostRow {
            hostname: "db".to_owned(),
            ttl: Duration::from_secs(15),
            addrs: vec!["10.0.0.1:5432".to_owned(), "10.0.0.2:5432".to_owned()],
        }],
        dns_zones: vec![DnsZoneRow { zonename: "zone".to_owned(), serial: u32::MAX, count: 2 }],
        ..Snapshot::default()
    };
    assert_eq!(rows(Show::Version, &snapshot), ["Howdah 1.2.3"]);
    assert_eq!(rows(Show::Peers, &snapshot), ["1|/tmp|6432|5"]);
    assert_eq!(rows(Show::PeerPools, &snapshot), ["1|2|3|4|5"]);
    assert_eq!(rows(Show::Mem, &snapshot), ["client|80|2|3|400"]);
    let wanted = "app,app_ro|db1|5432|standby|up|3|4096|20|2026-11-21 08:00:00 UTC|7||n2 replica streaming|nosync|paused";
    assert_eq!(rows(Show::Nodes, &snapshot), [wanted]);
    assert_eq!(rows(Show::DnsHosts, &snapshot), ["db|15|10.0.0.1:5432,10.0.0.2:5432"]);
    assert_eq!(rows(Show::DnsZones, &snapshot), ["zone|4294967295|2"]);
}

#[test]
fn numbers_that_do_not_fit_their_type_stop_at_its_end() {
    let mem =
        vec![MemRow { name: "x".to_owned(), size: u64::MAX, used: 1 << 31, free: 0, total_bytes: 1 << 40 }];
    check(Show::Mem, Snapshot { mem, ..Snapshot::default() }, &["x|2147483647|2147483647|0|2147483647"]);
}
