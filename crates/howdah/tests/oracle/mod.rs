//! What the tests of the protocol share: one script, run against PostgreSQL itself and through the pooler, and
//! the rule that both must have heard the same.
//!
//! Knows how a script is run and compared; what is right to hear is PostgreSQL's to say, and the test's.
#![allow(dead_code)] // every file of tests uses its own part

use std::time::Duration;

use testkit::message::{all, query};
use testkit::{Event, Howdah, HowdahOptions, Login, Message, Postgres, Raw, Version, letters};

pub const BINARY: &str = env!("CARGO_BIN_EXE_howdah");
/// The user of these tests; nobody asks for a password.
pub const USER: &str = "postgres";
/// Entries of the pooler's that lead to the same database.
pub const TRANSACTION: &str = "transaction";
pub const SESSION: &str = "session";
/// How long a test waits for what must come.
pub const LIMIT: Duration = Duration::from_secs(20);
pub const VERSIONS: [Version; 2] = [Version::V15, Version::V18];

/// A script's side of a connection: it sends, and notes all that it hears.
pub struct Talk {
    pub raw: Raw,
    heard: Vec<Message>,
    ended: bool,
    /// Bytes are written in pieces of at most so many.
    piece: usize,
}

impl Talk {
    pub fn new(raw: Raw) -> Talk {
        Talk { raw, heard: Vec::new(), ended: false, piece: usize::MAX }
    }

    pub fn send(&mut self, parts: &[Vec<u8>]) {
        let bytes = all(parts);
        let piece = self.piece.max(bytes.len() / 500);
        for part in bytes.chunks(piece) {
            // A server may close in the middle of it; what it said before counts.
            if self.raw.try_send(part).is_err() {
                return;
            }
        }
    }

    /// Hears up to the given number of ReadyForQuery, or the end.
    pub fn ready(&mut self, count: usize) {
        let mut left = count;
        while left > 0 && !self.ended {
            left -= usize::from(self.hear() == b'Z');
        }
    }

    /// Hears so many messages that are no ParameterStatus.
    pub fn messages(&mut self, count: usize) {
        let mut left = count;
        while left > 0 && !self.ended {
            left -= usize::from(self.hear() != b'S');
        }
    }

    /// Hears up to the end.
    pub fn end(&mut self) {
        while !self.ended {
            self.hear();
        }
    }

    /// Sends, and hears up to one ReadyForQuery.
    pub fn ask(&mut self, parts: &[Vec<u8>]) {
        self.send(parts);
        self.ready(1);
    }

    fn hear(&mut self) -> u8 {
        match self.raw.next(LIMIT) {
            Event::Message(message) => {
                let tag = message.tag;
                self.heard.push(message);
                tag
            }
            Event::End(_) => {
                self.ended = true;
                0
            }
            Event::Silence => panic!("nothing comes; heard: {}", self.letters()),
        }
    }

    /// All that was heard, in short form.
    pub fn letters(&self) -> String {
        let end = if self.ended { " EOF" } else { "" };
        format!("{}{end}", letters(&self.heard)).trim_start().to_owned()
    }

    /// All that was heard, in full; but not which line of which source file an error came from.
    fn details(&self) -> Vec<String> {
        let mut details: Vec<String> = self.heard.iter().map(detail).collect();
        if self.ended {
            details.push("EOF".into());
        }
        details
    }
}

fn detail(message: &Message) -> String {
    match message.tag {
        b'E' | b'N' => {
            let fields = b"SVCMDHPpqWstcdn".iter();
            let fields =
                fields.filter_map(|&code| Some(format!("{}={}", char::from(code), message.field(code)?)));
            format!("{} {}", message.letter(), fields.collect::<Vec<_>>().join(" "))
        }
        // The process that notified is another one behind a pooler.
        b'A' => format!("A {}", message.body[4..].escape_ascii()),
        b'K' => format!("K of {} bytes", message.body.len()),
        tag => format!("{} {}", char::from(tag), message.body.escape_ascii()),
    }
}

/// What PostgreSQL 15 and PostgreSQL 18 say to a script.
pub struct Expected(pub &'static str, pub &'static str);

impl From<&'static str> for Expected {
    fn from(both: &'static str) -> Expected {
        Expected(both, both)
    }
}

/// PostgreSQL itself, and poolers in front of it.
pub struct Oracle {
    stages: Vec<(Version, Howdah)>,
}

impl Oracle {
    #[track_caller]
    pub fn new() -> Oracle {
        // A connection that listens for all tells of one's own notification just behind ReadyForQuery, where PostgreSQL
        // tells it before; that is held by the tests of LISTEN.
        let start = |version| pooler(version).setting("listen_fanout", "0").start();
        Oracle { stages: VERSIONS.into_iter().map(|version| (version, start(version))).collect() }
    }

