//! Random legal clients over shared servers: each must see what a PostgreSQL of its own would have told it,
//! and no server may be given on with anything open.

use std::collections::VecDeque;
use std::sync::Arc;

use model::{Parameters, Statements};
use proptest::prelude::*;
use server::Server;

use crate::unpaired::{self, Fate};
use crate::{Out, Policy};

use super::harness::{self, Seat, append};
use super::postgres::Postgres;
use super::words::{client_bytes, server_words};

/// A draw of lots that a seed repeats.
pub struct Lots(pub u64);

impl Lots {
    pub fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % count.max(1)
    }

    /// Takes some bytes from the front.
    fn cut(&mut self, bytes: &mut Vec<u8>) -> Vec<u8> {
        let count = if self.below(3) == 0 { bytes.len() } else { 1 + self.below(bytes.len()) };
        bytes.drain(..count.min(bytes.len())).collect()
    }
}

fn one_of(choices: &'static [&'static str]) -> impl Strategy<Value = String> {
    (prop::sample::select(choices), 0..9_u8).prop_map(|(text, number)| text.replace('#', &number.to_string()))
}

const TEXTS: &[&str] = &[
    "select #",
    "select 1",
    "select 2",
    "rows 3",
    "fail",
    "bad",
    "begin",
    "commit",
    "rollback",
    "copy out",
    "set app #",
    "show app",
    "show digits",
    "alter",
    "",
];

const QUERIES: &[&str] = &[
    "Q(select #)",
    "Q(select 1;select #)",
    "Q(begin)",
    "Q(begin)",
    "Q(begin;select #)",
    "Q(commit)",
    "Q(commit;select #)",
    "Q(rollback)",
    "Q(rollback)",
    "Q(select 1;fail;select 2)",
    "Q(bad)",
    "Q()",
    "Q(set app #)",
    "Q(begin;set app #)",
    "Q(show app)",
    "Q(show digits)",
    "Q(rows 3)",
    "Q(alter)",
    "Q(begin;alter)",
    "Q(copy out)",
    "F",
    "S",
    "S S",
    "d(late)",
    "c",
    "f(late)",
    "H",
    "Q(copy in) d(1) c",
    "Q(copy in) d(1) d(boom) d(2) c",
    "Q(copy in) S f(no)",
    "Q(copy boom) d(1) c",
    "Q(copy in;copy in;select #) d(1) c d(2) S c",
    "Q(select 1;copy in;fail) d(1) c",
    "P(,copy in) B E d(1) c S",
    "P(,copy in) B E S d(1) c S",
    "P(,copy in) B E S H S d(1) c S",
    "P(,copy in) B E S d(boom) d(2) c S",
    "P(,copy in) B E S f(no) S",
    "P(,copy in) B E d(boom) c S",
    "P(,copy boom) B E S d(1) c S",
    "P(,copy boom) B E S f(no) S",
    "P(,copy boom) B E d(1) c S",
    "P(,copy in) B E S d(1) d(boom) c S P(,select #) B E S",
];

const OPERATIONS: &[&str] = &[
    "B(a) E",
    "B(b) E",
    "B(c,p) Dp(p) E(p)",
    "B(a,p) E(p,1) E(p,2)",
    "B(b,q) E(q,2)",
    "E(p,1)",
    "E(q)",
    "D(a)",
    "D(b)",
    "D(c)",
    "C(a)",
    "C(b)",
    "C(c)",
    "Cp(p)",
    "Cp(a)",
    "H",
    "E(nobody)",
    "B(nobody) E",
    "D(nobody)",
    "d(x)",
    "c",
];

/// What only a client that has waited for every answer may send: the link decides about it by what it knows.
const ALONE: &[&str] = &["Q(deallocate a)", "Q(deallocate b)", "Q(deallocate all)", "Q(discard all)"];

/// One batch, and whether what is behind it is certain to begin outside any batch.
type Batch = (String, bool);

