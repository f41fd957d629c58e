//! The types of values: how text becomes one, how it is shown again, what is allowed.
//!
//! Numbers follow C's `strtol` with base 0 (so `0777` is octal) and `%d`; times are seconds with `%g`.

use std::net::SocketAddr;
use std::time::Duration;

use model::{PoolMode, StateMode};

use crate::consistency::Consistency;
use crate::host::{Host, Ports};
use crate::secret::{HIDDEN, Secret};
use crate::share::Share;
use crate::topology::Topology;
use crate::words::{
    AuthType, Compat, IoBackend, ListenLost, LoadBalance, POOL_MODES, ReadSplit, STATE_MODES, ServerAuth,
    SessionAttrs, SslMode, TLS_WORDS, TlsProtocols, Word, WorkersAwake,
};

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 0 or 1; as in C, any other whole number is taken for 1.
    Flag,
    /// A whole number within bounds.
    Whole {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// A whole number, where one below 0 means the general setting.
    WholeOrGeneral,
    /// Seconds, with decimals.
    Seconds,
    /// Whole seconds.
    WholeSeconds,
    /// Whole milliseconds.
    Milliseconds,
    /// Any text.
    Text,
    /// Text that is never shown.
    Secret,
    /// A file or directory.
    Path,
    /// Words between commas.
    List,
    /// Names of functions between commas.
    Functions,
    /// A whole number, or a part of another one.
    Share,
    /// How current a read must be.
    Consistency,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words, between commas.
    Words(&'static [&'static str]),
    /// TLS versions.
    TlsProtocols,
    /// One host.
    Host,
    /// Hosts between commas.
    Hosts,
    /// One port, or a list of as many as there are hosts.
    Ports,
    /// An address with a port.
    Socket,
    /// An engine that knows the hosts, and where it is asked.
    Topology,
}

impl Kind {
    /// The type's name in the manual.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Flag => "0 or 1",
            Kind::Whole { .. } | Kind::WholeOrGeneral => "whole number",
            Kind::Seconds => "seconds",
            Kind::WholeSeconds => "whole seconds",
            Kind::Milliseconds => "milliseconds",
            Kind::Text => "text",
            Kind::Secret => "secret text",
            Kind::Path => "path",
            Kind::List | Kind::Functions | Kind::Words(_) | Kind::TlsProtocols => "list",
            Kind::Share => "number or percent",
            Kind::Consistency => "word",
            Kind::Word(_) => "word",
            Kind::Host => "host",
            Kind::Hosts => "list of hosts",
            Kind::Ports => "port, or list of ports",
            Kind::Socket => "address and port",
            Kind::Topology => "engine and list of URLs",
        }
    }

    /// What a value may be, as an error says it.
    pub fn allowed(self) -> String {
        match self {
            Kind::Flag => "0 or 1".to_owned(),
            Kind::Whole { min, max } if max >= i64::from(i32::MAX) => {
                format!("a whole number of {min} or more")
            }
            Kind::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Kind::WholeOrGeneral => {
                "a whole number of 0 or more (-1 for the setting in [pgbouncer])".to_owned()
            }
            Kind::Seconds => "seconds, such as 0, 1.5 or 600".to_owned(),
            Kind::WholeSeconds => "whole seconds, such as 0 or 60".to_owned(),
            Kind::Milliseconds => "whole milliseconds, such as 0 or 5000".to_owned(),
            Kind::Text | Kind::Secret => "text".to_owned(),
            Kind::Path => "a path".to_owned(),
            Kind::List => "words between commas".to_owned(),
            Kind::Functions => "names of functions between commas, without schema and brackets".to_owned(),
            Kind::Share => "a whole number of 0 or more, or 1% to 100%".to_owned(),
            Kind::Consistency => "session, bounded(MILLISECONDS) or eventual".to_owned(),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Words(words) => format!("one or more of {}, between commas", words.join(", ")),
            Kind::TlsProtocols => {
                "secure, all, legacy, or some of tlsv1.2, tlsv1.3 between commas (1.0 and 1.1 are not spoken)"
                    .to_owned()
            }
            Kind::Host => HOST_ALLOWED.to_owned(),
            Kind::Hosts => format!("one or more hosts between commas, each {HOST_ALLOWED}"),
            Kind::Ports => "a whole number from 1 to 65535, or one for each host".to_owned(),
            Kind::Socket => "an address and a port, such as 127.0.0.1:8009 or [::]:8009".to_owned(),
            Kind::Topology => "patroni: and one or more URLs between commas, such as \
                patroni:http://10.0.0.1:8008,http://10.0.0.2:8008"
                .to_owned(),
        }
    }

    /// The words a mistyped value may have meant.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Kind::Word(words) | Kind::Words(words) => words,
            Kind::TlsProtocols => TLS_WORDS,
            _ => &[],
        }
    }
}

