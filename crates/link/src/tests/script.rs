//! The one `check` of the cases: a script of what both sides send and are sent.
//!
//! A line each, `C` and `S` send, `>` and `<` say all that the server and the client are sent since:
//!
//! - `C words` the client sends; it is granted the server if it has none
//! - `> words` what the server is sent
//! - `S words` the server sends
//! - `< words` what the client is sent
//! - `free` the server may go to another, and is taken; `held` it may not
//! - `pins words` the client keeps its server: the verb and the reasons; without words it does not
//! - `client b`, `server 2` the lines that follow are about these; at first `a` and `1`
//! - `check` the next grant demands a sign of life
//! - `wishes words` channels that somebody else must hear; `heard` they are, `deaf` they are not
//! - `settled words` the channels to be made known, `unsettled` if there is nothing new
//! - `notify` the client may be told of a notification, `hush` it may not
//! - `harmless` the server may be lost without a word; `harmful` it may not
//! - `gone`, `gone told` the server is at its end; `closed words` the client is
//! - `left clean`, `left cleaning`, `left close` the client goes away, and what its server needs; after
//!   `cleaning`, `S` lines speak to nobody, and `clean`, `cleaning` or `close` tells what came of the last

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Parameters, Statements};
use server::Server;

use crate::unpaired::{self, Fate};
use crate::{Channel, Out, Policy, Then};

use super::harness::{self, Seat};
use super::words::{client_bytes, client_words, server_bytes, server_words};

/// What a script begins with.
pub struct Stage {
    pub policy: Policy,
    pub client: Arc<Parameters>,
    pub server: Arc<Parameters>,
}

impl Default for Stage {
    fn default() -> Stage {
        let parameters = harness::parameters(&[("TimeZone", "UTC", true)]);
        Stage { policy: Policy::default(), client: Arc::clone(&parameters), server: parameters }
    }
}

/// In transaction mode with the defaults.
pub fn check(script: &str) {
    check_on(&Stage::default(), script);
}

/// With a policy of its own.
pub fn check_with(policy: Policy, script: &str) {
    check_on(&Stage { policy, ..Stage::default() }, script);
}

pub fn check_on(stage: &Stage, script: &str) {
    let mut run = Run {
        stage,
        statements: Arc::default(),
        seats: BTreeMap::new(),
        pool: BTreeMap::new(),
        client: "a".to_owned(),
        server: "1".to_owned(),
        must_live: false,
        orphan: None,
        fate: None,
    };
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        run.line(verb, rest.trim(), line);
    }
    run.nothing_unsaid("the end");
}

fn channels(channels: Option<&[Channel]>) -> Option<String> {
    let names = |channels: &[Channel]| {
        channels.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>().join(" ")
    };
    channels.map(names)
}

struct Run<'a> {
    stage: &'a Stage,
    statements: Arc<Statements>,
    seats: BTreeMap<String, Seat>,
    pool: BTreeMap<String, Box<Server>>,
    client: String,
    server: String,
    must_live: bool,
    /// A server whose client is gone.
    orphan: Option<Box<Server>>,
    fate: Option<Fate>,
}