fn batch() -> impl Strategy<Value = Vec<Batch>> {
    let parse = (prop::sample::select(&["a", "b", "c"][..]), one_of(TEXTS))
        .prop_map(|(name, text)| format!("P({name},{text})"));
    let unnamed = (one_of(TEXTS), prop::sample::select(&["B E", "D B Dp E", "B E E"][..]))
        .prop_map(|(text, rest)| format!("P(,{text}) {rest}"));
    let operation = prop_oneof![3 => parse, 2 => unnamed, 5 => one_of(OPERATIONS)];
    let end = prop::sample::select(&["S", "S", "S", "S", "H", "Q(select 5)", "F"][..]);
    prop_oneof![
        4 => one_of(QUERIES).prop_map(|text| { let ends = text != "H"; vec![(text, ends)] }),
        6 => (prop::collection::vec(operation, 1..6), end)
            .prop_map(|(operations, end)| vec![(format!("{} {end}", operations.join(" ")), end == "S")]),
        1 => one_of(ALONE).prop_map(|text| vec![("S".to_owned(), true), (text, true)]),
        1 => one_of(TEXTS).prop_map(|text| vec![
            ("S".to_owned(), true),
            (format!("P(,{text}) D S"), true),
            ("B E S".to_owned(), true),
        ]),
    ]
}

/// Batches of a client that waits for the answers to one before it sends the next.
pub fn waiting_script() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(batch(), 1..12).prop_map(|batches| {
        let mut script: Vec<String> = batches.into_iter().flatten().map(|(text, _)| text).collect();
        script.push("S".to_owned());
        script
    })
}

/// Batches of a client that waits for nothing, rich in names that are given and used again.
fn hasty_script() -> impl Strategy<Value = Vec<String>> {
    let texts =
        prop::sample::select(&["select 1", "select 2", "rows 3", "fail", "bad", "copy out", "set app 3"][..]);
    let piece = prop_oneof![
        3 => (0..6_usize, texts).prop_map(|(back, text)| (back, format!("P(@,{text}) B(@) E"))),
        3 => (0..6_usize, Just("B(@) E".to_owned())),
        1 => (0..6_usize, Just("D(@)".to_owned())),
        1 => (0..6_usize, Just("C(@)".to_owned())),
        2 => (0..1_usize, one_of(&["P(,select #) B E", "P(,bad) B E", "B(nobody)", "E(nobody)", "P(,fail) B E"])),
    ];
    let piece = (piece, prop::sample::select(&["", "", "S", "S", "S S", "H"][..]));
    let piece = prop_oneof![6 => piece, 1 => (one_of(QUERIES_ALONE).prop_map(|text| (0, text)), Just(""))];
    prop::collection::vec(piece, 1..25).prop_map(|pieces| {
        let mut names = 0;
        let mut script = Vec::new();
        for ((back, text), end) in pieces {
            let is_new = text.starts_with("P(@");
            names += usize::from(is_new);
            let name = if is_new { names } else { names.saturating_sub(back) };
            script.push(format!("{} {end}", text.replace('@', &format!("n{name}"))));
        }
        script.push("S".to_owned());
        script
    })
}

const QUERIES_ALONE: &[&str] = &[
    "S Q(select #)",
    "S Q(select 1;fail)",
    "S Q(copy in) d(1) c",
    "S Q(copy in) d(boom) c",
    "S F",
    "S Q(copy out)",
    "S P(,copy in) B E S d(1) c S",
    "S P(,copy in) B E S d(boom) c S",
    "S P(,copy boom) B E S d(1) c S",
];

/// What a client of this number logged in with, beside what every server has.
fn own_settings(client: usize) -> &'static [(&'static str, &'static str)] {
    [&[("app", ""), ("digits", "1")][..], &[("app", ""), ("digits", "3")]][client % 2]
}

fn wants(client: usize) -> Arc<Parameters> {
    let own: &[(&str, &str, bool)] =
        [&[("app", "", true)][..], &[("app", "", true), ("digits", "3", false)]][client % 2];
    harness::parameters(own)
}

