//! A client with its script, and the ideal beside it: every message that comes through the pooler is held
//! against what a server of its own would have answered.

use std::collections::VecDeque;
use std::rc::Rc;

use model::{Moment, Refusal};
use wire::Header;
use wire::server::{ErrorFields, TransactionStatus};

use crate::ears::Ears;
use crate::net::{Net, Received};
use crate::postgres::{Postgres, Settings, Step, apart, is_reported};
use crate::script::sequences::Drawn;
use crate::script::{Exchange, Script, Traits};

/// Where a client stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It will go on by itself.
    Thinking,
    /// It has asked something.
    Waiting(Moment),
    /// It is gone.
    Over,
}

/// What came of a client's look at its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It waits for more.
    Waits,
    /// All is answered.
    Answered,
    /// The server waits for the rows of a COPY.
    CopyAsked,
    /// The pooler has closed the connection.
    Closed,
}

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) home: usize,
    pub(crate) up: u32,
    pub(crate) down: u32,
    pub(crate) ideal: Postgres,
    pub(crate) traits: Traits,
    pub(crate) stage: Stage,
    pub(crate) left: u32,
    pub(crate) drawn: Drawn,
    pub(crate) ears: Ears,
    /// Channels and payloads that it was notified of, until somebody looks at them.
    pub(crate) heard: Vec<(Vec<u8>, Vec<u8>)>,
    /// It was told that notifications may be lost, until somebody looks.
    pub(crate) is_warned: bool,
    /// How often it was looked whether it has heard all, at its end.
    pub(crate) looks: u32,
    /// The last answer was ready in this status.
    ready: TransactionStatus,
    is_in_answer: bool,
    /// It was notified within an answer.
    is_early: bool,
    /// It asks what was drawn, under this application_name.
    pub(crate) asks_as: Option<Vec<u8>>,
    seq: u32,
    inbox: Vec<u8>,
    expected: VecDeque<Vec<u8>>,
    beliefs: Settings,
    pub(crate) cancels: u32,
    /// A server lied to it, or the ideal has lost its way: what is answered proves nothing any more.
    pub(crate) tainted: bool,
    /// Something may end it that is not its own fault.
    pub(crate) excused: bool,
    /// It does not read.
    pub(crate) deaf: bool,
    told: bool,
    /// Why it was closed, for whoever looks at a failure.
    pub(crate) last_words: String,
}

impl Client {
    pub(crate) fn new(
        id: u64,
        home: usize,
        pipes: (u32, u32),
        ideal: Postgres,
        traits: Traits,
        left: u32,
    ) -> Client {
        let beliefs = (**ideal.settings()).clone();
        Client {
            id,
            home,
            up: pipes.0,
            down: pipes.1,
            ideal,
            traits,
            stage: Stage::Thinking,
            left,
            drawn: Drawn::default(),
            ears: Ears::default(),
            heard: Vec::new(),
            is_warned: false,
            looks: 0,
            ready: TransactionStatus::Idle,
            is_in_answer: false,
            is_early: false,
            asks_as: None,
            seq: 0,
            inbox: Vec::new(),
            expected: VecDeque::new(),
            beliefs,
            cancels: 0,
            tainted: false,
            excused: true,
            deaf: false,
            told: false,
            last_words: String::new(),
        }
    }

    fn script<'a>(&'a self, net: &'a mut Net) -> Script<'a> {
        let tag = format!("c{}.{}", self.id, self.seq);
        Script {
            rng: &mut net.rng,
            ideal: &self.ideal,
            traits: self.traits,
            tag,
            id: self.id,
            drawn: self.drawn,
            used: Vec::new(),
        }
    }

    /// The next exchange of the script.
    pub(crate) fn next(&mut self, net: &mut Net) -> Exchange {
        self.seq += 1;
        self.left = self.left.saturating_sub(1);
        self.script(net).next()
    }

    /// The rows that the server waits for.
    pub(crate) fn copy_rest(&mut self, net: &mut Net) -> Exchange {
        let tag = String::from_utf8_lossy(self.ideal.copy_tag()).into_owned();
        let is_simple = self.ideal.is_simple();
        self.script(net).copy_rest(&tag, is_simple)
    }

