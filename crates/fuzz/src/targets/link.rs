//! A link under random operations, and one whose streams are cut at random places.

use std::sync::Arc;

use client::Client;
use link::unpaired::{self, Fate};
use link::{Link, Out, Policy, Side, Then};
use model::{ClientId, Moment, Parameters, PoolMode, ServerId, Statements};
use server::Server;

use super::cuts as places;
use crate::corpus;

/// More than a link may leave lying of what it was given, in bytes: the largest statement aside, which no input
/// here reaches.
const LEFT_MAX: usize = 128 << 10;

/// An input is a run of records: what happens, a length, bytes.
fn record(what: u8, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len().min(usize::from(u16::MAX)) as u16;
    [&[what][..], &length.to_be_bytes(), &bytes[..usize::from(length)]].concat()
}

fn records(mut input: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (head, rest) = input.split_first_chunk::<3>()?;
        let length = usize::from(u16::from_be_bytes([head[1], head[2]])).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        input = rest;
        Some((head[0], bytes))
    })
}

pub(super) fn corpus() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    let servers = corpus::server_messages();
    for (at, asked) in corpus::client_messages().iter().enumerate() {
        for (other, answered) in servers.iter().enumerate() {
            let policy = vec![(at * 7 + other) as u8];
            let again = record(b'c', &corpus::client_messages()[(at + other) % 6]);
            inputs.push(
                [
                    policy,
                    record(b'c', asked),
                    record(b's', answered),
                    record(b'r', b""),
                    again,
                    record(b'x', b""),
                ]
                .concat(),
            );
        }
    }
    inputs
}

fn policy(choice: u8) -> Arc<Policy> {
    let mode = [PoolMode::Transaction, PoolMode::Transaction, PoolMode::Session, PoolMode::Statement];
    Arc::new(Policy {
        mode: mode[usize::from(choice) % mode.len()],
        prepared_max: [200, 1, 2, 0][usize::from(choice >> 2) % 4],
        reset_always: choice & 16 != 0,
        misuse_closes: choice & 32 != 0,
        dedicated: choice & 64 != 0,
        ..Policy::default()
    })
}

/// Two clients, one server, and what lies unread between them.
struct Pair {
    links: [Link; 2],
    at: usize,
    resting: Option<Box<Server>>,
    from_client: Vec<u8>,
    from_server: Vec<u8>,
    out: Out,
    told_client: Vec<u8>,
    told_server: Vec<u8>,
    policy: Arc<Policy>,
    is_over: bool,
}

impl Pair {
    fn new(choice: u8) -> Pair {
        let policy = policy(choice);
        let statements = Arc::new(Statements::default());
        let mut parameters = Parameters::default();
        parameters.set(b"TimeZone", b"UTC", true);
        let parameters = Arc::new(parameters);
        let links = [1, 2].map(|id| {
            let client = Client::new(ClientId(id), Arc::clone(&parameters));
            Link::new(client, Arc::clone(&policy), Arc::clone(&statements), Moment(1))
        });
        let server = Server::new(ServerId(9), parameters, 1, Box::from(&b"keyk"[..]), Moment(1));
        Pair {
            links,
            at: 0,
            resting: Some(Box::new(server)),
            from_client: Vec::new(),
            from_server: Vec::new(),
            out: Out::default(),
            told_client: Vec::new(),
            told_server: Vec::new(),
            policy,
            is_over: false,
        }
    }

    fn grant(&mut self) {
        if let Some(server) = self.resting.take_if(|server| server.is_shareable()) {
            self.out.clear();
            let _ = self.links[self.at].granted(Moment(2), server, false, &mut self.out);
            self.write(&[]);
        }
    }

    fn write(&mut self, input: &[u8]) {
        let copy = |side: &Side, told: &mut Vec<u8>| {
            for span in side.spans() {
                told.extend_from_slice(side.bytes(input, *span));
            }
        };
        copy(&self.out.to_client, &mut self.told_client);
        copy(&self.out.to_server, &mut self.told_server);
    }

    fn client(&mut self, bytes: &[u8]) {
        self.grant();
        self.from_client.extend_from_slice(bytes);
        let link = &mut self.links[self.at];
        if !link.wants_client_bytes() {
            return;
        }
        self.out.clear();
        let input = std::mem::take(&mut self.from_client);
        let progress = link.on_client(Moment(3), &input, &mut self.out);
        self.write(&input);
        assert!(progress.consumed <= input.len(), "no more is consumed than there was");
        self.from_client = input[progress.consumed..].to_vec();
        assert!(self.from_client.len() <= LEFT_MAX, "not everything is left lying");
        self.is_over = matches!(progress.then, Then::Close(_) | Then::ServerGone(_));
    }

