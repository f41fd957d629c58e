//! Listeners as scripts: who joins and leaves, what the connection is told, and who is told what.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::PoolId;
use proptest::prelude::*;

use super::*;

const LIMITS: FanoutLimits = FanoutLimits { listeners: 2, channels: 3 };

fn channel(name: &str) -> Channel {
    Channel::from(name.as_bytes())
}

fn channels(names: &str) -> Vec<Channel> {
    names.split_whitespace().map(channel).collect()
}

fn target(dbname: &str) -> Target {
    Target { places: Vec::new(), dbname: dbname.to_owned(), encoding: Box::from(&b"UTF8"[..]) }
}

fn end() -> ServerEnd {
    ServerEnd { addr: "127.0.0.1".to_owned(), port: 5432, process_id: 7 }
}

/// A registry with one database, where clients are numbers and the pool of each is its number.
struct Post {
    fanout: Fanout<u64>,
    now: Moment,
    at: BTreeMap<u64, ListenerId>,
}

impl Post {
    fn new() -> Post {
        Post { fanout: Fanout::new(LIMITS), now: Moment(1_000_000), at: BTreeMap::new() }
    }

    fn join_in(&mut self, dbname: &str, client: u64, names: &str) -> Joined {
        let member = (ClientId(client), client, PoolId(client as u32));
        let at = self.at.get(&client).copied();
        let (at, joined) = self.fanout.join(self.now, at, || target(dbname), member, &channels(names));
        if let Some(at) = at {
            self.at.insert(client, at);
        }
        joined
    }

    fn join(&mut self, client: u64, names: &str) -> &'static str {
        match self.join_in("app", client, names) {
            Joined::Waits { begin: true, .. } => "begins",
            Joined::Waits { begin: false, .. } => "waits",
            Joined::Refused(FanoutLimit::Listeners) => "too many listeners",
            Joined::Refused(FanoutLimit::Channels) => "too many channels",
        }
    }

    fn settle(&mut self, client: u64, names: &str) -> bool {
        self.fanout.settle(self.now, self.at[&client], ClientId(client), &channels(names))
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// What is next for the first listener, in words.
    fn next(&mut self) -> String {
        let words = |names: &[Channel]| {
            let mut names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
            names.sort();
            names.join(" ")
        };
        match self.fanout.next(self.now, ListenerId::FIRST) {
            Next::Connect(pool) => format!("connect {pool}"),
            Next::Say(command) => format!("+{} -{}", words(&command.listen), words(&command.unlisten)),
            Next::Check => "check".to_owned(),
            Next::Rest(_) => "rest".to_owned(),
            Next::End => "end".to_owned(),
        }
    }

    fn open(&mut self) {
        assert!(self.next().starts_with("connect"));
        self.fanout.opened(self.now, ListenerId::FIRST, end());
    }

    fn done(&mut self) -> (Vec<u64>, Vec<u64>) {
        let Done { mut heard, missed } = self.fanout.done(self.now, ListenerId::FIRST);
        heard.sort();
        (heard, missed)
    }

    /// Says all there is to say.
    fn calm(&mut self) {
        loop {
            match self.next() {
                next if next.starts_with('+') || next == "check" => drop(self.done()),
                next => return assert_eq!(next, "rest"),
            }
        }
    }

    fn told(&mut self, name: &str) -> Vec<u64> {
        let mut told = Vec::new();
        self.fanout.notified(self.now, ListenerId::FIRST, name.as_bytes(), |_, client| told.push(*client));
        told.sort();
        told
    }

    /// A post where client 1 listens on `a`.
    fn with_one() -> Post {
        let mut post = Post::new();
        assert_eq!(post.join(1, "a"), "begins");
        post.open();
        post.calm();
        post
    }
}

