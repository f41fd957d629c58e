//! A side of a conversation: it plays scripts and notes all that it hears, in a form that two connections share.

use std::time::Duration;

use testkit::{Event, Login, Message, Raw};

use super::kind::{Protocol, Step, steps};

/// How long anything may take that must come.
const LIMIT: Duration = Duration::from_secs(4);

pub struct Player {
    pub raw: Raw,
    protocol: Protocol,
    heard: Vec<String>,
    has_ended: bool,
}

impl Player {
    pub fn login(port: u16, login: &Login, protocol: Protocol) -> Result<Player, String> {
        let raw = Raw::try_login(port, login).map_err(|refusal| format!("login: {}", refusal.text))?;
        Ok(Player { raw, protocol, heard: Vec::new(), has_ended: false })
    }

    /// Plays each statement on its own, and answers what it heard.
    pub fn each(&mut self, script: &str) -> Result<Vec<String>, String> {
        let steps = steps(script);
        match self.protocol {
            Protocol::Pipelined => {
                let bytes: Vec<u8> =
                    steps.iter().flat_map(|step| step.messages(self.protocol, true)).collect();
                self.exchange(&bytes, steps.len())?;
            }
            Protocol::Simple | Protocol::Extended => {
                for step in &steps {
                    self.exchange(&step.messages(self.protocol, true), 1)?;
                }
            }
        }
        Ok(self.all_heard())
    }

    /// Plays all of it as one transaction block, and answers what it heard.
    pub fn block(&mut self, script: &str, last: &str) -> Result<Vec<String>, String> {
        let whole = format!("begin\n{script}\n{last}");
        if self.protocol != Protocol::Pipelined {
            return self.each(&whole);
        }
        self.together(&steps(&whole))?;
        let mut heard = self.all_heard();
        // After an error the rest of the pipeline was skipped, its end too.
        if heard.last().is_some_and(|last| last == "Z E") {
            heard.extend(self.each(last)?);
        }
        Ok(heard)
    }

    /// The order of settings reported at once means nothing, and notifications come when they come: what is heard of
    /// them has tests of its own.
    fn all_heard(&mut self) -> Vec<String> {
        let mut heard = std::mem::take(&mut self.heard);
        heard.retain(|line| !line.starts_with("A ") && !line.contains("notifications may have been lost"));
        let is_report = |line: &String| line.starts_with("S ");
        heard.chunk_by_mut(|a, b| is_report(a) && is_report(b)).for_each(<[String]>::sort);
        heard
    }

    fn together(&mut self, steps: &[Step]) -> Result<(), String> {
        let mut bytes: Vec<u8> = steps.iter().flat_map(|step| step.messages(self.protocol, false)).collect();
        bytes.extend(testkit::message::sync());
        self.exchange(&bytes, 1)
    }

    fn exchange(&mut self, bytes: &[u8], readies: usize) -> Result<(), String> {
        // A server may have closed already; what it said before counts.
        if self.has_ended || self.raw.try_send(bytes).is_err() {
            self.note_end();
        }
        let mut left = readies;
        while left > 0 && !self.has_ended {
            match self.raw.next(LIMIT) {
                Event::Message(message) => {
                    left -= usize::from(message.tag == b'Z');
                    self.heard.push(detail(&message));
                }
                Event::End(_) => self.note_end(),
                Event::Silence => return Err(format!("nothing comes; heard {:?}", self.heard)),
            }
        }
        Ok(())
    }

    fn note_end(&mut self) {
        // What was said before a failed write is still to be read.
        while let Event::Message(message) = self.raw.next(LIMIT) {
            self.heard.push(detail(&message));
        }
        if !self.has_ended {
            self.heard.push(END.into());
        }
        self.has_ended = true;
    }
}

/// True if the session was ended, with words.
pub fn is_ended(heard: &[String]) -> bool {
    heard.iter().any(|line| line.starts_with("E S=FATAL")) && heard.last().is_some_and(|line| line == END)
}

/// The first number that PostgreSQL gives to what is not its own.
const FIRST_OWN: u32 = 16_384;

pub const END: &str = "the end";

/// A message as both connections say it: no numbers of objects or processes.
fn detail(message: &Message) -> String {
    let text = match message.tag {
        b'E' | b'N' => {
            let fields = b"SCMDHPn".iter();
            let fields =
                fields.filter_map(|&code| Some(format!("{}={}", char::from(code), message.field(code)?)));
            format!("{} {}", char::from(message.tag), fields.collect::<Vec<_>>().join(" "))
        }
        b'A' => format!("A {}", message.body.get(4..).unwrap_or_default().escape_ascii()),
        b'T' => {
            let columns = message.column_types().into_iter();
            // A type of one's own has another number each time.
            format!("T {:?}", columns.map(|(name, oid)| (name, oid.min(FIRST_OWN))).collect::<Vec<_>>())
        }
        b'D' => format!("D {:?}", message.values()),
        tag => format!("{} {}", char::from(tag), message.body.escape_ascii()),
    };
    without_schema_numbers(&text)
}

/// `pg_temp_3` is another number in another session.
fn without_schema_numbers(text: &str) -> String {
    const SCHEMA: &str = "pg_temp_";
    let mut parts = text.split(SCHEMA);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push_str(SCHEMA);
        all.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    all
}
