//! Who a client claims to be and where it wants to go, turned into what it must prove.
//!
//! A user or database that does not exist is put through the same exchange as one that does; only who has proved
//! something learns the difference, from [`Hub::enter`].

use std::num::NonZeroU32;
use std::sync::Arc;

use auth::hba::{self, Origin};
use auth::ident::check_identity;
use auth::method::{Challenge as Exchange, ScramSource, UnknownAs, scram_source};
use auth::scram::{Credential, ScramVerifier};
use auth::{ClientMethod, Password, StoredSecret};
use model::{Moment, PoolMode, Refusal};
use settings::AuthType;

use crate::cell::PoolCell;
use crate::hub::Hub;
use crate::secrets::iterations;

/// What is known of a client whose startup message has been read.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The database it asked for.
    pub database: &'a str,
    /// False if no database can have such a name: `*` does not stand for it.
    pub database_may_exist: bool,
    /// The user it named.
    pub user: &'a str,
    /// Where it comes from.
    pub origin: Origin,
    /// The common name in its TLS certificate, if that was verified.
    pub certificate_name: Option<&'a str>,
    /// The name of the system user at the other end of a Unix socket.
    pub system_user: Option<&'a str>,
    /// That user is the one that this process runs as.
    pub is_own_user: bool,
    /// What kind of connection it wants.
    pub replication: Replication,
}

/// What `replication` in the startup message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// An ordinary connection.
    No,
    /// The bytes of the log.
    Physical,
    /// Changes of one database.
    Logical,
}

/// What to do with a client that has told who it is.
#[derive(Debug)]
pub struct Plan<C, S> {
    /// How it must prove that.
    pub challenge: Challenge<C, S>,
    /// For [`Hub::enter`], once it has.
    pub seat: Seat,
}

/// How a client must prove who it is.
#[derive(Debug)]
pub enum Challenge<C, S> {
    /// It need not, or already has by its certificate or socket.
    Pass,
    /// It is out.
    Refuse(Refusal),
    /// A password in clear text.
    Plain(Expected),
    /// PostgreSQL's md5 exchange.
    Md5(Expected),
    /// A SCRAM exchange with this credential.
    Scram(Credential),
    /// A SCRAM exchange whose verifier has to be made first, which is slow: then [`Hub::derived`].
    Derive(Derivation),
    /// The user is looked up in a database first: then [`Hub::looked_up`].
    Lookup(Lookup<C, S>),
    /// To the server that it is to have alone, in whatever way that asks: [`Hub::enter`] comes before, and
    /// [`Hub::let_in`] after it.
    Relay,
}

/// What a password is compared with.
#[derive(Clone, Debug)]
pub enum Expected {
    /// The user's secret, and the password that was found to be right for it before, if it is known: comparing
    /// with that is quick.
    Stored(StoredSecret, Option<Password>),
    /// There is no such user: the comparison is made all the same, and nothing is right.
    Nobody(Decoy),
}

/// A secret of nobody, of the kind that most users have.
#[derive(Clone, Debug)]
pub struct Decoy(pub StoredSecret);

/// How to make a verifier.
#[derive(Clone, Debug)]
pub struct Derivation {
    user: String,
    password: Password,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

impl Derivation {
    /// **Slow**: PBKDF2.
    pub fn run(&self) -> ScramVerifier {
        ScramVerifier::from_password(&self.password, &self.salt, self.iterations)
    }
}

/// An auth_query to run.
#[derive(Debug)]
pub struct Lookup<C, S> {
    /// Where: any server of this pool will do.
    pub cell: Arc<PoolCell<C, S>>,
    /// The text; `$1` is the user.
    pub query: String,
    /// The user.
    pub user: String,
}

/// What came of an auth_query.
#[derive(Clone, Debug)]
pub enum Looked {
    /// One row; the secret may be NULL, which no password matches.
    Found(Option<Password>),
    /// No row: no such user.
    Nobody,
    /// It could not be run, or answered anything else.
    Failed,
}

/// Where a client goes if it can prove who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) is_console: bool,
    pub(crate) is_own_user: bool,
    pub(crate) may_exist: bool,
    /// Nobody here asks it for a proof: so it never gets a server but one that has let it in.
    pub(crate) is_passthrough: bool,
}