    /// Sends bytes, to the ideal as well.
    pub(crate) fn say(&mut self, net: &mut Net, bytes: &[u8]) {
        if net.verbose {
            eprintln!("{:>10} client {} says{}", net.now.0, self.id, show_all(bytes));
        }
        self.ideal.feed(bytes);
        self.stage = Stage::Waiting(net.now);
        let _ = net.write(self.up, bytes);
    }

    /// Looks at what has come.
    pub(crate) fn hear(&mut self, net: &mut Net, scratch: &mut [u8]) -> Result<Heard, String> {
        loop {
            match net.read(self.down, scratch) {
                Received::Some(count, _) => self.inbox.extend_from_slice(&scratch[..count]),
                Received::Nothing => break,
                Received::End => {
                    self.messages(net)?;
                    self.stage = Stage::Over;
                    net.pipes[self.down as usize].broken = true;
                    net.end(self.up);
                    if !self.excused {
                        return Err(format!(
                            "client {} is closed without need: {}",
                            self.id, self.last_words
                        ));
                    }
                    return Ok(Heard::Closed);
                }
            }
        }
        self.messages(net)?;
        let is_answered = self.expected.is_empty() && !self.ideal.is_running() && self.ideal.is_fed_up();
        Ok(match is_answered {
            true if self.told => Heard::Waits,
            true if self.ideal.is_copying() => Heard::CopyAsked,
            true => Heard::Answered,
            false => Heard::Waits,
        })
    }

    fn messages(&mut self, net: &Net) -> Result<(), String> {
        let mut at = 0;
        while let Some(header) = Header::peek(&self.inbox[at..]) {
            let end = at + header.total() as usize;
            if header.check_server().is_err() || self.inbox.len() < end {
                break;
            }
            let message = self.inbox[at..end].to_vec();
            at = end;
            if net.verbose {
                eprintln!("{:>10} client {} gets {}", net.now.0, self.id, show(&message));
            }
            self.message(message)?;
        }
        self.inbox.drain(..at);
        Ok(())
    }

    fn message(&mut self, actual: Vec<u8>) -> Result<(), String> {
        let body = &actual[5..];
        if matches!(actual[0], b'D' | b'd' | b'E' | b'S' | b'N') {
            self.check_owner(&actual)?;
        }
        let fields = ErrorFields::parse(body);
        match actual[0] {
            b'N' | b'A' => {
                self.heard_aside(actual[0], body);
                return Ok(());
            }
            b'S' => {
                if let Ok((name, value)) = wire::server::parameter_status(body) {
                    self.beliefs.insert(name.to_vec(), value.to_vec());
                }
                return Ok(());
            }
            b'E' if fields.is_fatal() => {
                self.told = true;
                self.last_words = String::from_utf8_lossy(fields.message.unwrap_or_default()).into_owned();
                return Ok(());
            }
            _ if self.tainted => return Ok(()),
            // Whether what it asked was done, it has to find out for itself.
            b'E' if fields.code == Some(b"08007") => {
                if !self.excused {
                    return Err(format!("client {} has lost its server without need", self.id));
                }
                self.tainted = true;
                return Ok(());
            }
            b'E' => {
                if fields.code != Some(b"55000") {
                    self.asks_as = None;
                }
                let text = fields.message.unwrap_or_default();
                self.last_words = String::from_utf8_lossy(text).into_owned();
            }
            _ => {}
        }
        self.check_between(&actual)?;
        self.foresee(&actual)?;
        if self.tainted {
            return Ok(());
        }
        let Some(expected) = self.expected.pop_front() else {
            return Err(self.complaint("nothing", &actual));
        };
        let is_same = match (expected[0], actual[0]) {
            (b'E', b'E') => {
                let wanted = ErrorFields::parse(&expected[5..]).code;
                // In a failed transaction, what misuses a statement's name fails for either reason.
                let is_either = [wanted, fields.code]
                    .iter()
                    .all(|code| matches!(code, Some(b"25P02" | b"26000" | b"42P05" | b"0A000")));
                wanted == fields.code || (is_either && self.ideal.status == TransactionStatus::Failed)
            }
            _ => expected == actual || self.is_read_anew(&expected, &actual),
        };
        if !is_same {
            return Err(self.complaint(&show(&expected), &actual));
        }
        if actual[0] == b'Z' && self.expected.is_empty() {
            self.check_beliefs()?;
        }
        self.pump(false);
        Ok(())
    }

