//! Servers that replicate, fall behind, start again and are promoted, asked by questions that take their time: no
//! client is let to a standby that lacks what it has written.

use std::time::Duration;

use model::Moment;
use proptest::prelude::*;

use super::{Bench, PRIMARY, STANDBY};
use crate::{Answer, Cluster, Effects, Limits, Need, NodeId};

const NODES: usize = 3;
const CLIENTS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A client writes where writes go, and is answered.
    Write { client: usize },
    /// A standby takes over so much from whom it follows.
    Replay { node: usize, count: usize },
    /// The server looks up what it was asked.
    Look { node: usize },
    /// What it found is heard.
    Hear { node: usize },
    /// Nodes are asked that are due.
    Ask { millis: u64 },
    /// A standby starts again, and is some way back in its log.
    Restart { node: usize, back: usize },
    /// A standby takes over, whatever the others do.
    Promote { node: usize },
    /// A standby follows another server from now on.
    Follow { node: usize, whom: usize },
    /// A connection is made.
    Connect { node: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let node = 0..NODES;
    prop::collection::vec(
        prop_oneof![
            6 => (0..CLIENTS).prop_map(|client| Step::Write { client }),
            6 => (node.clone(), 1..4_usize).prop_map(|(node, count)| Step::Replay { node, count }),
            8 => node.clone().prop_map(|node| Step::Look { node }),
            8 => node.clone().prop_map(|node| Step::Hear { node }),
            8 => prop_oneof![Just(0), Just(60), Just(600)].prop_map(|millis| Step::Ask { millis }),
            1 => (node.clone(), 0..5_usize).prop_map(|(node, back)| Step::Restart { node, back }),
            1 => node.clone().prop_map(|node| Step::Promote { node }),
            1 => (node.clone(), 0..NODES).prop_map(|(node, whom)| Step::Follow { node, whom }),
            3 => node.prop_map(|node| Step::Connect { node }),
        ],
        1..200,
    )
}

#[derive(Clone, Default)]
struct Server {
    /// What is committed there, in order.
    log: Vec<u64>,
    timeline: u32,
    is_primary: bool,
    follows: usize,
    run: u32,
    /// A question under way, and what was found.
    is_asked: bool,
    found: Option<Answer>,
}

impl Server {
    fn answer(&self) -> Answer {
        let role = if self.is_primary { PRIMARY } else { STANDBY };
        // What a control file says of a standby is behind.
        let timeline = if self.is_primary { self.timeline } else { 1 };
        let position = 10_000 + 64 * self.log.len() as u64;
        Answer { timeline, history: self.timeline, position, started: self.run.into(), ..role }
    }
}

#[derive(Clone, Copy, Default)]
struct Client {
    wrote_at: Moment,
}

struct World {
    now: Moment,
    cluster: Cluster,
    servers: Vec<Server>,
    clients: [Client; CLIENTS],
    /// Who wrote what.
    written: Vec<(usize, u64)>,
    /// When a connection was made to each, and to which run.
    connections: [Option<(Moment, u32)>; NODES],
    reads: usize,
}

impl World {
    fn new() -> World {
        let mut servers = vec![Server { timeline: 1, ..Server::default() }; NODES];
        servers[0].is_primary = true;
        let now = Moment(1_000);
        World {
            now,
            cluster: Cluster::new(now, NODES, Limits::default()),
            servers,
            clients: [Client::default(); CLIENTS],
            written: Vec::new(),
            connections: [None; NODES],
            reads: 0,
        }
    }

    fn step(&mut self, step: Step) {
        self.now = self.now + Duration::from_micros(7);
        match step {
            Step::Write { client } => {
                let Some(writer) = self.cluster.writer() else { return };
                let server = &mut self.servers[writer.index()];
                if server.is_primary {
                    let id = self.written.len() as u64;
                    server.log.push(id);
                    self.written.push((client, id));
                    self.clients[client].wrote_at = self.now;
                }
            }
            Step::Replay { node, count } => self.replay(node, count),
            Step::Look { node } => {
                let server = &mut self.servers[node];
                if server.is_asked && server.found.is_none() {
                    server.found = Some(server.answer());
                }
            }
            Step::Hear { node } => {
                if let Some(answer) = self.servers[node].found.take() {
                    self.servers[node].is_asked = false;
                    let effects = self.cluster.probed(self.now, NodeId(node as u16), Ok(answer));
                    self.ask(&effects.probes);
                }
            }
            Step::Ask { millis } => {
                self.now = self.now + Duration::from_millis(millis);
                let effects = self.cluster.tick(self.now);
                self.ask(&effects.probes);
            }
            Step::Restart { node, back } => {
                let server = &mut self.servers[node];
                server.run += 1;
                if !server.is_primary {
                    server.log.truncate(server.log.len().saturating_sub(back));
                }
            }
            Step::Promote { node } => {
                let highest = self.servers.iter().map(|server| server.timeline).max().unwrap_or(1);
                let server = &mut self.servers[node];
                if !server.is_primary && highest < 6 {
                    (server.is_primary, server.timeline) = (true, highest + 1);
                }
            }
            Step::Follow { node, whom } => self.servers[node].follows = whom,
            Step::Connect { node } => self.connections[node] = Some((self.now, self.servers[node].run)),
        }
    }