    /// The script hears the same from both, and leaves the pooler's server fit for the next client.
    #[track_caller]
    pub fn agree(&self, script: impl Fn(&mut Talk), expected: impl Into<Expected>) {
        self.compare(&script, &expected.into(), true);
    }

    /// The script hears the same from both, though the server may not survive it.
    #[track_caller]
    pub fn agree_at_a_cost(&self, script: impl Fn(&mut Talk), expected: impl Into<Expected>) {
        self.compare(&script, &expected.into(), false);
    }

    #[track_caller]
    fn compare(&self, script: &dyn Fn(&mut Talk), expected: &Expected, keeps_server: bool) {
        let direct: Vec<Talk> = VERSIONS.map(|version| directly(version, script)).into();
        for (direct, expected) in direct.iter().zip([expected.0, expected.1]) {
            assert_eq!(direct.letters(), expected, "what PostgreSQL says itself");
        }
        for ((version, howdah), direct) in self.stages.iter().zip(&direct) {
            for (entry, piece) in [(TRANSACTION, usize::MAX), (TRANSACTION, 1), (SESSION, usize::MAX)] {
                let before = server_pid(howdah, entry);
                let mut pooled = Talk::new(howdah.session(USER, entry));
                pooled.piece = piece;
                script(&mut pooled);
                let how = format!("{version:?} in mode {entry} with pieces of {piece}");
                assert_eq!(pooled.details(), direct.details(), "{how}");
                drop(pooled);
                let after = server_pid(howdah, entry);
                assert!(!keeps_server || before == after, "the server was lost, {how}");
            }
        }
    }
}

fn directly(version: Version, script: &dyn Fn(&mut Talk)) -> Talk {
    let mut talk = Talk::new(Raw::login(Postgres::shared(version).port(), &Login::new(USER, USER)));
    script(&mut talk);
    talk
}

/// Asks another client's questions, and says which server has answered.
#[track_caller]
fn server_pid(howdah: &Howdah, entry: &str) -> String {
    let mut client = howdah.session(USER, entry);
    assert_eq!(client.ask(query("begin; select 1; commit")), "C(BEGIN) T D C(SELECT 1) C(COMMIT) ZI");
    let pid = client.value("select pg_backend_pid()");
    client.close();
    pid
}

/// Options of a pooler with one server a pool: every mistake meets the next client.
pub fn pooler(version: Version) -> HowdahOptions {
    pooler_to(&Postgres::shared(version).connection(USER))
}

/// As [`pooler`], in front of any server.
pub fn pooler_to(connection: &str) -> HowdahOptions {
    Howdah::new(BINARY)
        .database(TRANSACTION, connection)
        .database(SESSION, &format!("{connection} pool_mode=session"))
        .database("statement", &format!("{connection} pool_mode=statement"))
        .setting("default_pool_size", "1")
        .setting("max_client_conn", "2000")
        .setting("workers", "2")
        .setting("server_login_retry", "0.1")
        .user(USER, "")
}

/// A database of a test's own on the shared server of this version.
pub fn fresh_database(version: Version, name: &str) -> &'static Postgres {
    let server = Postgres::shared(version);
    server.create_database(name, USER);
    server
}

/// Waits until so many clients of an entry wait for a server.
#[track_caller]
pub fn until_waiting(howdah: &Howdah, entry: &str, count: usize) {
    let count = count.to_string();
    testkit::eventually_shown(howdah, "SHOW POOLS", |rows| {
        rows.iter().any(|row| {
            testkit::cell(row, "database") == Some(entry)
                && testkit::cell(row, "cl_waiting") == Some(count.as_str())
        })
    });
}

/// So many clients of an entry can be in a transaction at once: no server and no place has been lost.
#[track_caller]
pub fn has_full_size(howdah: &Howdah, entry: &str, size: usize) {
    let mut clients: Vec<Raw> = (0..size).map(|_| howdah.session(USER, entry)).collect();
    for client in &mut clients {
        assert_eq!(client.ask(query("begin")), "C(BEGIN) ZT");
    }
    let mut pids: Vec<String> =
        clients.iter_mut().map(|client| client.value("select pg_backend_pid()")).collect();
    pids.sort();
    pids.dedup();
    assert_eq!(pids.len(), size, "each has a server of its own");
    for client in &mut clients {
        assert_eq!(client.ask(query("commit")), "C(COMMIT) ZI");
    }
}