    fn heard_aside(&mut self, tag: u8, body: &[u8]) {
        if tag == b'N' {
            let text = ErrorFields::parse(body).message;
            self.is_warned |= text == Some(b"notifications may have been lost");
            return;
        }
        let mut words = body.get(4..).unwrap_or_default().split(|&byte| byte == 0);
        let (channel, payload) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        self.heard.push((channel.to_vec(), payload.to_vec()));
        self.is_early |= self.is_in_answer || self.ready != TransactionStatus::Idle;
    }

    /// Notifications come between two transactions, or right before the end of one.
    fn check_between(&mut self, actual: &[u8]) -> Result<(), String> {
        self.is_in_answer = actual[0] != b'Z';
        if self.is_in_answer {
            return match self.is_early {
                true => Err(format!("client {} is notified within an answer", self.id)),
                false => Ok(()),
            };
        }
        self.ready = wire::server::ready_for_query(&actual[5..]).unwrap_or(TransactionStatus::Failed);
        if std::mem::take(&mut self.is_early) && self.ready != TransactionStatus::Idle {
            return Err(format!("client {} is notified within a transaction", self.id));
        }
        Ok(())
    }

    /// On another server the constants of a statement are read by what the client has set by then.
    fn is_read_anew(&self, expected: &[u8], actual: &[u8]) -> bool {
        let (b'D', b'D', Some((own, _)), Some((other, constant))) =
            (expected[0], actual[0], apart(expected), apart(actual))
        else {
            return false;
        };
        own == other && self.ideal.zones.contains(constant)
    }

    /// Has the ideal work until it says what should come now.
    fn foresee(&mut self, actual: &[u8]) -> Result<(), String> {
        let fields = ErrorFields::parse(&actual[5..]);
        let (text, code) = match actual[0] {
            b'E' => (fields.message.unwrap_or_default(), fields.code.unwrap_or_default()),
            _ => (&[][..], &[][..]),
        };
        let may_be_nothing = self.drawn.is_unsure && self.expected.is_empty() && !self.ideal.is_busy();
        if code == b"55000" && may_be_nothing && self.ideal.draws.has_what_is_asked(self.ideal.unread()) {
            self.ideal.draws.forget();
            self.drawn.is_lost = true;
        }
        let is_poolers = text == Refusal::QueryCanceled.to_string().as_bytes();
        let is_servers = text.ends_with(b" canceled");
        if (is_poolers || is_servers) && self.cancels == 0 {
            return Err(format!("client {} is canceled and never asked for it", self.id));
        }
        if is_poolers && !self.expected.is_empty() && self.ideal.status == TransactionStatus::Idle {
            // The pooler has answered the beginning of a batch by itself, and canceled the rest: PostgreSQL might
            // have done so too, but the ideal is past that.
            self.tainted = true;
            return Ok(());
        }
        for _ in 0..10_000 {
            if !self.expected.is_empty() {
                return Ok(());
            }
            if is_poolers && !self.ideal.is_busy() && self.ideal.next_tag().is_some() {
                self.ideal.cancel_unseen();
                self.collect();
            } else if is_servers && (self.ideal.is_running() || self.ideal.is_copying()) {
                self.ideal.cancel();
                self.collect();
            } else if self.ideal.is_fed_up() && !self.ideal.is_running() {
                return Ok(());
            }
            self.pump(self.expected.is_empty());
        }
        Ok(())
    }

