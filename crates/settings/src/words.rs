//! The settings whose value is one word of a few. Decides the words, not what they do.

use model::{PoolMode, StateMode};

/// A type whose values are words.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// Every word with its value, in the order the manual lists them.
    const WORDS: &'static [(&'static str, Self)];

    /// The value of a word; upper and lower case are one.
    fn of(text: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
    }

    /// The word of a value.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident: $($(#[$doc:meta])* $value:ident = $word:literal,)+) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $value,)+ }

        impl $name {
            /// The words allowed, in the manual's order.
            pub const NAMES: &'static [&'static str] = &[$($word),+];

            /// The word in pgbouncer.ini.
            pub fn name(self) -> &'static str {
                self.word()
            }
        }

        impl Word for $name {
            const WORDS: &'static [(&'static str, $name)] = &[$(($word, $name::$value)),+];
        }
    };
}

words! {
    /// `auth_type`: how clients prove who they are.
    AuthType:
    /// No proof; the name given is ignored and the database's forced user is taken.
    Any = "any",
    /// No proof, but the user must be known.
    Trust = "trust",
    /// The password in clear text.
    Plain = "plain",
    /// PostgreSQL's md5 exchange; SCRAM where the stored secret is a SCRAM one.
    Md5 = "md5",
    /// A TLS certificate whose common name is the user.
    Cert = "cert",
    /// The rules in `auth_hba_file` decide.
    Hba = "hba",
    /// An LDAP server decides.
    Ldap = "ldap",
    /// The system's PAM decides.
    Pam = "pam",
    /// SCRAM-SHA-256, and SCRAM-SHA-256-PLUS over TLS.
    ScramSha256 = "scram-sha-256",
}

words! {
    /// `client_tls_sslmode` and `server_tls_sslmode`.
    SslMode:
    /// No TLS.
    Disable = "disable",
    /// TLS if the peer asks for it.
    Allow = "allow",
    /// TLS if the peer can.
    Prefer = "prefer",
    /// TLS always, no certificate checked.
    Require = "require",
    /// TLS with a certificate signed by the CA.
    VerifyCa = "verify-ca",
    /// As `VerifyCa`, and the name must match.
    VerifyFull = "verify-full",
}

words! {
    /// `load_balance_hosts` of a database with several hosts.
    LoadBalance:
    /// Each new server connection goes to the next host.
    RoundRobin = "round-robin",
    /// Stay on one host until it fails.
    Disable = "disable",
    /// Each new server connection goes to the host with the fewest, in proportion to their readiness. Of hosts that
    /// are not monitored, as `RoundRobin`.
    LeastConnections = "least-connections",
    /// Of two hosts chosen at random the one with fewer. Of hosts that are not monitored, as `RoundRobin`.
    Random = "random",
}

words! {
    /// `read_write_split`: which of a client's transactions may run on a standby.
    ReadSplit:
    /// None.
    Off = "off",
    /// Those that say so themselves.
    Intent = "intent",
    /// Those, and single statements that are proved to read only.
    Statement = "statement",
}

words! {
    /// `target_session_attrs`: libpq's words for what a host must be. A database that has it is monitored.
    SessionAttrs:
    /// Any host that answers.
    Any = "any",
    /// The primary, if sessions on it may write.
    ReadWrite = "read-write",
    /// A host whose sessions may not write.
    ReadOnly = "read-only",
    /// The primary.
    Primary = "primary",
    /// A standby.
    Standby = "standby",
    /// A standby, or while there is none, any host.
    PreferStandby = "prefer-standby",
}

words! {
    /// `compat`: whose behaviour to show where the two differ.
    Compat:
    /// The behaviour that PostgreSQL itself shows.
    Howdah = "howdah",
    /// PgBouncer's, with its known flaws.
    PgBouncer = "pgbouncer",
}

words! {
    /// `listen_lost`: what becomes of clients that may have missed a notification.
    ListenLost:
    /// They are told, and go on.
    Warning = "warning",
    /// Their sessions end.
    Close = "close",
}