/// A Rust type that some [`Kind`] of text becomes.
pub(crate) trait Value: Sized {
    /// The value of a key that has no default.
    fn unset() -> Self;
    /// `None` if the text is not allowed.
    fn parse(text: &str, kind: Kind) -> Option<Self>;
    /// As `SHOW CONFIG` prints it; `None` is SQL NULL.
    fn show(&self, kind: Kind) -> Option<String>;
}

impl Value for bool {
    fn unset() -> bool {
        false
    }

    fn parse(text: &str, _: Kind) -> Option<bool> {
        whole(text).filter(|n| i32::try_from(*n).is_ok()).map(|n| n != 0)
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(u8::from(*self).to_string())
    }
}

macro_rules! whole_numbers {
    ($($type:ty),+) => {$(
        impl Value for $type {
            fn unset() -> $type {
                0
            }

            fn parse(text: &str, kind: Kind) -> Option<$type> {
                let number = whole(text)?;
                let within = match kind {
                    Kind::Whole { min, max } => (min..=max).contains(&number),
                    _ => (0..=i64::from(i32::MAX)).contains(&number),
                };
                if within { <$type>::try_from(number).ok() } else { None }
            }

            fn show(&self, _: Kind) -> Option<String> {
                Some(self.to_string())
            }
        }
    )+};
}

whole_numbers!(u16, u32);

impl Value for Duration {
    fn unset() -> Duration {
        Duration::ZERO
    }

    fn parse(text: &str, kind: Kind) -> Option<Duration> {
        let count = || whole(text).filter(|n| (0..=i64::from(i32::MAX)).contains(n)).map(i64::unsigned_abs);
        match kind {
            Kind::WholeSeconds => count().map(Duration::from_secs),
            Kind::Milliseconds => count().map(Duration::from_millis),
            _ => seconds(text),
        }
    }

    fn show(&self, kind: Kind) -> Option<String> {
        Some(match kind {
            Kind::WholeSeconds => self.as_secs().to_string(),
            Kind::Milliseconds => self.as_millis().to_string(),
            _ => percent_g(self.as_secs_f64()),
        })
    }
}

impl Value for String {
    fn unset() -> String {
        String::new()
    }

    fn parse(text: &str, kind: Kind) -> Option<String> {
        match kind {
            Kind::Word(words) if !words.iter().any(|word| word.eq_ignore_ascii_case(text)) => None,
            Kind::Socket if !text.is_empty() && text.parse::<SocketAddr>().is_err() => None,
            _ => Some(text.to_owned()),
        }
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(self.clone())
    }
}

impl Value for Secret {
    fn unset() -> Secret {
        Secret::default()
    }

    fn parse(text: &str, _: Kind) -> Option<Secret> {
        Some(Secret::new(text))
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(HIDDEN.to_owned())
    }
}

impl<T: Value> Value for Option<T> {
    fn unset() -> Option<T> {
        None
    }

    fn parse(text: &str, kind: Kind) -> Option<Option<T>> {
        let inherits = match kind {
            Kind::WholeOrGeneral => whole(text).is_some_and(|n| n < 0),
            Kind::Text | Kind::Path | Kind::Secret => text.is_empty(),
            _ => false,
        };
        if inherits { Some(None) } else { T::parse(text, kind).map(Some) }
    }

    fn show(&self, kind: Kind) -> Option<String> {
        self.as_ref().and_then(|value| value.show(kind))
    }
}

impl Value for Vec<String> {
    fn unset() -> Vec<String> {
        Vec::new()
    }

    fn parse(text: &str, kind: Kind) -> Option<Vec<String>> {
        let mut items = items(text).filter(|item| !item.is_empty());
        let are_allowed = kind != Kind::Functions || items.clone().all(is_name);
        are_allowed.then(|| items.by_ref().map(str::to_owned).collect())
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(self.join(", "))
    }
}

impl Value for Vec<ServerAuth> {
    fn unset() -> Vec<ServerAuth> {
        Vec::new()
    }

    fn parse(text: &str, _: Kind) -> Option<Vec<ServerAuth>> {
        items(text).map(ServerAuth::of).collect()
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(self.iter().map(|auth| auth.name()).collect::<Vec<_>>().join(", "))
    }
}

impl Value for Consistency {
    fn unset() -> Consistency {
        Consistency::Session
    }