    /// Lets the ideal go on up to where chance decides: whether a statement is canceled, or a batch before any
    /// server sees it. `go`: one such step is taken.
    fn pump(&mut self, mut go: bool) {
        loop {
            if self.ideal.is_running() {
                if !std::mem::take(&mut go) {
                    break;
                }
                self.ideal.finish(false);
                continue;
            }
            let tag = self.ideal.next_tag();
            if !self.ideal.has_batch() {
                let is_uncertain = match tag {
                    None => break,
                    Some(b'd' | b'c' | b'f') if !self.ideal.is_busy() => false,
                    Some(b'c' | b'f') => self.ideal.is_copying(),
                    Some(_) => !self.ideal.is_busy(),
                };
                if is_uncertain && !std::mem::take(&mut go) {
                    break;
                }
            }
            match self.ideal.step() {
                Step::Done | Step::Runs(_) => go = false,
                Step::Hungry | Step::Over => break,
            }
        }
        self.collect();
    }

    fn collect(&mut self) {
        let said = std::mem::take(&mut self.ideal.out);
        let mut at = 0;
        while let Some(header) = Header::peek(&said[at..]) {
            let end = at + header.total() as usize;
            // Of notifications there is a ledger.
            if !matches!(header.tag, b'S' | b'A') {
                self.expected.push_back(said[at..end].to_vec());
            }
            at = end;
        }
    }

    /// No tag of another client may be in anything that reaches this one.
    fn check_owner(&self, message: &[u8]) -> Result<(), String> {
        for at in 0..message.len() {
            if message[at] != b'c' {
                continue;
            }
            let digits = message[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 || message.get(at + 1 + digits) != Some(&b'.') {
                continue;
            }
            let id = std::str::from_utf8(&message[at + 1..at + 1 + digits]).unwrap_or_default();
            if id.parse() != Ok(self.id) {
                return Err(format!("client {} is sent what is client {id}'s: {}", self.id, show(message)));
            }
        }
        Ok(())
    }

    fn check_beliefs(&self) -> Result<(), String> {
        for (name, value) in self.ideal.settings().iter().filter(|(name, _)| is_reported(name)) {
            let believed = self.beliefs.get(name);
            if believed != Some(value) && name != b"in_hot_standby" {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                return Err(format!(
                    "client {} believes {} to be {:?}, alone it would be {:?}",
                    self.id,
                    text(name),
                    believed.map(|value| text(value)),
                    text(value)
                ));
            }
        }
        Ok(())
    }

    /// What it waits for, for a reader.
    pub(crate) fn awaited(&self) -> String {
        let next = self.expected.front().map(|message| show(message));
        format!(
            "next {next:?}, {} bytes unread, busy {}, running {}, left {}, deaf {}",
            self.inbox.len(),
            self.ideal.is_busy(),
            self.ideal.is_running(),
            show_all(self.ideal.unread()),
            self.deaf
        )
    }

    fn complaint(&self, expected: &str, actual: &[u8]) -> String {
        format!("client {} expects {expected}, gets {} (exchange {})", self.id, show(actual), self.seq)
    }
}

/// A message for a reader.
pub(crate) fn show(message: &[u8]) -> String {
    let text: String =
        message.iter().skip(5).take(60).map(|&byte| std::ascii::escape_default(byte).to_string()).collect();
    format!("{}({text})", message[0] as char)
}

/// All messages in some bytes, for a reader.
pub(crate) fn show_all(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while let Some(header) = Header::peek(&bytes[at..]) {
        let end = (at + header.total() as usize).min(bytes.len());
        text = text + " " + &show(&bytes[at..end]);
        at = end;
    }
    if at < bytes.len() { text + &format!(" and {} bytes", bytes.len() - at) } else { text }
}

/// The settings of a server, as every client is told them.
pub(crate) fn defaults() -> Rc<Settings> {
    let pairs = [
        ("DateStyle", "ISO, MDY"),
        ("TimeZone", "UTC"),
        ("application_name", ""),
        ("client_encoding", "UTF8"),
        ("in_hot_standby", "off"),
        ("server_version", "15.6"),
    ];
    Rc::new(pairs.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect())
}