/// What PostgreSQL tells a client of its own.
fn direct(client: usize, script: &[String]) -> String {
    let mut postgres = Postgres::new(own_settings(client));
    script.iter().for_each(|batch| postgres.feed(&client_bytes(batch)));
    assert!(!postgres.is_dead, "the script is legal");
    codes(&server_words(&postgres.output))
}

/// Without ParameterStatus.
fn without_reports(words: &str) -> String {
    let kept = super::words::words(words).into_iter().filter(|word| !word.starts_with("S("));
    kept.collect::<Vec<_>>().join(" ")
}

/// Errors by their codes alone.
fn codes(words: &str) -> String {
    let short = super::words::words(words).into_iter().map(|word| match word.split_once(' ') {
        Some((code, _)) if word.starts_with("E(") => format!("{code})"),
        _ => word.to_owned(),
    });
    short.collect::<Vec<_>>().join(" ")
}

struct Place {
    postgres: Postgres,
    /// In nobody's hands.
    idle: Option<Box<Server>>,
    /// On the way to it.
    to: Vec<u8>,
}

struct Player {
    seat: Seat,
    script: VecDeque<String>,
    /// What of the batch begun is still to be sent.
    saying: Vec<u8>,
    place: Option<usize>,
    is_gone: bool,
}

struct Game {
    policy: Policy,
    lots: Lots,
    players: Vec<Player>,
    places: Vec<Place>,
    servers: u64,
    waits: bool,
}

impl Game {
    fn new(policy: Policy, scripts: &[Vec<String>], places: usize, waits: bool, seed: u64) -> Game {
        let statements: Arc<Statements> = Arc::default();
        let players = scripts.iter().enumerate().map(|(at, script)| Player {
            seat: Seat::new(at as u64, &policy, &statements, wants(at)),
            script: script.iter().cloned().collect(),
            saying: Vec::new(),
            place: None,
            is_gone: false,
        });
        let players = players.collect();
        let mut game = Game { policy, lots: Lots(seed), players, places: Vec::new(), servers: 0, waits };
        for _ in 0..places {
            let place = game.open();
            game.places.push(place);
        }
        game
    }

    fn open(&mut self) -> Place {
        self.servers += 1;
        let idle = harness::server(self.servers, harness::parameters(&[("app", "", true)]));
        Place { postgres: Postgres::new(own_settings(0)), idle: Some(idle), to: Vec::new() }
    }

    /// Plays until every client has all its answers. False if it stops before that.
    fn play(&mut self) -> bool {
        for _ in 0..100_000 {
            if self.players.iter().all(|player| player.is_gone || player.is_done())
                && self.places.iter().all(Place::is_quiet)
            {
                return true;
            }
            let at = self.lots.below(self.players.len());
            match self.lots.below(5) {
                0 => self.say(at),
                1 | 2 => self.carry(at),
                3 => self.arrive(),
                _ => self.answer(at),
            }
            self.release(at);
        }
        false
    }

    fn say(&mut self, at: usize) {
        let player = &mut self.players[at];
        if player.is_gone {
            return;
        }
        if player.saying.is_empty() {
            let is_quiet = player.seat.from_client.is_empty()
                && player.seat.to_server.is_empty()
                && player.place.is_none_or(|place| self.places[place].is_quiet());
            if self.waits && !is_quiet {
                return;
            }
            let Some(batch) = player.script.pop_front() else { return };
            player.saying = client_bytes(&batch);
        }
        if player.place.is_none() {
            let free: Vec<usize> =
                (0..self.places.len()).filter(|&at| self.places[at].idle.is_some()).collect();
            let Some(&place) = free.get(self.lots.below(free.len())) else { return };
            let server = self.places[place].idle.take().expect("it is free");
            player.place = Some(place);
            player.seat.grant(server, self.lots.below(4) == 0);
        }
        let bytes = self.lots.cut(&mut player.saying);
        player.seat.client_says(&bytes);
    }

