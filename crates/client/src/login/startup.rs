//! What a startup message says: who, where, which protocol, and the parameters asked for. Decides what of it is
//! sound at once, and, by a policy that is applied only after the client has proved itself, which parameters
//! become its own. Does not know how parameters reach a server.

use std::collections::BTreeMap;
use std::fmt;

use model::Refusal;
use wire::startup::{Startup, Version};

use super::options;

/// Whom a client says it is and where it wants to go: all that may be used before it has proved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// 1 to [`USER_NAME_BYTES_MAX`] bytes as sent. Bytes that are not UTF-8 became U+FFFD.
    pub user: String,
    /// The user's name unless something else was asked for. See [`Identity::database_may_exist`].
    pub database: String,
    /// Whether the client wants to replicate.
    pub replication: Replication,
    /// The protocol that will be spoken: 3.0 to 3.2.
    pub version: Version,
    /// For lists of clients and for the log.
    pub application_name: Option<String>,
}

impl Identity {
    /// False for a name that is too long for any database. Such a client is treated as any that asks for a
    /// database that does not exist, also where there is an entry for all databases.
    pub fn database_may_exist(&self) -> bool {
        self.database.len() <= DATABASE_NAME_BYTES_MAX
    }

    /// Whether the client takes cancel keys of other lengths than 4 bytes.
    pub fn takes_long_keys(&self) -> bool {
        self.version >= Version::V3_2
    }
}

/// What kind of connection `replication` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// An ordinary one.
    No,
    /// Of all databases, as bytes of the log.
    Physical,
    /// Of one database, as changes; SQL may be sent too.
    Logical,
}

/// A setting by its name. Its value is left out of debug output: people put passwords into the wrong place.
#[derive(Clone, PartialEq, Eq)]
pub struct Parameter {
    /// As sent.
    pub name: Box<[u8]>,
    /// As sent.
    pub value: Box<[u8]>,
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parameter({})", self.name.escape_ascii())
    }
}

/// Parameters that were asked for and not judged yet. What is equal is judged alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    parameters: Vec<Parameter>,
    options: Option<Options>,
    replication: Replication,
}

/// The raw text of `options`; not shown, as values of parameters are not.
#[derive(Clone, PartialEq, Eq)]
struct Options(Box<[u8]>);

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Options(..)")
    }
}

/// Which parameters a client may bring along.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// Names that are dropped without a word (`ignore_startup_parameters`). `options` among them means: drop
    /// what is neither in [`Policy::tracked`] nor one of the five that always are, inside `options`.
    pub ignored: &'a [String],
    /// Names that count as known besides the five that always do (`track_extra_parameters`).
    pub tracked: &'a [String],
    /// What is done with a name in neither list.
    pub unknown: UnknownParameter,
}

/// What is done with a parameter that is in no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownParameter {
    /// The server decides: it is carried like the others.
    Carry,
    /// The client is refused, as PgBouncer does.
    Refuse,
}

/// The settings that are a client's own from its first query on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Each name once (in the case it came last in), in the order of their first mention. A name is one or more
    /// identifiers of ASCII letters, digits, `_` and `$` with dots between them.
    pub parameters: Vec<Parameter>,
    /// Where the server is the client's own: the text to be passed on as it is, in the server's startup message.
    pub options: Option<Box<[u8]>>,
}

/// A startup message whose necessary parts are sound.
pub(super) struct Opening<'a> {
    pub(super) identity: Identity,
    pub(super) requested: Requested,
    version_asked: Version,
    protocol_options: Vec<&'a [u8]>,
}

impl<'a> Opening<'a> {
    pub(super) fn read(message: Startup<'a>) -> Result<Opening<'a>, Refusal> {
        let (mut user, mut database, mut replication): (&[u8], &[u8], _) = (b"", b"", Replication::No);
        let mut requested = Requested { parameters: Vec::new(), options: None, replication };
        let mut protocol_options = Vec::new();
        for (name, value) in message.parameters() {
            match name {
                b"user" => user = value,
                b"database" => database = value,
                b"replication" => replication = Replication::parse(value)?,
                b"options" => requested.options = Some(Options(value.into())),
                [b'_', b'p', b'q', b'_', b'.', ..] => protocol_options.push(name),
                _ => requested.parameters.push(Parameter { name: name.into(), value: value.into() }),
            }
        }
        requested.replication = replication;
        if user.is_empty() {
            return Err(Refusal::NoUserName);
        }
        if user.len() > USER_NAME_BYTES_MAX {
            return Err(Refusal::UserNameTooLong);
        }
        let identity = Identity {
            user: lossy(user),
            database: lossy(if database.is_empty() { user } else { database }),
            replication,
            version: message.version.min(Version::V3_2),
            application_name: requested.application_name().map(lossy),
        };
        Ok(Opening { identity, requested, version_asked: message.version, protocol_options })
    }

    /// Appends NegotiateProtocolVersion if the client asked for what we do not speak.
    pub(super) fn negotiate(&self, out: &mut Vec<u8>) {
        if self.version_asked > Version::V3_2 || !self.protocol_options.is_empty() {
            let options = self.protocol_options.iter().copied();
            wire::encode::negotiate_protocol_version(out, self.identity.version.minor, options);
        }
    }
}

impl Replication {
    /// `database`, or one of PostgreSQL's words for a boolean.
    fn parse(value: &[u8]) -> Result<Replication, Refusal> {
        if value == b"database" {
            return Ok(Replication::Logical);
        }
        match boolean(value) {
            Some(true) => Ok(Replication::Physical),
            Some(false) => Ok(Replication::No),
            None => Err(Refusal::ProtocolViolation("invalid value for parameter \"replication\"".into())),
        }
    }
}

/// As PostgreSQL's `parse_bool`: any case, and any beginning of a word that tells it from the others.
fn boolean(value: &[u8]) -> Option<bool> {
    let begins = |word: &str, least: usize| {
        let head = word.as_bytes().get(..value.len());
        value.len() >= least && head.is_some_and(|head| head.eq_ignore_ascii_case(value))
    };
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || value == b"1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || value == b"0" {
        Some(false)
    } else {
        None
    }
}