impl Seat {
    /// Whether it is its server that asks who it is, and nobody here.
    pub fn is_passthrough(&self) -> bool {
        self.is_passthrough
    }

    /// The console, not a database.
    pub fn is_console(&self) -> bool {
        self.is_console
    }

    /// The database entry's name.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The name it logs in with.
    pub fn user(&self) -> &str {
        &self.user
    }
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// How this client must prove who it is. Changes nothing but, for a lookup, the pool that it needs.
    pub fn identify(&mut self, now: Moment, facts: &Facts<'_>) -> Plan<C, S> {
        let facts = &self.plain(facts);
        let seat = self.seat(facts);
        let challenge = match self.refuse_early(&seat) {
            Some(refusal) => Challenge::Refuse(refusal),
            None => self.challenge(now, facts, &seat, true),
        };
        Plan { challenge, seat }
    }

    /// As [`Hub::identify`], with the answer of the lookup that it asked for.
    pub fn looked_up(&mut self, now: Moment, facts: &Facts<'_>, answer: Looked) -> Plan<C, S> {
        let facts = &self.plain(facts);
        let seat = self.seat(facts);
        let secret = match answer {
            Looked::Failed => {
                return Plan { challenge: Challenge::Refuse(Refusal::BouncerConfigError), seat };
            }
            Looked::Nobody => None,
            Looked::Found(None) => Some(StoredSecret::Unusable),
            Looked::Found(Some(text)) => Some(StoredSecret::parse(text.reveal())),
        };
        self.secrets.set_dynamic(&seat.database, &seat.user, secret);
        Plan { challenge: self.challenge(now, facts, &seat, false), seat }
    }

    /// The verifier that a [`Derivation`] asked for, for this exchange and those to come.
    pub fn derived(&mut self, derivation: &Derivation, verifier: ScramVerifier) -> Credential {
        self.secrets.keep_verifier(&derivation.user, verifier.clone());
        Credential::stored(verifier)
    }