    fn server(&mut self, bytes: &[u8]) {
        self.from_server.extend_from_slice(bytes);
        self.out.clear();
        let input = std::mem::take(&mut self.from_server);
        let (consumed, is_over) = match &mut self.resting {
            Some(server) => {
                let (consumed, fate) = unpaired::on_server(server, &self.policy, &input, &mut self.out);
                (consumed, fate == Fate::Close)
            }
            None => {
                let progress = self.links[self.at].on_server(Moment(4), &input, &mut self.out);
                (progress.consumed, matches!(progress.then, Then::Close(_) | Then::ServerGone(_)))
            }
        };
        self.write(&input);
        assert!(consumed <= input.len(), "no more is consumed than there was");
        self.from_server = input[consumed..].to_vec();
        assert!(self.from_server.len() <= LEFT_MAX, "not everything is left lying");
        self.is_over = is_over;
    }

    /// The server goes to the other client, if it is free.
    fn hand_over(&mut self) {
        if self.links[self.at].release_due() && self.from_server.is_empty() {
            self.resting = self.links[self.at].take_server(Moment(5));
            self.from_client.clear();
            self.at = 1 - self.at;
            self.grant();
        }
    }

    /// The client is gone.
    fn leave(&mut self) {
        let Some(mut server) = self.links[self.at].take_server(Moment(6)) else { return };
        self.out.clear();
        let fate = unpaired::left(&mut server, &self.policy, &mut self.out);
        self.write(&[]);
        self.is_over = fate == Fate::Close;
        self.resting = Some(server);
        self.from_client.clear();
        self.at = 1 - self.at;
    }
}

pub(super) fn ops(input: &[u8]) {
    let Some((&choice, input)) = input.split_first() else { return };
    let mut pair = Pair::new(choice);
    for (what, bytes) in records(input) {
        match what {
            b'c' => pair.client(bytes),
            b's' => pair.server(bytes),
            b'r' => pair.hand_over(),
            b'x' => pair.leave(),
            b'w' => {
                pair.out.clear();
                let consumed = pair.links[pair.at].cancel_waiting(bytes, &mut pair.out);
                assert!(consumed <= bytes.len(), "no more is consumed than there was");
            }
            b'a' => {
                let progress = pair.links[pair.at].on_client_alone(bytes);
                assert!(progress.consumed <= bytes.len(), "no more is consumed than there was");
            }
            _ => {
                let now = Moment(u64::from(what) * 1_000_000);
                let _ = (pair.links[pair.at].poll_timeout(), pair.links[pair.at].on_timeout(now));
            }
        }
        if pair.is_over {
            return;
        }
    }
}

/// What a client asks in one go, and what the server answers: two records.
pub(super) fn cuts_corpus() -> Vec<Vec<u8>> {
    let servers = corpus::server_messages();
    let asked = corpus::client_messages();
    let pairs = asked.iter().enumerate().flat_map(|(at, asked)| {
        servers.iter().enumerate().map(move |(other, answered)| {
            [vec![(at * 3 + other) as u8], record(b'c', asked), record(b's', answered)].concat()
        })
    });
    pairs.collect()
}

pub(super) fn cuts(input: &[u8]) {
    let Some((&choice, input)) = input.split_first() else { return };
    let mut two = records(input);
    let (Some((_, asked)), Some((_, answered))) = (two.next(), two.next()) else { return };
    let (whole, is_over) = exchange(choice, asked, answered, &[answered.len()]);
    let (cut, is_cut_over) = exchange(choice, asked, answered, &places(answered));
    assert_eq!(is_over, is_cut_over, "where a server's stream is cut makes no difference to its end");
    // A session that ends may end before all that came with its cause is told.
    let is_same = if is_over { whole.starts_with(&cut) || cut.starts_with(&whole) } else { whole == cut };
    assert!(is_same, "where a server's stream is cut makes no difference");
}

/// What the client is told, and whether the session is at its end.
fn exchange(choice: u8, asked: &[u8], answered: &[u8], ends: &[usize]) -> (Vec<u8>, bool) {
    let mut pair = Pair::new(choice);
    pair.client(asked);
    if pair.is_over || pair.resting.is_some() {
        return (Vec::new(), true);
    }
    let mut at = 0;
    for &end in ends {
        pair.server(&answered[at..end]);
        at = end;
        if pair.is_over {
            break;
        }
    }
    (pair.told_client, pair.is_over)
}
