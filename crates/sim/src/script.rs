//! What clients say: random exchanges, each a run of messages whose answers the client waits for.
//!
//! Everything that comes back carries the client and the number of the exchange in a tag such as `c12.5`.

mod prepared;
pub(crate) mod sequences;
mod state;

use model::StateMode;
use wire::encode;
use wire::server::TransactionStatus;

use crate::postgres::Postgres;
use crate::rng::Rng;

/// What a client's pool allows it to rely on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    /// Named statements, and unnamed ones from batch to batch.
    pub(crate) statements: bool,
    /// Transaction blocks.
    pub(crate) blocks: bool,
    /// DISCARD ALL does not undo what the client asked for at its login.
    pub(crate) discards: bool,
    /// Somebody else listens for it.
    pub(crate) fans_out: bool,
    /// What becomes of session state, if the client may make any.
    pub(crate) state: StateMode,
    /// What most of that is about.
    pub(crate) theme: Theme,
}

/// What is said more often than other things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Nothing,
    Names,
    Sequences,
    Channels,
}

/// One exchange.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) bytes: Vec<u8>,
    /// Something in it runs so long that a cancel may stop it.
    pub(crate) is_slow: bool,
    /// It must be alone: what follows depends on its answer.
    is_alone: bool,
}

/// The makings of exchanges.
pub(crate) struct Script<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) ideal: &'a Postgres,
    pub(crate) traits: Traits,
    pub(crate) tag: String,
    pub(crate) id: u64,
    pub(crate) drawn: sequences::Drawn,
    /// Names that this exchange itself has parsed or closed: they are left alone.
    pub(crate) used: Vec<usize>,
}

const SHARED: [&str; 7] = [
    "SELECT ECHO $1 1 4",
    "ECHO $1 3 30",
    "SELECT ECHO $1 2 300",
    "SELECT ECHO $1 2 90",
    "SHOW TimeZone",
    "SELECT SLEEP $1 700",
    "SELECT ECHO $1 1 5 @zone",
];
/// Parsed in one batch and used in another. What is bound in the batch that parses it is another text, because
/// the pooler forgets such a one with the server.
const KEPT: &str = "SELECT ECHO $1 1 6";
/// Channels of all clients.
pub(crate) const CHANNELS: [&str; 2] = ["n0", "n1"];
const NAMES: [&str; 4] = ["s0", "s1", "s2", "s3"];