    /// With the user's name as it is here (`client_user_suffix`).
    fn plain<'a>(&self, facts: &Facts<'a>) -> Facts<'a> {
        let found = self.settings.find(facts.database).filter(|_| facts.database_may_exist);
        let suffix = found.and_then(|found| found.database.client_user_suffix.as_deref());
        let plain = suffix.and_then(|suffix| facts.user.strip_suffix(suffix)).filter(|name| !name.is_empty());
        Facts { user: plain.unwrap_or(facts.user), ..*facts }
    }

    fn seat(&self, facts: &Facts<'_>) -> Seat {
        // `pgbouncer` cannot be configured; our own name can, and then it is a database.
        let is_console =
            console::is_console(facts.database) && !self.settings.databases.contains_key(facts.database);
        Seat {
            database: facts.database.to_owned(),
            user: facts.user.to_owned(),
            is_console,
            is_own_user: facts.is_own_user,
            may_exist: facts.database_may_exist,
            is_passthrough: !is_console && facts.database_may_exist && self.is_passthrough(facts),
        }
    }

    /// Whether clients log in to the servers of this entry themselves. Where the entry has a user for them, they
    /// cannot: it is not theirs.
    fn is_passthrough(&self, facts: &Facts<'_>) -> bool {
        self.settings.find(facts.database).is_some_and(|found| {
            found.database.user.is_none()
                && self.settings.effective(found.database, facts.user).pool_mode() == PoolMode::Passthrough
        })
    }

    /// What needs no secret to be told, and would only cost work to be told later.
    fn refuse_early(&self, seat: &Seat) -> Option<Refusal> {
        if seat.is_console {
            return None;
        }
        self.shutdown_refusal().or_else(|| self.is_full().then_some(Refusal::MaxClientConn))
    }

    fn challenge(&mut self, now: Moment, facts: &Facts<'_>, seat: &Seat, may_look: bool) -> Challenge<C, S> {
        if seat.is_console && self.console_login(seat).needs_no_proof() {
            return Challenge::Pass;
        }
        let (method, map) = match self.method(facts) {
            Ok(method) => method,
            Err(refusal) => return Challenge::Refuse(refusal),
        };
        if seat.is_passthrough {
            return self.gate(facts, method, map.as_deref());
        }
        if method == ClientMethod::Any {
            return self.pass_any(seat);
        }
        if may_look && needs_secret(method) {
            match self.lookup(now, seat) {
                Ok(None) => {}
                Ok(Some(lookup)) => return Challenge::Lookup(lookup),
                Err(refusal) => return Challenge::Refuse(refusal),
            }
        }
        let stored = self.stored(seat);
        match method.challenge(stored.as_ref(), self.secrets.userlist().unknown_as()) {
            Exchange::Pass => Challenge::Pass,
            Exchange::Refuse(cause) => Challenge::Refuse(refusal(cause, seat)),
            Exchange::Cleartext => Challenge::Plain(self.expected(seat, stored)),
            Exchange::Md5 => Challenge::Md5(self.expected(seat, stored)),
            Exchange::Scram => self.scram(seat, stored),
            Exchange::Certificate => match self.certificate_fits(facts, map.as_deref()) {
                true => Challenge::Pass,
                false => Challenge::Refuse(Refusal::CertificateFailed),
            },
            Exchange::Peer => match self.peer_fits(facts, map.as_deref()) {
                true => Challenge::Pass,
                false => Challenge::Refuse(Refusal::UnixLoginRejected),
            },
        }
    }

    /// What must hold before a client may get to the server that asks it for the rest.
    fn gate(&self, facts: &Facts<'_>, method: ClientMethod, map: Option<&str>) -> Challenge<C, S> {
        match method {
            ClientMethod::Reject => Challenge::Refuse(Refusal::LoginRejected),
            ClientMethod::Cert if !self.certificate_fits(facts, map) => {
                Challenge::Refuse(Refusal::CertificateFailed)
            }
            ClientMethod::Peer if !self.peer_fits(facts, map) => {
                Challenge::Refuse(Refusal::UnixLoginRejected)
            }
            _ => Challenge::Relay,
        }
    }

    fn certificate_fits(&self, facts: &Facts<'_>, map: Option<&str>) -> bool {
        check_identity(&self.idents, map, facts.certificate_name, facts.user).is_ok()
    }

    fn peer_fits(&self, facts: &Facts<'_>, map: Option<&str>) -> bool {
        check_identity(&self.idents, map, facts.system_user, facts.user).is_ok()
    }

    /// The method by `auth_type`, or by the first rule that matches, with its ident map.
    fn method(&self, facts: &Facts<'_>) -> Result<(ClientMethod, Option<String>), Refusal> {
        let method = match self.settings.general.auth_type {
            AuthType::Any => ClientMethod::Any,
            AuthType::Trust => ClientMethod::Trust,
            AuthType::Plain => ClientMethod::Plain,
            AuthType::Md5 => ClientMethod::Md5,
            AuthType::Cert => ClientMethod::Cert,
            AuthType::Ldap => ClientMethod::Ldap,
            AuthType::Pam => ClientMethod::Pam,
            AuthType::ScramSha256 => ClientMethod::Scram,
            AuthType::Hba => {
                let facts = hba::Facts {
                    database: facts.database,
                    user: facts.user,
                    origin: facts.origin,
                    replication_physical: facts.replication == Replication::Physical,
                };
                let rule = self.hba.decide(&facts).ok_or(Refusal::NoAuthenticationMethod)?;
                return Ok((rule.method, rule.map.map(str::to_owned)));
            }
        };
        Ok((method, None))
    }

    /// With `auth_type = any` the database must say whose servers they are.
    fn pass_any(&self, seat: &Seat) -> Challenge<C, S> {
        let entry = self.settings.find(&seat.database).filter(|_| seat.may_exist);
        let is_usable = entry.is_none_or(|found| found.database.user.is_some());
        if seat.is_console || is_usable {
            Challenge::Pass
        } else {
            Challenge::Refuse(Refusal::BouncerConfigError)
        }
    }

    /// The auth_query to run, if the user is not known otherwise and there is one.
    fn lookup(&mut self, now: Moment, seat: &Seat) -> Result<Option<Lookup<C, S>>, Refusal> {
        if seat.is_console || self.secrets.userlist().secret(&seat.user).is_some() {
            return Ok(None);
        }
        let settings = Arc::clone(&self.settings);
        let Some(found) = settings.find(&seat.database).filter(|_| seat.may_exist) else { return Ok(None) };
        let effective = settings.effective(found.database, &seat.user);
        let Some(auth_user) = effective.auth_user() else { return Ok(None) };
        let database = effective.auth_dbname().unwrap_or(&seat.database);
        if console::is_console(database) && !settings.databases.contains_key(database) {
            return Err(Refusal::BouncerConfigError);
        }
        if settings.find(database).is_none() {
            return Err(Refusal::BouncerConfigError);
        }
        if self.entries.get(database).is_some_and(|entry| entry.is_disabled) {
            return Err(Refusal::DatabaseDisabled(database.to_owned()));
        }
        if !self.ensure_entry(now, database) {
            return Err(Refusal::BouncerConfigError);
        }
        let cell = self.pool_of(now, database, auth_user);
        let query = effective.auth_query().to_owned();
        Ok(Some(Lookup { cell, query, user: seat.user.clone() }))
    }

    /// The secret of a user that exists. An entry in `[users]` alone makes a user whom no password lets in.
    fn stored(&self, seat: &Seat) -> Option<StoredSecret> {
        let known = self.secrets.stored(&seat.database, &seat.user).cloned();
        known.or_else(|| self.settings.users.contains_key(&seat.user).then_some(StoredSecret::Unusable))
    }

    fn expected(&self, seat: &Seat, stored: Option<StoredSecret>) -> Expected {
        match stored {
            Some(stored) => Expected::Stored(stored, self.secrets.shown(&seat.database, &seat.user).cloned()),
            None => Expected::Nobody(decoy(self.secrets.userlist().unknown_as())),
        }
    }

    fn scram(&self, seat: &Seat, stored: Option<StoredSecret>) -> Challenge<C, S> {
        match scram_source(stored.as_ref()) {
            ScramSource::Stored(verifier) => Challenge::Scram(Credential::stored(verifier.clone())),
            ScramSource::Mock => Challenge::Scram(self.secrets.mock(&self.settings, &seat.user)),
            ScramSource::Derive(password) => {
                let made = stored.as_ref().and_then(|stored| self.secrets.verifier(&seat.user, stored));
                let iterations = iterations(&self.settings);
                match made.filter(|made| made.iterations() == iterations) {
                    Some(verifier) => Challenge::Scram(Credential::stored(verifier.clone())),
                    None => Challenge::Derive(Derivation {
                        user: seat.user.clone(),
                        password: password.clone(),
                        salt: self.secrets.salt(&seat.user),
                        iterations,
                    }),
                }
            }
        }
    }
}