    /// Bytes reach the server.
    fn carry(&mut self, at: usize) {
        let player = &mut self.players[at];
        let Some(place) = player.place.map(|place| &mut self.places[place]) else { return };
        place.to.append(&mut player.seat.to_server);
        let bytes = self.lots.cut(&mut place.to);
        place.postgres.feed(&bytes);
    }

    /// What was sent to some server last reaches it, whoever has it now.
    fn arrive(&mut self) {
        let at = self.lots.below(self.places.len());
        let place = &mut self.places[at];
        place.postgres.feed(&std::mem::take(&mut place.to));
    }

    /// Bytes reach the client's link.
    fn answer(&mut self, at: usize) {
        let player = &mut self.players[at];
        let Some(place) = player.place.map(|place| &mut self.places[place]) else { return };
        let bytes = self.lots.cut(&mut place.postgres.output);
        if !bytes.is_empty() {
            player.seat.server_says(&bytes);
        }
    }

    fn release(&mut self, at: usize) {
        let player = &mut self.players[at];
        assert_eq!(
            player.seat.end,
            None,
            "a legal client and a sound server: {:?}",
            player.seat.link.server()
        );
        let Some(place) = player.place else { return };
        if player.seat.link.is_spoilt() {
            let _closed = player.seat.leave();
            assert!(player.seat.from_server.is_empty());
            // Flushes and late CopyData, which nothing answers, may still be on their way to it.
            player.seat.to_server.clear();
            player.place = None;
            self.places[place] = self.open();
            return;
        }
        let Some(server) = player.seat.release() else { return };
        assert!(player.seat.from_server.is_empty());
        player.place = None;
        let place = &mut self.places[place];
        place.to.append(&mut player.seat.to_server);
        place.assert_clean();
        place.idle = Some(server);
    }

    /// The client goes, wherever it is. What its server needs is done.
    fn quit(&mut self, at: usize) {
        let player = &mut self.players[at];
        player.is_gone = true;
        let (Some(place), Some(mut server)) = (player.place.take(), player.seat.leave()) else { return };
        let kept = std::mem::take(&mut player.seat.from_server);
        self.places[place].to.append(&mut player.seat.to_server);
        let mut out = Out::default();
        let mut fate = unpaired::left(&mut server, &self.policy, &mut out);
        if fate == Fate::Close {
            self.places[place] = self.open();
            return;
        }
        assert!(kept.is_empty());
        let here = &mut self.places[place];
        while fate == Fate::Cleaning {
            append(&mut here.to, &out.to_server, &[]);
            here.postgres.feed(&std::mem::take(&mut here.to));
            let input = std::mem::take(&mut here.postgres.output);
            out = Out::default();
            let (consumed, next) = unpaired::on_server(&mut server, &self.policy, &input, &mut out);
            assert_eq!(consumed, input.len());
            assert!(out.to_client.is_empty());
            fate = next;
        }
        assert_eq!(fate, Fate::Clean);
        here.assert_clean();
        here.idle = Some(server);
    }

    fn check(&self, scripts: &[Vec<String>]) {
        for (at, (player, script)) in self.players.iter().zip(scripts).enumerate() {
            let mut seen = codes(&server_words(&player.seat.to_client));
            let mut expected = direct(at, script);
            if self.policy.state != model::StateMode::Off {
                // What is told of settings, and when, is held by tables: here it is what rows show that counts.
                (seen, expected) = (without_reports(&seen), without_reports(&expected));
            }
            if player.is_gone {
                // A message that did not arrive whole is not compared.
                let whole = seen.rfind(" +").filter(|_| seen.ends_with("bytes")).unwrap_or(seen.len());
                seen.truncate(if seen.starts_with('+') { 0 } else { whole });
                expected.truncate(seen.len());
            }
            assert_eq!(seen, expected, "client {at}");
        }
    }
}

impl Player {
    fn is_done(&self) -> bool {
        self.script.is_empty()
            && self.saying.is_empty()
            && self.seat.from_client.is_empty()
            && self.seat.to_server.is_empty()
    }
}