words! {
    /// `io_backend`: how workers hand bytes to the kernel.
    IoBackend:
    /// What is best here.
    Auto = "auto",
    /// A call for each send.
    Epoll = "epoll",
    /// A call for many sends.
    IoUring = "io_uring",
}

words! {
    /// `workers_awake`: whether workers that can be spared rest.
    WorkersAwake:
    /// As many as the work needs.
    Needed = "needed",
    /// All of them, always.
    All = "all",
}

words! {
    /// `server_auth_allowed`: what a server may ask of us.
    ServerAuth:
    /// Nothing at all.
    Trust = "trust",
    /// The password in clear text.
    Password = "password",
    /// The md5 exchange.
    Md5 = "md5",
    /// SCRAM-SHA-256.
    ScramSha256 = "scram-sha-256",
}

impl Word for PoolMode {
    const WORDS: &'static [(&'static str, PoolMode)] = &[
        ("session", PoolMode::Session),
        ("transaction", PoolMode::Transaction),
        ("statement", PoolMode::Statement),
        ("passthrough", PoolMode::Passthrough),
    ];
}

impl Word for StateMode {
    const WORDS: &'static [(&'static str, StateMode)] = &[
        ("carry", StateMode::Carry),
        ("pin", StateMode::Pin),
        ("refuse", StateMode::Refuse),
        ("off", StateMode::Off),
    ];
}

/// The words of `session_state`.
pub(crate) const STATE_MODES: &[&str] = &["carry", "pin", "refuse", "off"];

/// The words of `pool_mode`.
pub(crate) const POOL_MODES: &[&str] = &["session", "transaction", "statement", "passthrough"];

/// `client_tls_protocols` and `server_tls_protocols`: which TLS versions may be spoken.
///
/// Versions before 1.2 may be named, as in PgBouncer, but are never spoken; a list that allows neither 1.2
/// nor 1.3 is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsProtocols {
    text: String,
    /// TLS 1.2 is allowed.
    pub v1_2: bool,
    /// TLS 1.3 is allowed.
    pub v1_3: bool,
}

impl TlsProtocols {
    /// Reads a list of words, separated by commas or colons; `!` before a word takes it away again.
    pub(crate) fn parse(text: &str) -> Option<TlsProtocols> {
        let mut versions = 0;
        for word in text.split([',', ':']) {
            let word = word.trim();
            let (negated, word) = match word.strip_prefix('!') {
                Some(word) => (true, word),
                None => (false, word),
            };
            let named = match word.to_ascii_lowercase().as_str() {
                "all" | "legacy" => ALL,
                "default" | "secure" => V1_2 | V1_3,
                "tlsv1" => ALL,
                "tlsv1.0" => V1_0,
                "tlsv1.1" => V1_1,
                "tlsv1.2" => V1_2,
                "tlsv1.3" => V1_3,
                _ => return None,
            };
            if !negated {
                versions |= named;
            } else {
                versions = if versions == 0 { ALL } else { versions } & !named;
            }
        }
        let protocols =
            TlsProtocols { text: text.to_owned(), v1_2: versions & V1_2 != 0, v1_3: versions & V1_3 != 0 };
        (protocols.v1_2 || protocols.v1_3).then_some(protocols)
    }

    /// The list as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Default for TlsProtocols {
    fn default() -> TlsProtocols {
        TlsProtocols { text: "secure".to_owned(), v1_2: true, v1_3: true }
    }
}

/// The words a TLS version list is made of, for the nearest-word search.
pub(crate) const TLS_WORDS: &[&str] = &["secure", "all", "legacy", "tlsv1.2", "tlsv1.3"];

const V1_0: u8 = 1;
const V1_1: u8 = 2;
const V1_2: u8 = 4;
const V1_3: u8 = 8;
const ALL: u8 = V1_0 | V1_1 | V1_2 | V1_3;