/// Whether a method asks what is stored about the user.
fn needs_secret(method: ClientMethod) -> bool {
    match method {
        ClientMethod::Trust | ClientMethod::Plain | ClientMethod::Md5 | ClientMethod::Scram => true,
        ClientMethod::Any
        | ClientMethod::Cert
        | ClientMethod::Peer
        | ClientMethod::Reject
        | ClientMethod::Ldap
        | ClientMethod::Pam
        | ClientMethod::Hba => false,
    }
}

fn refusal(cause: auth::Refusal, seat: &Seat) -> Refusal {
    match cause {
        auth::Refusal::Rejected => Refusal::LoginRejected,
        auth::Refusal::UserUnknown => Refusal::TrustFailed,
        auth::Refusal::NoRule | auth::Refusal::MethodUnsupported => Refusal::NoAuthenticationMethod,
        _ => Refusal::PasswordFailed(seat.user.clone()),
    }
}

fn decoy(kind: UnknownAs) -> Decoy {
    Decoy(StoredSecret::parse(match kind {
        UnknownAs::Md5 => b"md500000000000000000000000000000000",
        UnknownAs::Scram => DECOY_VERIFIER,
    }))
}

/// All keys are zero: they have no password. The check takes what it takes for any verifier with 4096 iterations.
const DECOY_VERIFIER: &[u8] = b"SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$\
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