impl Run<'_> {
    fn seat(&mut self) -> &mut Seat {
        let Run { stage, statements, seats, .. } = self;
        let id = seats.len() as u64;
        seats
            .entry(self.client.clone())
            .or_insert_with(|| Seat::new(id, &stage.policy, statements, Arc::clone(&stage.client)))
    }

    fn line(&mut self, verb: &str, rest: &str, line: &str) {
        match verb {
            "C" => {
                self.nothing_unsaid(line);
                self.grant();
                self.seat().client_says(&client_bytes(rest));
            }
            "S" => {
                self.nothing_unsaid(line);
                if self.orphan.is_some() {
                    self.tell_orphan(rest)
                } else {
                    self.seat().server_says(&server_bytes(rest))
                }
            }
            ">" => assert_eq!(client_words(&std::mem::take(&mut self.seat().to_server)), rest, "{line}"),
            "<" => assert_eq!(server_words(&std::mem::take(&mut self.seat().to_client)), rest, "{line}"),
            "free" => {
                let server = self.seat().release().unwrap_or_else(|| panic!("the server is not free"));
                self.pool.insert(self.server.clone(), server);
            }
            "held" => {
                assert!(self.seat().link.server().is_some() && !self.seat().link.release_due(), "{line}")
            }
            "pins" => {
                let told = self.seat().link.pins().map(|pins| {
                    let reasons: Vec<String> = pins.reasons().map(|reason| format!("{reason:?}")).collect();
                    format!("{} {}", pins.verb, reasons.join(" "))
                });
                assert_eq!(told.unwrap_or_default(), rest, "{line}");
            }
            "wishes" => assert_eq!(channels(self.seat().link.wished_channels()), Some(rest.into()), "{line}"),
            "heard" | "deaf" => {
                self.seat().link.channels_heard(verb == "heard");
                self.grant();
                self.seat().client_says(b"");
            }
            "settled" => {
                assert_eq!(channels(self.seat().link.settled_channels()), Some(rest.into()), "{line}");
            }
            "unsettled" => assert_eq!(self.seat().link.settled_channels(), None, "{line}"),
            "harmless" | "harmful" => {
                assert_eq!(self.seat().link.loses_nothing(), verb == "harmless", "{line}");
            }
            "notify" | "hush" => {
                assert_eq!(self.seat().link.may_be_notified(), verb == "notify", "{line}");
            }
            "client" => self.client = rest.to_owned(),
            "server" => self.server = rest.to_owned(),
            "check" => self.must_live = true,
            "gone" => assert_eq!(self.seat().end, Some(Then::ServerGone(rest == "told")), "{line}"),
            "closed" => match &self.seat().end {
                Some(Then::Close(refusal)) => {
                    let words = refusal.as_ref().map(ToString::to_string).unwrap_or_default();
                    assert_eq!(words, rest, "{line}");
                }
                end => panic!("{line}, but {end:?}"),
            },
            "left" => {
                let mut server = self.seat().leave().expect("a server");
                let mut out = Out::default();
                let fate = unpaired::left(&mut server, &self.stage.policy, &mut out);
                self.orphaned(server, fate, &out, line);
                self.line(rest, "", line);
            }
            "clean" | "cleaning" | "close" => {
                let expected = match verb {
                    "clean" => Fate::Clean,
                    "cleaning" => Fate::Cleaning,
                    _ => Fate::Close,
                };
                assert_eq!(self.fate, Some(expected), "{line}");
                if expected == Fate::Clean
                    && let Some(server) = self.orphan.take()
                {
                    assert!(server.is_shareable());
                    self.pool.insert(self.server.clone(), server);
                }
            }
            _ => panic!("no such line: {line}"),
        }
    }

    fn grant(&mut self) {
        if self.seat().link.server().is_some() {
            return;
        }
        let parameters = Arc::clone(&self.stage.server);
        let server = self.pool.remove(&self.server).unwrap_or_else(|| harness::server(1, parameters));
        let must_live = std::mem::take(&mut self.must_live);
        self.seat().grant(server, must_live);
    }

    fn tell_orphan(&mut self, rest: &str) {
        let mut server = self.orphan.take().expect("an orphan");
        let input = server_bytes(rest);
        let mut out = Out::default();
        let (consumed, fate) = unpaired::on_server(&mut server, &self.stage.policy, &input, &mut out);
        assert!(consumed == input.len() || fate == Fate::Close, "{rest}: {consumed} bytes dealt with");
        self.orphaned(server, fate, &out, rest);
    }

    fn orphaned(&mut self, server: Box<Server>, fate: Fate, out: &Out, line: &str) {
        assert!(out.to_client.is_empty(), "{line}: bytes for nobody");
        harness::append(&mut self.seat().to_server, &out.to_server, &[]);
        self.orphan = Some(server);
        self.fate = Some(fate);
    }

    fn nothing_unsaid(&mut self, line: &str) {
        for (name, seat) in &self.seats {
            let (client, server) = (server_words(&seat.to_client), client_words(&seat.to_server));
            assert_eq!(
                (client, server),
                (String::new(), String::new()),
                "to client {name} and its server, before {line}"
            );
        }
    }
}