#[test]
fn a_client_waits_until_its_channel_is_heard() {
    let mut post = Post::new();
    assert_eq!(post.join(1, "a"), "begins");
    assert_eq!(post.next(), "connect 1");
    assert_eq!(post.next(), "rest", "it is being connected");
    post.fanout.opened(post.now, ListenerId::FIRST, end());
    assert_eq!(post.next(), "+a -");
    assert_eq!(post.next(), "rest", "one command at a time");
    assert_eq!(post.done(), (vec![1], vec![]));
    assert_eq!(post.next(), "rest");
}

#[test]
fn the_next_client_of_a_channel_waits_until_what_was_sent_before_it_came_is_through() {
    let mut post = Post::with_one();
    assert_eq!(post.join(2, "a"), "waits");
    assert_eq!(post.next(), "check");
    assert_eq!(post.join(3, "a"), "waits");
    assert_eq!(post.done(), (vec![2], vec![]));
    assert_eq!(post.next(), "check", "the answer was on its way when client 3 came");
    assert_eq!(post.done(), (vec![3], vec![]));
    assert_eq!(post.next(), "rest");
    assert_eq!(post.told("a"), [1, 2, 3]);
    assert_eq!(post.told("b"), [0_u64; 0]);
}

#[test]
fn a_client_that_comes_while_a_channel_is_asked_for_waits_for_an_answer_of_its_own() {
    let mut post = Post::new();
    post.join(1, "a");
    post.open();
    assert_eq!(post.next(), "+a -");
    assert_eq!(post.join(2, "a"), "waits");
    assert_eq!(post.done(), (vec![1], vec![]));
    assert_eq!(post.next(), "check");
    assert_eq!(post.done(), (vec![2], vec![]));
    assert_eq!(post.next(), "rest");
}

#[test]
fn a_client_waits_for_all_its_channels() {
    let mut post = Post::with_one();
    assert_eq!(post.join(2, "b"), "waits");
    assert_eq!(post.next(), "+b -");
    assert_eq!(post.join(2, "c a"), "waits");
    assert_eq!(post.done(), (vec![], vec![]));
    assert_eq!(post.next(), "+c -");
    assert_eq!(post.done(), (vec![2], vec![]));
}

#[test]
fn a_channel_is_left_with_its_last_client() {
    let mut post = Post::with_one();
    post.join(2, "a b");
    post.calm();
    assert!(!post.settle(1, ""), "the other one still listens");
    assert_eq!(post.next(), "rest");
    assert!(post.settle(2, "b"));
    assert_eq!(post.next(), "+ -a");
    assert_eq!(post.done(), (vec![], vec![]));
    assert_eq!(post.told("b"), [2]);
}

#[test]
fn a_channel_that_is_wanted_again_is_not_left() {
    let mut post = Post::with_one();
    post.join(2, "b");
    post.calm();
    post.settle(1, "");
    assert_eq!(post.join(2, "a"), "waits");
    assert_eq!(post.next(), "check");
    assert_eq!(post.done(), (vec![2], vec![]));
    assert_eq!(post.next(), "rest");

    post.settle(2, "b");
    assert_eq!(post.next(), "+ -a");
    assert_eq!(post.join(2, "a"), "waits", "it is being left");
    assert_eq!(post.done(), (vec![], vec![]));
    assert_eq!(post.next(), "+a -");
    assert_eq!(post.done(), (vec![2], vec![]));
}

#[test]
fn a_wish_that_was_taken_back_before_it_was_said_is_never_said() {
    let mut post = Post::with_one();
    post.join(2, "b");
    post.settle(2, "");
    assert_eq!(post.next(), "rest");
}

#[test]
fn a_listener_ends_some_time_after_its_last_client() {
    let mut post = Post::with_one();
    assert!(post.settle(1, ""));
    post.calm();
    assert!(
        matches!(post.fanout.next(post.now, ListenerId::FIRST), Next::Rest(until) if until != Moment::NEVER)
    );
    post.pass(Duration::from_secs(5));
    assert_eq!(post.join(2, "a"), "waits");
    post.calm();
    post.pass(Duration::from_secs(20));
    assert_eq!(post.next(), "rest", "it is used again");
    post.settle(2, "");
    post.calm();
    post.pass(Duration::from_secs(20));
    assert_eq!(post.next(), "end");
    assert_eq!(post.fanout.rows(), []);
    assert_eq!(post.join(1, "a"), "begins");
}