    fn ask(&mut self, probes: &[crate::Probe]) {
        for probe in probes {
            self.servers[probe.node.index()].is_asked = true;
        }
    }

    fn replay(&mut self, node: usize, count: usize) {
        let source = self.servers[self.servers[node].follows].clone();
        let server = &mut self.servers[node];
        // What has gone another way cannot be followed.
        if server.is_primary || !source.log.starts_with(&server.log) || source.timeline < server.timeline {
            return;
        }
        let from = server.log.len();
        server.log.extend(source.log[from..].iter().take(count));
        // It is on the way of that timeline, as far as it may be behind.
        server.timeline = source.timeline;
    }

    /// Whoever may read somewhere finds all that it has written and that is not lost.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let primaries = self.servers.iter().filter(|server| server.is_primary);
        let Some(newest) = primaries.max_by_key(|server| server.timeline) else { return Ok(()) };
        for (node, server) in self.servers.iter().enumerate() {
            let Some((connected, run)) = self.connections[node] else { continue };
            if run != server.run {
                continue;
            }
            for (number, client) in self.clients.iter().enumerate() {
                let need = Need::After(client.wrote_at);
                if !self.cluster.board().fits_on(NodeId(node as u16), need, connected) {
                    continue;
                }
                self.reads += 1;
                let own = self.written.iter().filter(|(who, _)| *who == number);
                for (_, id) in own.filter(|(_, id)| newest.log.contains(id)) {
                    prop_assert!(server.log.contains(id), "client {} misses {} on {}", number, id, node);
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn nobody_reads_where_its_own_writes_are_missing(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
            world.check()?;
        }
    }
}

#[test]
fn a_client_comes_back_to_the_standbys() {
    let mut world = World::new();
    let settle = |world: &mut World| {
        for step in [Step::Ask { millis: 600 }, Step::Ask { millis: 0 }] {
            world.step(step);
        }
        for node in 0..NODES {
            world.step(Step::Replay { node, count: 9 });
        }
        for node in 0..NODES {
            world.step(Step::Look { node });
            world.step(Step::Hear { node });
        }
    };
    settle(&mut world);
    (0..NODES).for_each(|node| world.step(Step::Connect { node }));
    settle(&mut world);
    let board = std::sync::Arc::clone(world.cluster.board());
    let fits = |world: &World| {
        let (connected, _) = world.connections[1].expect("connected");
        board.fits_on(NodeId(1), Need::After(world.clients[0].wrote_at), connected)
    };
    assert!(fits(&world));
    world.step(Step::Write { client: 0 });
    assert!(!fits(&world));
    settle(&mut world);
    assert!(fits(&world), "the write is replayed, and was asked for since");
    // The primary itself is not read from.
    assert!(!board.fits(NodeId(0), Need::Nothing));
    // With no primary to ask, what was known stays known.
    world.step(Step::Ask { millis: 600 });
    let _ = world.cluster.probed(world.now, NodeId(0), Err(crate::Failure::Refused));
    let _ = world.cluster.probed(world.now, NodeId(0), Err(crate::Failure::Refused));
    assert!(world.cluster.writer().is_none() && fits(&world));
}

#[test]
fn nodes_are_asked_soon_while_clients_miss_their_writes() {
    let mut world = World::new();
    for millis in [0, 600, 600] {
        world.step(Step::Ask { millis });
        for node in 0..NODES {
            world.step(Step::Look { node });
            world.step(Step::Hear { node });
        }
    }
    let slow = world.cluster.next_tick();
    assert!(slow > world.now + Duration::from_millis(200));
    world.now = world.now + Duration::from_millis(20);
    world.cluster.board().missed(world.now);
    assert!(world.cluster.next_tick() < world.now + Duration::from_millis(60));
    let _ = world.reads;
}

#[test]
fn standbys_are_asked_as_soon_as_the_primary_has_said_how_far_it_is() {
    let mut bench = Bench::of(&[PRIMARY, STANDBY]);
    let nodes = |effects: &Effects| -> Vec<u16> { effects.probes.iter().map(|probe| probe.node.0).collect() };
    let _ = (bench.says(0, PRIMARY), bench.says(1, STANDBY));
    bench.pass(1000);
    let effects = bench.cluster.tick(bench.now);
    assert_eq!(nodes(&effects), [0, 1]);
    assert_eq!(nodes(&bench.says(0, PRIMARY)), [0_u16; 0], "nobody misses anything");
    let _ = bench.says(1, STANDBY);
    bench.cluster.board().missed(bench.now);
    bench.pass(5);
    let effects = bench.cluster.tick(bench.now);
    assert_eq!(nodes(&effects), [0], "the standby has nothing to be held against yet");
    let mut soon = |node, answer| {
        bench.pass(5);
        nodes(&bench.cluster.probed(bench.now, NodeId(node), Ok(answer)))
    };
    assert_eq!(soon(0, PRIMARY), [1]);
    assert_eq!(soon(1, STANDBY), [0_u16; 0], "it has all that was missed");
}