    fn parse(text: &str, _: Kind) -> Option<Consistency> {
        Consistency::parse(text)
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for Share {
    fn unset() -> Share {
        Share::Count(0)
    }

    fn parse(text: &str, _: Kind) -> Option<Share> {
        Share::parse(text)
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for TlsProtocols {
    fn unset() -> TlsProtocols {
        TlsProtocols::default()
    }

    fn parse(text: &str, _: Kind) -> Option<TlsProtocols> {
        TlsProtocols::parse(text)
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(self.text().to_owned())
    }
}

impl Value for Host {
    /// Stands in an entry only until its `host` is read; an entry that needs a host and has none is refused.
    fn unset() -> Host {
        Host::Unix(String::new())
    }

    fn parse(text: &str, _: Kind) -> Option<Host> {
        Host::parse(text)
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for Vec<Host> {
    fn unset() -> Vec<Host> {
        Vec::new()
    }

    fn parse(text: &str, _: Kind) -> Option<Vec<Host>> {
        items(text).map(Host::parse).collect()
    }

    fn show(&self, _: Kind) -> Option<String> {
        let hosts: Vec<String> = self.iter().map(Host::to_string).collect();
        (!hosts.is_empty()).then(|| hosts.join(","))
    }
}

impl Value for Ports {
    fn unset() -> Ports {
        Ports::default()
    }

    fn parse(text: &str, _: Kind) -> Option<Ports> {
        let ports: Option<Vec<u16>> = items(text).map(|item| u16::parse(item, PORT)).collect();
        ports.and_then(Ports::new)
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for Topology {
    /// Never in force: the key has no default.
    fn unset() -> Topology {
        Topology { urls: Vec::new() }
    }

    fn parse(text: &str, _: Kind) -> Option<Topology> {
        Topology::parse(text)
    }

    fn show(&self, _: Kind) -> Option<String> {
        Some(self.to_string())
    }
}

macro_rules! word_values {
    ($($type:ty = $unset:expr),+ $(,)?) => {$(
        impl Value for $type {
            fn unset() -> $type {
                $unset
            }

            fn parse(text: &str, _: Kind) -> Option<$type> {
                <$type>::of(text)
            }

            fn show(&self, _: Kind) -> Option<String> {
                Some(self.word().to_owned())
            }
        }
    )+};
}

word_values! {
    PoolMode = PoolMode::Session,
    StateMode = StateMode::Carry,
    AuthType = AuthType::Md5,
    SslMode = SslMode::Disable,
    LoadBalance = LoadBalance::RoundRobin,
    Compat = Compat::Howdah,
    ListenLost = ListenLost::Warning,
    IoBackend = IoBackend::Auto,
    WorkersAwake = WorkersAwake::Needed,
    SessionAttrs = SessionAttrs::Any,
    ReadSplit = ReadSplit::Off,
}

fn items(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split(',').map(str::trim)
}

/// A name as SQL takes it without quotes.
fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_later = |c: char| is_letter(c) || c.is_ascii_digit() || c == '$';
    text.starts_with(is_letter) && text.chars().all(is_later)
}

/// C's `strtol` with base 0, all of the text.
pub(crate) fn whole(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => (16, hex),
        None if digits.len() > 1 && digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let number = i64::from_str_radix(digits, radix).ok()?;
    Some(if negative { -number } else { number })
}

/// Seconds that are not negative, kept to the microsecond as PgBouncer keeps them.
fn seconds(text: &str) -> Option<Duration> {
    // Rust also reads `inf` and `nan`.
    if !text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c)) {
        return None;
    }
    let seconds: f64 = text.parse().ok()?;
    let usable = (0.0..=SECONDS_MAX).contains(&seconds);
    usable.then(|| Duration::from_micros((seconds * 1e6).round() as u64))
}

/// C's `%g`: six significant digits, no zeros at the end.
pub(crate) fn percent_g(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    // Rust's `e` format always holds one `e` and a whole exponent after it.
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return trim_zeros(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.unsigned_abs())
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// 0 or more, as far as C's `int` goes.
pub(crate) const COUNT: Kind = Kind::Whole { min: 0, max: i32::MAX as i64 };
/// The words of `pool_mode`.
pub(crate) const POOL_MODE: Kind = Kind::Word(POOL_MODES);
/// The words of `session_state`.
pub(crate) const STATE_MODE: Kind = Kind::Word(STATE_MODES);
/// A port that a server may listen on.
pub(crate) const PORT: Kind = Kind::Whole { min: 1, max: 65535 };

const HOST_ALLOWED: &str =
    "a name, an IPv4 address, an IPv6 address without brackets, or a socket directory (/dir or @name)";

/// Some 300 years, far from where any sum of times overflows.
const SECONDS_MAX: f64 = 1e10;
