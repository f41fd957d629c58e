//! One answer of Patroni's, read.

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What was said of the whole cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Those that say where they are; no two of them at the same place.
    pub members: Vec<Member>,
    /// Patroni was told to leave the cluster alone.
    pub is_paused: bool,
    /// A switchover that is to come, in words.
    pub switchover: Option<String>,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name in Patroni.
    pub name: String,
    /// Where its PostgreSQL is: a name or an address.
    pub host: String,
    /// The port there.
    pub port: u16,
    /// Its role in Patroni's words: a hint.
    pub role: String,
    /// Its state in Patroni's words: a hint.
    pub state: String,
    /// What its owner has said of it.
    pub tags: Tags,
}

/// The tags that mean something here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// It never becomes the primary.
    pub nofailover: bool,
    /// It has no readers.
    pub noloadbalance: bool,
    /// It is never a synchronous standby.
    pub nosync: bool,
}

/// Why an answer says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is longer than [`BYTES_MAX`].
    TooLong,
    /// It is no JSON, or not of this shape: where.
    Unreadable {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// It has more than [`MEMBERS_MAX`] members.
    TooMany,
    /// No member says where it is.
    Nobody,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TooLong => write!(f, "an answer of more than {BYTES_MAX} bytes"),
            Fault::Unreadable { line, column } => {
                write!(f, "not an answer of Patroni's to /cluster (line {line}, column {column})")
            }
            Fault::TooMany => write!(f, "more than {MEMBERS_MAX} members"),
            Fault::Nobody => f.write_str("no member says where it is"),
        }
    }
}

impl std::error::Error for Fault {}

/// More is not read.
pub const BYTES_MAX: usize = 256 * 1024;
/// More are not a cluster.
pub const MEMBERS_MAX: usize = 64;
/// Of a word that is shown.
const WORD_CHARS_MAX: usize = 64;

#[derive(Deserialize)]
struct Answer {
    #[serde(deserialize_with = "members")]
    members: Option<Vec<Told>>,
    #[serde(default)]
    pause: Value,
    #[serde(default)]
    scheduled_switchover: Value,
}

/// A member as it stands in the answer. Fields that are missing or of another type are as if they were empty.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Told {
    name: Value,
    host: Value,
    port: Value,
    role: Value,
    state: Value,
    tags: Value,
}

impl Report {
    /// Reads the body of an answer to `GET /cluster`.
    ///
    /// # Errors
    /// What is wrong with it; nothing of its text is repeated.
    pub fn read(body: &[u8]) -> Result<Report, Fault> {
        if body.len() > BYTES_MAX {
            return Err(Fault::TooLong);
        }
        let answer: Answer = serde_json::from_slice(body)
            .map_err(|error| Fault::Unreadable { line: error.line(), column: error.column() })?;
        let told = answer.members.ok_or(Fault::TooMany)?;
        let mut members: Vec<Member> = Vec::new();
        for member in told.iter().filter_map(Told::member) {
            if !members.iter().any(|known| known.is_at(&member)) {
                members.push(member);
            }
        }
        if members.is_empty() {
            return Err(Fault::Nobody);
        }
        let switchover = switchover(&answer.scheduled_switchover);
        Ok(Report { members, is_paused: is_true(&answer.pause), switchover })
    }
}

impl Member {
    /// Whether it is where the other one is.
    pub fn is_at(&self, other: &Member) -> bool {
        self.host == other.host && self.port == other.port
    }
}

impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all =
            [(self.nofailover, "nofailover"), (self.noloadbalance, "noloadbalance"), (self.nosync, "nosync")];
        let set: Vec<&str> = all.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect();
        f.write_str(&set.join(","))
    }
}

impl Told {
    /// `None` if it does not say where it is: a member that has not started yet.
    fn member(&self) -> Option<Member> {
        let host = self.host.as_str().filter(|host| is_host(host))?;
        let port = match &self.port {
            Value::Number(number) => u16::try_from(number.as_u64()?).ok()?,
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        };
        let tag = |name: &str| self.tags.get(name).is_some_and(is_true);
        // A priority of nought is how newer versions say it.
        let priority = self.tags.get("failover_priority").and_then(Value::as_i64);
        let tags = Tags {
            nofailover: tag("nofailover") || priority.is_some_and(|priority| priority <= 0),
            noloadbalance: tag("noloadbalance"),
            nosync: tag("nosync"),
        };
        let is_somewhere = port > 0;
        is_somewhere.then(|| Member {
            name: word(&self.name),
            host: host.to_owned(),
            port,
            role: word(&self.role),
            state: word(&self.state),
            tags,
        })
    }
}

/// A name or an address; never a directory of sockets: what is read over the network names no file of ours.
fn is_host(text: &str) -> bool {
    let is_of_hosts = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    !text.is_empty() && text.len() <= HOST_BYTES_MAX && text.chars().all(is_of_hosts)
}

const HOST_BYTES_MAX: usize = 255;

/// As YAML's owners write it: `true`, or a word that means it.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::String(text) => ["true", "on", "yes", "1"].contains(&text.to_ascii_lowercase().as_str()),
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// A text that can be shown.
fn word(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.chars().filter(|c| !c.is_control()).take(WORD_CHARS_MAX).collect()
}

fn switchover(value: &Value) -> Option<String> {
    let part = |name: &str| value.get(name).map(word).filter(|text| !text.is_empty());
    let mut text = format!("switchover at {}", part("at")?);
    for (name, preposition) in [("from", "from"), ("to", "to")] {
        if let Some(member) = part(name) {
            text.push_str(&format!(" {preposition} {member}"));
        }
    }
    Some(text)
}

/// The members; `None` if there are too many, of which the rest is passed over.
fn members<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Told>>, D::Error> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Option<Vec<Told>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of members")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while members.len() < MEMBERS_MAX {
                match list.next_element()? {
                    Some(member) => members.push(member),
                    None => return Ok(Some(members)),
                }
            }
            let mut is_more = false;
            while list.next_element::<IgnoredAny>()?.is_some() {
                is_more = true;
            }
            Ok((!is_more).then_some(members))
        }
    }

    deserializer.deserialize_seq(Members)
}