#[test]
fn a_silent_connection_must_show_that_it_lives() {
    let mut post = Post::with_one();
    post.pass(Duration::from_secs(29));
    assert_eq!(post.next(), "rest");
    post.pass(Duration::from_secs(2));
    assert_eq!(post.next(), "check");
    assert_eq!(post.next(), "rest");
    post.done();
    assert_eq!(post.next(), "rest");
    post.pass(Duration::from_secs(20));
    post.told("a");
    post.pass(Duration::from_secs(20));
    assert_eq!(post.next(), "rest", "it was not silent");
}

#[test]
fn after_a_loss_all_is_said_again_and_who_listened_is_told() {
    let mut post = Post::with_one();
    post.join(2, "a b");
    post.calm();
    assert_eq!(post.fanout.lost(post.now, ListenerId::FIRST), [0_u64; 0]);
    assert_eq!(post.join(3, "c"), "waits");
    assert!(post.next().starts_with("connect"), "the first time, at once");
    post.fanout.opened(post.now, ListenerId::FIRST, end());
    assert_eq!(post.next(), "+a b c -");
    assert_eq!(post.done(), (vec![3], vec![1, 2]));
    assert_eq!(post.told("a"), [1, 2]);
    assert_eq!(post.fanout.rows()[0].losses, 1);
}

#[test]
fn a_channel_that_nobody_had_heard_was_not_lost() {
    let mut post = Post::new();
    post.join(1, "a");
    post.open();
    assert_eq!(post.next(), "+a -");
    post.fanout.lost(post.now, ListenerId::FIRST);
    post.open();
    assert_eq!(post.next(), "+a -");
    assert_eq!(post.done(), (vec![1], vec![]));
}

#[test]
fn connections_that_fail_are_tried_again_later_and_as_somebody_else() {
    let mut post = Post::new();
    post.join(1, "a");
    post.join(2, "a");
    assert_eq!(post.next(), "connect 1");
    let mut refused = post.fanout.failed(post.now, ListenerId::FIRST);
    refused.sort();
    assert_eq!(refused, [1, 2], "they must listen by themselves");
    assert_eq!(post.next(), "rest");
    post.pass(Duration::from_secs(1));
    assert_eq!(post.next(), "connect 2");
    assert_eq!(post.fanout.failed(post.now, ListenerId::FIRST), [0_u64; 0]);
    post.pass(Duration::from_secs(1));
    assert_eq!(post.next(), "connect 1");
    for _ in 0..40 {
        post.fanout.failed(post.now, ListenerId::FIRST);
        post.pass(Duration::from_secs(6));
        assert!(post.next().starts_with("connect"), "the pause is bounded");
    }
}

#[test]
fn connections_that_die_at_once_are_not_made_in_a_hurry() {
    let mut post = Post::new();
    post.join(1, "a");
    post.open();
    assert_eq!(post.fanout.lost(post.now, ListenerId::FIRST), [0_u64; 0]);
    post.open();
    assert_eq!(post.fanout.lost(post.now, ListenerId::FIRST), [1]);
    assert_eq!(post.next(), "rest");
    post.pass(Duration::from_secs(6));
    post.open();
    post.calm();
    post.pass(Duration::from_secs(6));
    post.fanout.lost(post.now, ListenerId::FIRST);
    assert!(post.next().starts_with("connect"), "that one had lived");
}

