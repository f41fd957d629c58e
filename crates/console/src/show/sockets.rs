//! `SHOW CLIENTS`, `SERVERS`, `SOCKETS` and `ACTIVE_SOCKETS`: connections, the latter two with buffers.

use model::{Cell, Column};

use super::cell::{flag, int4, int4_column, seconds_and_us, text, text_column};
use crate::snapshot::{Buffers, ClientRow, ClientState, Replication, ServerRow, ServerState, Socket};

/// How many columns all tables here begin with, which are those that tools know.
const SHARED: usize = 21;

pub(super) const CLIENT_COLUMNS: &[Column] =
    &followed_by::<{ SHARED + 2 }>(&[text_column("pinned_since"), text_column("pin_reason")]);

pub(super) const SERVER_COLUMNS: &[Column] = &followed_by::<{ SHARED + 1 }>(&[int4_column("pinned")]);

/// The shared columns and then `ours`.
const fn followed_by<const ALL: usize>(ours: &[Column]) -> [Column; ALL] {
    assert!(ALL == SHARED + ours.len());
    let mut columns = [WITH_BUFFERS[0]; ALL];
    let mut at = 1;
    while at < ALL {
        columns[at] = if at < SHARED { WITH_BUFFERS[at] } else { ours[at - SHARED] };
        at += 1;
    }
    columns
}

pub(super) const WITH_BUFFERS: &[Column] = &[
    text_column("type"),
    text_column("user"),
    text_column("database"),
    text_column("replication"),
    text_column("state"),
    text_column("addr"),
    int4_column("port"),
    text_column("local_addr"),
    int4_column("local_port"),
    text_column("connect_time"),
    text_column("request_time"),
    int4_column("wait"),
    int4_column("wait_us"),
    int4_column("close_needed"),
    text_column("ptr"),
    text_column("link"),
    int4_column("remote_pid"),
    text_column("tls"),
    text_column("application_name"),
    int4_column("prepared_statements"),
    int4_column("id"),
    int4_column("recv_pos"),
    int4_column("pkt_pos"),
    int4_column("pkt_remain"),
    int4_column("send_pos"),
    int4_column("send_remain"),
    int4_column("pkt_avail"),
    int4_column("send_avail"),
];

/// Clients that have logged in.
pub(super) fn clients(clients: &[ClientRow]) -> Vec<Vec<Cell>> {
    let row = |client: &ClientRow| {
        let state = match client.state {
            ClientState::Active if client.socket.link.is_none() => "idle",
            ClientState::Active => "active",
            ClientState::ActiveCancelRequest => "active_cancel_req",
            ClientState::Login => return None,
            ClientState::Waiting => "waiting",
            ClientState::WaitingCancelRequest => "waiting_cancel_req",
        };
        let mut row = row("C", state, &client.socket);
        let pinned = client.pinned.as_ref();
        row.push(pinned.map(|pinned| pinned.since.clone()));
        row.push(pinned.map(|pinned| pinned.reason.clone()));
        Some(row)
    };
    clients.iter().filter_map(row).collect()
}

/// Servers.
pub(super) fn servers(servers: &[ServerRow]) -> Vec<Vec<Cell>> {
    let row = |server: &ServerRow| {
        let state = match server.state {
            ServerState::Active if server.socket.link.is_none() => "idle",
            ServerState::Active => "active",
            ServerState::ActiveCancel => "active_cancel",
            ServerState::BeingCanceled => "being_canceled",
            ServerState::Idle => "idle",
            ServerState::Login => "new",
            ServerState::Tested => "tested",
            ServerState::Used => "used",
        };
        let mut row = row("S", state, &server.socket);
        row.push(flag(server.is_pinned));
        row
    };
    servers.iter().map(row).collect()
}

/// Clients and servers, without those that are about cancel requests.
pub(super) fn all(clients: &[ClientRow], servers: &[ServerRow]) -> Vec<Vec<Cell>> {
    with_buffers(clients, servers, |_| true)
}

/// Those of [`all`] that are at work: linked, or with bytes in their buffers.
pub(super) fn active(clients: &[ClientRow], servers: &[ServerRow]) -> Vec<Vec<Cell>> {
    with_buffers(clients, servers, |socket| {
        let Buffers { pkt_remain, pkt_avail, send_avail, .. } = socket.buffers;
        socket.link.is_some() || [pkt_remain, pkt_avail, send_avail] != [0; 3]
    })
}

fn with_buffers(
    clients: &[ClientRow],
    servers: &[ServerRow],
    is_shown: impl Fn(&Socket) -> bool,
) -> Vec<Vec<Cell>> {
    let clients = clients.iter().filter(|client| is_shown(&client.socket)).filter_map(|client| {
        let state = match client.state {
            ClientState::Active => "cl_active",
            ClientState::Login => "cl_login",
            ClientState::Waiting => "cl_waiting",
            ClientState::ActiveCancelRequest | ClientState::WaitingCancelRequest => return None,
        };
        Some(row_with_buffers("C", state, &client.socket))
    });
    let servers = servers.iter().filter(|server| is_shown(&server.socket)).filter_map(|server| {
        let state = match server.state {
            ServerState::Active => "sv_active",
            ServerState::Idle => "sv_idle",
            ServerState::Login => "sv_login",
            ServerState::Tested => "sv_tested",
            ServerState::Used => "sv_used",
            ServerState::ActiveCancel | ServerState::BeingCanceled => return None,
        };
        Some(row_with_buffers("S", state, &server.socket))
    });
    clients.chain(servers).collect()
}

fn row_with_buffers(kind: &str, state: &str, socket: &Socket) -> Vec<Cell> {
    let mut row = row(kind, state, socket);
    let buffers = &socket.buffers;
    row.extend([
        int4(buffers.recv_pos),
        int4(buffers.pkt_pos),
        int4(buffers.pkt_remain),
        int4(buffers.send_pos),
        int4(0),
        int4(buffers.pkt_avail),
        int4(buffers.send_avail),
    ]);
    row
}

fn row(kind: &str, state: &str, socket: &Socket) -> Vec<Cell> {
    let [wait, wait_us] = seconds_and_us(socket.wait);
    let replication = match socket.replication {
        Replication::None => "none",
        Replication::Logical => "logical",
        Replication::Physical => "physical",
    };
    vec![
        text(kind),
        text(socket.user.as_deref().unwrap_or("(nouser)")),
        text(socket.database.as_deref().unwrap_or("(nodb)")),
        text(replication),
        text(state),
        text(&socket.addr),
        int4(socket.port),
        text(&socket.local_addr),
        int4(socket.local_port),
        text(&socket.connect_time),
        text(&socket.request_time),
        wait,
        wait_us,
        flag(socket.close_needed),
        Some(pointer(socket.id)),
        Some(socket.link.map(pointer).unwrap_or_default()),
        int4(socket.remote_pid),
        text(&socket.tls),
        text(&socket.application_name),
        int4(socket.prepared_statements),
        int4(socket.id),
    ]
}

/// What joins `link` of the one with `ptr` of the other: the id, in the clothes of an address.
fn pointer(id: u64) -> String {
    format!("{id:#x}")
}