impl Requested {
    /// The application's name for itself; the last one counts.
    pub fn application_name(&self) -> Option<&[u8]> {
        let mut named = self.parameters.iter().rev();
        let found = named.find(|parameter| parameter.name.eq_ignore_ascii_case(b"application_name"))?;
        Some(&found.value)
    }

    /// How much was asked for, in bytes.
    pub fn size(&self) -> usize {
        let options = self.options.as_ref().map_or(0, |options| options.0.len());
        let parameters = self.parameters.iter();
        options + parameters.map(|parameter| parameter.name.len() + parameter.value.len()).sum::<usize>()
    }

    /// All that was asked for, as it came: for the client's own login to a server.
    pub fn verbatim(self) -> Carried {
        Carried { parameters: self.parameters, options: self.options.map(|Options(text)| text) }
    }

    /// Judges what was asked for. To be called after the client has proved itself: a refusal tells what we
    /// carry, and nothing of a stranger's may reach a server.
    ///
    /// What stands in `options` is set first, as PostgreSQL does; of two values for a name the later counts.
    pub fn settle(self, policy: &Policy<'_>) -> Result<Carried, Refusal> {
        let mut carried = Collected::default();
        let replicates = self.replication != Replication::No;
        let mut verbatim = None;
        match self.options {
            Some(Options(text)) if replicates => verbatim = Some(text),
            Some(Options(text)) => settle_options(&text, policy, &mut carried)?,
            None => {}
        }
        for parameter in self.parameters {
            if policy.ignores(&parameter.name) {
                continue;
            }
            if !policy.takes(&parameter.name) {
                return Err(Refusal::UnsupportedStartupParameter(lossy(&parameter.name)));
            }
            carried.put(parameter);
        }
        Ok(Carried { parameters: carried.parameters, options: verbatim })
    }
}

fn settle_options(text: &[u8], policy: &Policy<'_>, carried: &mut Collected) -> Result<(), Refusal> {
    let lenient = policy.ignores(b"options");
    let parameters = match options::parse(text) {
        Ok(parameters) => parameters,
        Err(options::Unusable) if lenient => return Ok(()),
        Err(options::Unusable) => return Err(Refusal::ProtocolViolation(OPTIONS_UNUSABLE.into())),
    };
    for parameter in parameters {
        let name = &parameter.name;
        if policy.ignores(name) || (lenient && !policy.knows(name)) {
            continue;
        }
        if policy.takes(name) {
            carried.put(parameter);
        } else if policy.unknown == UnknownParameter::Refuse {
            let words = format!("unsupported startup parameter in options: {}", lossy(name));
            return Err(Refusal::ProtocolViolation(words.into()));
        } else {
            return Err(Refusal::UnsupportedStartupParameter(lossy(name)));
        }
    }
    Ok(())
}

impl Policy<'_> {
    fn ignores(&self, name: &[u8]) -> bool {
        contains(self.ignored, name)
    }

    fn knows(&self, name: &[u8]) -> bool {
        contains(&ALWAYS_TRACKED, name) || contains(self.tracked, name)
    }

    fn takes(&self, name: &[u8]) -> bool {
        is_setting_name(name) && (self.unknown == UnknownParameter::Carry || self.knows(name))
    }
}

/// The last value of each name. A packet may hold thousands, so they are found by a map.
#[derive(Default)]
struct Collected {
    parameters: Vec<Parameter>,
    places: BTreeMap<Vec<u8>, usize>,
}

impl Collected {
    fn put(&mut self, parameter: Parameter) {
        let place = *self.places.entry(parameter.name.to_ascii_lowercase()).or_insert(self.parameters.len());
        match self.parameters.get_mut(place) {
            Some(earlier) => *earlier = parameter,
            None => self.parameters.push(parameter),
        }
    }
}

fn contains(names: &[impl AsRef<str>], name: &[u8]) -> bool {
    names.iter().any(|known| known.as_ref().as_bytes().eq_ignore_ascii_case(name))
}

/// No parameter of PostgreSQL has another name, and none of these needs quotes in SQL.
fn is_setting_name(name: &[u8]) -> bool {
    name.split(|&byte| byte == b'.').all(|part| match part {
        [first, rest @ ..] => {
            (first.is_ascii_alphabetic() || *first == b'_')
                && rest.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$')
        }
        [] => false,
    })
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// As PgBouncer.
pub const USER_NAME_BYTES_MAX: usize = 127;
/// As PostgreSQL (`NAMEDATALEN` less the zero).
pub const DATABASE_NAME_BYTES_MAX: usize = 63;

const ALWAYS_TRACKED: [&str; 5] =
    ["application_name", "client_encoding", "DateStyle", "standard_conforming_strings", "TimeZone"];

const OPTIONS_UNUSABLE: &str =
    "unsupported options startup parameter: only '-c config=val' and '--config=val' are allowed";