#[test]
fn channels_and_listeners_are_bounded() {
    let mut post = Post::new();
    assert_eq!(post.join(1, "a b c d"), "too many channels");
    assert_eq!(post.fanout.rows(), []);
    assert_eq!(post.join(1, "a b c"), "begins");
    assert_eq!(post.join(1, "c"), "waits");
    assert_eq!(post.join(1, "d"), "too many channels");
    assert!(matches!(post.join_in("two", 2, "a"), Joined::Waits { begin: true, .. }));
    assert_eq!(post.join_in("three", 3, "a"), Joined::Refused(FanoutLimit::Listeners));
}

#[test]
fn databases_and_encodings_do_not_hear_each_other() {
    let mut post = Post::with_one();
    assert!(matches!(post.join_in("two", 2, "a"), Joined::Waits { begin: true, .. }));
    assert_eq!(post.told("a"), [1]);
}

#[test]
fn many_channels_are_said_in_several_commands() {
    let limits = FanoutLimits { listeners: 1, channels: 1000 };
    let mut post = Post { fanout: Fanout::new(limits), ..Post::new() };
    let names: Vec<String> = (0..600).map(|number| format!("c{number}")).collect();
    post.join(1, &names.join(" "));
    post.open();
    let mut commands = 0;
    let mut heard = Vec::new();
    while post.next().starts_with('+') {
        commands += 1;
        assert_eq!(heard, [0_u64; 0]);
        heard = post.done().0;
    }
    assert_eq!((commands, heard), (3, vec![1]));
}

#[test]
fn a_listener_follows_its_pools_and_clients_that_go_another_way_are_named() {
    let mut post = Post::with_one();
    post.join(2, "a");
    assert_eq!(
        post.fanout.retarget(|_| Some(target("app"))),
        Retargeted { renew: vec![], strays: vec![] },
        "nothing has changed"
    );
    assert_eq!(
        post.fanout.retarget(|_| Some(target("moved"))),
        Retargeted { renew: vec![ListenerId::FIRST], strays: vec![] }
    );
    assert_eq!(post.fanout.target(ListenerId::FIRST), Some(&target("moved")));
    let parted = |pool: PoolId| Some(target(if pool.0 == 1 { "moved" } else { "elsewhere" }));
    assert_eq!(post.fanout.retarget(parted), Retargeted { renew: vec![], strays: vec![2] });
    let mut gone = post.fanout.retarget(|_| None).strays;
    gone.sort();
    assert_eq!(gone, [1, 2]);
}

#[test]
fn a_listener_that_failed_often_can_be_told_to_try_again_now() {
    let mut post = Post::new();
    post.join(1, "a");
    for _ in 0..10 {
        assert!(post.next().starts_with("connect"));
        post.fanout.failed(post.now, ListenerId::FIRST);
        post.pass(Duration::from_secs(5));
    }
    assert!(post.next().starts_with("connect"));
    post.fanout.failed(post.now, ListenerId::FIRST);
    assert_eq!(post.next(), "rest");
    post.fanout.retry(post.now, ListenerId::FIRST);
    assert!(post.next().starts_with("connect"));
}

#[derive(Clone, Debug)]
enum Step {
    Join(u64, u8),
    Settle(u64, u8),
    Next,
    Done,
    Lose,
    Pass(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..4_u64, 1..8_u8).prop_map(|(client, names)| Step::Join(client, names)),
        2 => (1..4_u64, 0..8_u8).prop_map(|(client, names)| Step::Settle(client, names)),
        4 => Just(Step::Next),
        3 => Just(Step::Done),
        1 => Just(Step::Lose),
        1 => (0..40_u8).prop_map(Step::Pass),
    ]
}

fn names(bits: u8) -> String {
    ["a ", "b ", "c "]
        .iter()
        .enumerate()
        .filter(|(at, _)| bits >> at & 1 == 1)
        .map(|(_, name)| *name)
        .collect()
}

/// What the server at the other end knows, and the command on its way to it.
#[derive(Default)]
struct Wire {
    hears: BTreeSet<Channel>,
    command: Option<Command>,
}