impl Script<'_> {
    /// The next exchange, as things stand.
    pub(crate) fn next(&mut self) -> Exchange {
        let mut exchange = Exchange::default();
        if self.ideal.is_open_batch() {
            self.end_batch(&mut exchange);
            return exchange;
        }
        let status = self.ideal.status;
        match (status, self.rng.below(100)) {
            (TransactionStatus::Failed, 0..60) => self.query(&mut exchange, "ROLLBACK"),
            (TransactionStatus::Failed, 60..75) => self.query(&mut exchange, "COMMIT"),
            (TransactionStatus::Failed, 85..93) if self.traits.state != StateMode::Off => {
                let name = self.rng.pick(&["a", "b"]);
                self.query(&mut exchange, &format!("ROLLBACK TO {name}"));
            }
            (TransactionStatus::Failed, 75..85) if self.traits.statements => {
                self.named(&mut exchange, Some("ROLLBACK"));
            }
            (TransactionStatus::InTransaction, 0..20) => self.query(&mut exchange, "COMMIT"),
            (TransactionStatus::InTransaction, 20..28) => self.query(&mut exchange, "ROLLBACK"),
            (TransactionStatus::Idle, 0..22) if self.traits.blocks => self.query(&mut exchange, "BEGIN"),
            (_, 28..55) if self.traits.state != StateMode::Off => self.stateful(&mut exchange),
            (_, 55..90) if self.traits.state != StateMode::Off && self.traits.theme != Theme::Nothing => {
                self.stateful(&mut exchange);
            }
            (_, 90..100) => self.pipeline(&mut exchange),
            _ => self.statement(&mut exchange),
        }
        exchange
    }

    fn pipeline(&mut self, exchange: &mut Exchange) {
        for _ in 0..self.rng.between(2, 6) {
            self.statement(exchange);
            if exchange.is_alone {
                break;
            }
        }
    }

    // long: table
    fn statement(&mut self, exchange: &mut Exchange) {
        match self.rng.below(100) {
            0..18 => self.echo(exchange),
            18..26 => self.sleep(exchange),
            26..31 => self.fail(exchange),
            31..45 => self.unnamed(exchange),
            45..63 if self.traits.statements => self.named(exchange, None),
            63..70 => self.set(exchange),
            70..75 => self.query(exchange, "SHOW TimeZone"),
            75..83 => self.copy(exchange),
            83..87 if self.traits.statements => self.forget(exchange),
            87..91 if self.traits.statements => self.unnamed_kept(exchange),
            91..93 if self.traits.statements => self.flushed(exchange),
            93 => {
                encode::message(&mut exchange.bytes, b'F', |out| out.extend_from_slice(&[0; 10]));
            }
            94 => self.query(exchange, ""),
            // Each writes its own, once.
            98..100 if exchange.bytes.is_empty() => {
                exchange.is_alone = true;
                self.query(exchange, &format!("INSERT INTO w VALUES ('{}')", self.tag));
            }
            95..97 if self.traits.blocks => self.block_in_batch(exchange),
            97 => self.large(exchange),
            _ => self.echo(exchange),
        }
    }

    fn query(&mut self, exchange: &mut Exchange, text: &str) {
        encode::query(&mut exchange.bytes, text.as_bytes());
    }

    fn echo(&mut self, exchange: &mut Exchange) {
        let size = if self.rng.chance(3) { self.rng.below(30_000) } else { self.rng.below(200) };
        // One in ten is a statement that no pooler can read.
        let verb = if self.rng.chance(90) { "SELECT ECHO" } else { "ECHO" };
        let mut text = format!("{verb} {} {} {size}", self.tag, self.rng.below(4));
        for _ in 0..self.rng.below(3) {
            text += &format!(";{verb} {} 1 3", self.tag);
        }
        self.query(exchange, &text);
    }

    fn large(&mut self, exchange: &mut Exchange) {
        let size = self.rng.between(10_000, 40_000) as usize;
        let text = format!("SELECT ECHO {} 1 10 {}", self.tag, "x".repeat(size));
        if self.rng.chance(50) {
            self.query(exchange, &text);
        } else {
            self.parse(exchange, "", &text);
            self.bind_execute(exchange, "");
            encode::sync(&mut exchange.bytes);
        }
    }

    fn sleep(&mut self, exchange: &mut Exchange) {
        let text = format!("SELECT SLEEP {} {}", self.tag, self.rng.between(100, 4000));
        self.query(exchange, &text);
        exchange.is_slow = true;
    }

    fn fail(&mut self, exchange: &mut Exchange) {
        let tag = self.tag.clone();
        match self.rng.below(3) {
            0 => self.query(exchange, &format!("SELECT FAIL {tag}")),
            1 => self.query(exchange, &format!("SELECT ECHO {tag} 1 1;FAIL {tag};SELECT ECHO {tag} 1 1")),
            _ => {
                let text = self.rng.pick(&["SELECT FAIL $1", "SYNTAX", "SELECT ECHO $1 1 1"]);
                self.parse(exchange, "", text);
                self.bind_execute(exchange, if text.contains("ECHO") { "nobody" } else { "" });
                encode::sync(&mut exchange.bytes);
            }
        }
    }

    fn parse(&mut self, exchange: &mut Exchange, name: &str, text: &str) {
        let rest = [text.as_bytes(), &[0, 0, 0]].concat();
        encode::parse(&mut exchange.bytes, name.as_bytes(), &rest);
    }

    fn bind(&mut self, exchange: &mut Exchange, statement: &str) {
        let value = self.tag.as_bytes();
        encode::bind_text(&mut exchange.bytes, b"", statement.as_bytes(), &[Some(value)]);
    }

    fn bind_execute(&mut self, exchange: &mut Exchange, statement: &str) {
        self.bind(exchange, statement);
        if self.rng.chance(40) {
            encode::target(&mut exchange.bytes, b'D', b'P', b"");
        }
        if self.rng.chance(15) {
            let most = self.rng.between(1, 2) as u32;
            encode::message(&mut exchange.bytes, b'E', |out| {
                out.push(0);
                out.extend_from_slice(&most.to_be_bytes());
            });
        }
        encode::execute(&mut exchange.bytes, b"");
    }

    fn unnamed(&mut self, exchange: &mut Exchange) {
        for _ in 0..self.rng.between(1, 3) {
            let text = self.rng.pick(&SHARED);
            exchange.is_slow |= text.contains("SLEEP");
            self.parse(exchange, "", text);
            if self.rng.chance(20) && self.traits.statements {
                encode::target(&mut exchange.bytes, b'D', b'S', b"");
            }
            self.bind_execute(exchange, "");
        }
        encode::sync(&mut exchange.bytes);
    }

    /// Parse of the unnamed statement in one batch, use of it in another.
    fn unnamed_kept(&mut self, exchange: &mut Exchange) {
        // Earlier in the same pipeline another text may have taken its place.
        if self.has_kept() && exchange.bytes.is_empty() {
            self.bind_execute(exchange, "");
        } else {
            self.parse(exchange, "", KEPT);
        }
        encode::sync(&mut exchange.bytes);
    }

    fn has_kept(&self) -> bool {
        self.ideal.statements.get(&b""[..]).is_some_and(|kept| *kept.text == *KEPT.as_bytes())
    }

    fn named(&mut self, exchange: &mut Exchange, only: Option<&str>) {
        let at = self.rng.index(NAMES.len());
        let name = NAMES[at];
        // Whether an earlier batch of the same pipeline has failed by then, a pooler cannot know when it answers
        // a Parse by itself.
        let is_guess = !exchange.bytes.is_empty() && self.ideal.status != TransactionStatus::Idle;
        if self.used.contains(&at) || is_guess {
            return self.echo(exchange);
        }
        self.used.push(at);
        let is_known = self.ideal.statements.contains_key(name.as_bytes());
        let closes = is_known && (self.rng.chance(20) || only.is_some());
        if closes {
            encode::target(&mut exchange.bytes, b'C', b'S', name.as_bytes());
        }
        if !is_known || closes || self.rng.chance(4) {
            let own = format!("SELECT ECHO $1 1 8 /*c{}.*/", self.id);
            let text = match only {
                Some(text) => text,
                None if self.traits.theme == Theme::Names && self.rng.chance(50) => {
                    "SELECT ECHO $1 1 5 @zone"
                }
                None if self.rng.chance(50) => &own,
                None => self.rng.pick(&SHARED),
            };
            self.parse(exchange, name, text);
        }
        if self.rng.chance(25) {
            encode::target(&mut exchange.bytes, b'D', b'S', name.as_bytes());
        }
        if self.rng.chance(10) {
            encode::sync(&mut exchange.bytes);
        }
        for _ in 0..self.rng.between(u64::from(only.is_some()), 2) {
            self.bind_execute(exchange, name);
        }
        exchange.is_slow = true;
        if self.rng.chance(8) {
            encode::target(&mut exchange.bytes, b'C', b'S', name.as_bytes());
        }
        encode::sync(&mut exchange.bytes);
    }

    fn set(&mut self, exchange: &mut Exchange) {
        let name = self.rng.pick(&["application_name", "TimeZone", "DateStyle"]);
        let value = match self.rng.below(4) {
            0 => "UTC".to_owned(),
            1 => format!("c{}.''\\q", self.id),
            _ => self.tag.clone(),
        };
        self.query(exchange, &format!("SET {name} TO '{value}'"));
    }

    fn copy(&mut self, exchange: &mut Exchange) {
        let tag = self.tag.clone();
        if self.rng.chance(40) {
            let rows = self.rng.below(5);
            return self.query(exchange, &format!("SELECT COPYOUT {tag} {rows}"));
        }
        let is_simple = self.rng.chance(60);
        if is_simple {
            self.query(exchange, &format!("SELECT COPYIN {tag}"));
        } else {
            self.parse(exchange, "", "SELECT COPYIN $1");
            self.bind(exchange, "");
            encode::execute(&mut exchange.bytes, b"");
        }
        exchange.is_slow = true;
        if self.rng.chance(50) {
            // The rest is sent when the server asks for it, unless it never does.
            exchange.is_alone = true;
            if !is_simple && self.ideal.status == TransactionStatus::Failed {
                encode::sync(&mut exchange.bytes);
            }
            return;
        }
        if !is_simple && self.rng.chance(10) {
            encode::sync(&mut exchange.bytes);
        }
        self.copy_data(exchange);
        if !is_simple {
            encode::sync(&mut exchange.bytes);
        }
    }

    /// The rows of a COPY that the server waits for, and its end.
    pub(crate) fn copy_rest(&mut self, tag: &str, is_simple: bool) -> Exchange {
        let mut exchange = Exchange { is_slow: true, ..Exchange::default() };
        tag.clone_into(&mut self.tag);
        self.copy_data(&mut exchange);
        if !is_simple {
            encode::sync(&mut exchange.bytes);
        }
        exchange
    }

    fn copy_data(&mut self, exchange: &mut Exchange) {
        for _ in 0..self.rng.below(4) {
            let padding = vec![b'.'; self.rng.below(100) as usize];
            encode::message(&mut exchange.bytes, b'd', |out| {
                out.extend_from_slice(self.tag.as_bytes());
                out.extend_from_slice(&padding);
            });
        }
        if self.rng.chance(15) {
            encode::message(&mut exchange.bytes, b'f', |out| out.extend_from_slice(b"no\0"));
        } else {
            encode::message(&mut exchange.bytes, b'c', |_| {});
        }
    }

    fn forget(&mut self, exchange: &mut Exchange) {
        // What a pooler makes of these in the middle of a pipeline is its own affair.
        if !exchange.bytes.is_empty() {
            return self.echo(exchange);
        }
        exchange.is_alone = true;
        let name = self.rng.pick(&NAMES);
        match self.rng.below(4) {
            0 if self.traits.discards => self.query(exchange, "DISCARD ALL"),
            1 => self.query(exchange, "DEALLOCATE ALL"),
            _ => self.query(exchange, &format!("DEALLOCATE {name}")),
        }
    }

    /// A batch that is looked at before it is ended, as drivers do that ask for a statement's shape.
    fn flushed(&mut self, exchange: &mut Exchange) {
        self.parse(exchange, "", KEPT);
        encode::target(&mut exchange.bytes, b'D', b'S', b"");
        encode::message(&mut exchange.bytes, b'H', |_| {});
        exchange.is_alone = true;
    }

    fn end_batch(&mut self, exchange: &mut Exchange) {
        if self.has_kept() && self.rng.chance(80) {
            self.bind_execute(exchange, "");
        }
        encode::sync(&mut exchange.bytes);
    }

    fn block_in_batch(&mut self, exchange: &mut Exchange) {
        for text in ["BEGIN", "SELECT ECHO $1 1 5", "COMMIT"] {
            self.parse(exchange, "", text);
            self.bind(exchange, "");
            encode::execute(&mut exchange.bytes, b"");
            if self.rng.chance(20) {
                encode::sync(&mut exchange.bytes);
            }
        }
        encode::sync(&mut exchange.bytes);
    }
}