impl Place {
    fn is_quiet(&self) -> bool {
        self.to.is_empty() && self.postgres.output.is_empty()
    }

    /// What is still on its way leaves nothing open and asks for no answer.
    fn assert_clean(&self) {
        let mut after = self.postgres.clone();
        after.feed(&self.to);
        assert!(after.is_clean(), "given on with something open: {after:?}");
    }
}

pub fn policy(prepared_max: usize) -> Policy {
    Policy { prepared_max, ..Policy::default() }
}

fn run(scripts: &[Vec<String>], places: usize, waits: bool, prepared_max: usize, seed: u64) {
    run_with(policy(prepared_max), scripts, places, waits, seed);
}

pub fn run_with(policy: Policy, scripts: &[Vec<String>], places: usize, waits: bool, seed: u64) {
    let mut game = Game::new(policy, scripts, places, waits, seed);
    let is_over = game.play();
    // A client that ends inside a transaction keeps its server, and others may wait for it for ever.
    assert!(
        is_over || game.players.iter().any(|player| player.place.is_some()),
        "somebody waits for nothing"
    );
    for at in 0..scripts.len() {
        if !game.players[at].is_done() || game.players[at].place.is_some() {
            game.quit(at);
        }
    }
    game.check(scripts);
    assert!(game.places.iter().all(|place| place.idle.is_some()));
}

proptest! {
    #[test]
    fn a_client_alone_sees_what_postgresql_says(script in waiting_script(), prepared_max in 1..5_usize, seed: u64) {
        run(&[script], 1, true, prepared_max, seed);
    }

    #[test]
    fn a_client_on_changing_servers_sees_what_postgresql_says(script in waiting_script(), prepared_max in 1..5_usize, seed: u64) {
        run(&[script], 3, true, prepared_max, seed);
    }

    #[test]
    fn clients_that_share_servers_see_what_postgresql_says(
        scripts in prop::collection::vec(waiting_script(), 2..5),
        places in 1..3_usize,
        prepared_max in 1..5_usize,
        seed: u64,
    ) {
        run(&scripts, places, true, prepared_max, seed);
    }

    #[test]
    fn clients_that_wait_for_nothing_see_what_postgresql_says(
        scripts in prop::collection::vec(hasty_script(), 1..4),
        places in 1..3_usize,
        prepared_max in 1..5_usize,
        seed: u64,
    ) {
        run(&scripts, places, false, prepared_max, seed);
    }

    #[test]
    fn clients_that_wait_for_nothing_may_do_nearly_all(
        scripts in prop::collection::vec(waiting_script(), 1..4),
        places in 1..3_usize,
        prepared_max in 1..5_usize,
        seed: u64,
    ) {
        // What a Parse comes to in a failed transaction block, and what is left behind DISCARD ALL and
        // DEALLOCATE ALL, the link knows only once these are answered.
        let calm = |batch: &String| match batch.as_str() {
            "Q(discard all)" | "Q(deallocate all)" => "Q(deallocate c)".to_owned(),
            _ => batch.replace("begin", "select 7"),
        };
        let scripts: Vec<Vec<String>> = scripts.iter().map(|script| script.iter().map(calm).collect()).collect();
        run(&scripts, places, false, prepared_max, seed);
    }

    #[test]
    fn a_client_that_leaves_anywhere_leaves_no_open_server(
        scripts in prop::collection::vec(waiting_script(), 2..4),
        moves in 0..300_usize,
        seed: u64,
    ) {
        let mut game = Game::new(policy(3), &scripts, 2, true, seed);
        for _ in 0..moves {
            let at = game.lots.below(scripts.len());
            match game.lots.below(3) {
                0 => game.say(at),
                1 => game.carry(at),
                _ => game.answer(at),
            }
            game.release(at);
        }
        game.quit(0);
        game.play();
        (1..scripts.len()).for_each(|at| game.quit(at));
        game.check(&scripts);
    }
}