proptest! {
    /// Whoever was told that it is heard is heard by the server, as long as the connection lives; and when all is
    /// said, the server hears what somebody wants and nothing else.
    #[test]
    fn what_clients_are_told_is_what_the_server_hears(steps in prop::collection::vec(step(), 1..80)) {
        let mut post = Post::new();
        let mut wire: Option<Wire> = None;
        let mut wants: BTreeMap<u64, BTreeSet<Channel>> = BTreeMap::new();
        let mut sure: BTreeSet<u64> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Join(client, bits) => {
                    post.join(client, &names(bits));
                    wants.entry(client).or_default().extend(channels(&names(bits)));
                    sure.remove(&client);
                }
                Step::Settle(client, bits) if sure.contains(&client) => {
                    post.settle(client, &names(bits));
                    let kept = channels(&names(bits));
                    wants.entry(client).or_default().retain(|name| kept.contains(name));
                }
                Step::Settle(..) => {}
                Step::Next => {
                    let id = post.at.values().max().copied().unwrap_or(ListenerId::FIRST);
                    match post.fanout.next(post.now, id) {
                        Next::Connect(_) => {
                            post.fanout.opened(post.now, id, end());
                            wire = Some(Wire::default());
                        }
                        Next::Say(command) => wire.as_mut().expect("connected").command = Some(command),
                        Next::Check => wire.as_mut().expect("connected").command = Some(Command::default()),
                        Next::Rest(_) => {}
                        Next::End => {
                            prop_assert!(wants.values().all(BTreeSet::is_empty));
                            wire = None;
                        }
                    }
                }
                Step::Done => {
                    let id = post.at.values().max().copied().unwrap_or(ListenerId::FIRST);
                    if let Some(wire) = &mut wire && let Some(command) = wire.command.take() {
                        wire.hears.extend(command.listen);
                        wire.hears.retain(|name| !command.unlisten.contains(name));
                        sure.extend(post.fanout.done(post.now, id).heard);
                    }
                }
                Step::Lose if wire.is_some() => {
                    let id = post.at.values().max().copied().unwrap_or(ListenerId::FIRST);
                    wire = None;
                    // Who is refused listens by itself; what it had asked for here ends with its transaction.
                    for client in post.fanout.lost(post.now, id) {
                        post.settle_refused(client, &mut wants);
                    }
                }
                Step::Lose => {}
                Step::Pass(seconds) => post.pass(Duration::from_secs(seconds.into())),
            }
            let Some(wire) = &wire else { continue };
            if post.fanout.rows().iter().all(|row| row.losses == 0) {
                for client in &sure {
                    let wanted = &wants[client];
                    prop_assert!(wanted.is_subset(&wire.hears), "{client} is deaf: {wanted:?} of {:?}", wire.hears);
                }
            }
        }
    }
}

impl Post {
    fn settle_refused(&mut self, client: u64, wants: &mut BTreeMap<u64, BTreeSet<Channel>>) {
        self.settle(client, "");
        wants.remove(&client);
    }
}

#[test]
fn a_listener_without_clients_leaves_its_database_when_it_must() {
    let mut post = Post::with_one();
    assert!(post.fanout.leave_database(&target("app")).is_empty(), "somebody listens");
    post.settle(1, "");
    assert_eq!(post.next(), "end");

    let mut post = Post::with_one();
    post.settle(1, "");
    assert!(post.fanout.leave_database(&target("other")).is_empty());
    assert_ne!(post.next(), "end", "somebody may come back");
    let latin = Target { encoding: Box::from(&b"LATIN1"[..]), ..target("app") };
    assert_eq!(post.fanout.leave_database(&latin), [ListenerId::FIRST], "whatever its clients read");
    assert_eq!(post.next(), "end");

    let mut post = Post::with_one();
    let _ = post.fanout.leave_database(&target("app"));
    post.join(2, "a");
    post.settle(1, "");
    post.settle(2, "");
    assert_ne!(post.next(), "end", "somebody has come since");
}
