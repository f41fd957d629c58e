//! What users are known by, and what we log in to servers with.
//!
//! A login user is known by the auth_file, by an entry in `[users]`, or by the answer of an auth_query. What a client
//! showed when it logged in serves for servers too, as long as the secret that it was checked against still holds.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use auth::scram::{Credential, ITERATIONS_DEFAULT, MockKey, ScramLogin, ScramVerifier};
use auth::userlist::Userlist;
use auth::{LoginSecret, Password, StoredSecret};
use settings::{Database, Settings};

/// What a client showed of its secret.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// Nothing that would log in elsewhere.
    None,
    /// Its password.
    Password(Password),
    /// The keys of its SCRAM proof.
    Scram(ScramLogin),
}

/// A user of the auth_file is the same in every database; one found by an auth_query belongs to its database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    database: Option<String>,
    user: String,
}

/// Something made for, or checked against, a stored secret: of use only while that one holds.
struct Checked<T> {
    against: StoredSecret,
    value: T,
}

/// All secrets.
pub(crate) struct Secrets {
    userlist: Userlist,
    /// Found by auth_query.
    dynamic: BTreeMap<Holder, StoredSecret>,
    /// Shown by clients.
    learned: BTreeMap<Holder, Checked<LoginSecret>>,
    /// Made from clear text.
    verifiers: BTreeMap<String, Checked<ScramVerifier>>,
    mock_key: MockKey,
}

impl Secrets {
    pub(crate) fn new(userlist: Userlist, mock_key: MockKey) -> Secrets {
        Secrets {
            userlist,
            dynamic: BTreeMap::new(),
            learned: BTreeMap::new(),
            verifiers: BTreeMap::new(),
            mock_key,
        }
    }

    pub(crate) fn userlist(&self) -> &Userlist {
        &self.userlist
    }

    /// Another auth_file. What was checked against secrets that changed is no longer used.
    pub(crate) fn set_userlist(&mut self, userlist: Userlist) {
        self.userlist = userlist;
        let list = &self.userlist;
        self.verifiers.retain(|user, checked| list.secret(user) == Some(&checked.against));
    }

    /// What the auth_query says now; `None` forgets the user.
    pub(crate) fn set_dynamic(&mut self, database: &str, user: &str, secret: Option<StoredSecret>) {
        let holder = Holder { database: Some(database.to_owned()), user: user.to_owned() };
        match secret {
            Some(secret) => {
                self.dynamic.insert(holder, secret);
            }
            None => {
                self.dynamic.remove(&holder);
                self.learned.remove(&holder);
            }
        }
    }

    pub(crate) fn forget_database(&mut self, database: &str) {
        let other = |holder: &Holder| holder.database.as_deref() != Some(database);
        self.dynamic.retain(|holder, _| other(holder));
        self.learned.retain(|holder, _| other(holder));
    }

    /// What a login user is checked against; `None` for a user that nobody knows.
    pub(crate) fn stored(&self, database: &str, user: &str) -> Option<&StoredSecret> {
        self.held(database, user).map(|(_, stored)| stored)
    }

    fn held(&self, database: &str, user: &str) -> Option<(Holder, &StoredSecret)> {
        if let Some(stored) = self.userlist.secret(user) {
            return Some((Holder { database: None, user: user.to_owned() }, stored));
        }
        let holder = Holder { database: Some(database.to_owned()), user: user.to_owned() };
        self.dynamic.get(&holder).map(|stored| (holder, stored))
    }

    /// A client has logged in with this.
    pub(crate) fn learn(&mut self, database: &str, user: &str, evidence: Evidence) {
        let Some((holder, stored)) = self.held(database, user) else { return };
        let value = match evidence {
            Evidence::None => return,
            Evidence::Password(password) => LoginSecret::Clear(password),
            Evidence::Scram(login) => LoginSecret::Scram(login),
        };
        if matches!(stored, StoredSecret::Clear(_)) {
            // What is stored serves every exchange already.
            return;
        }
        let known = self.learned.get(&holder).filter(|known| known.against == *stored);
        if matches!(value, LoginSecret::Scram(_))
            && known.is_some_and(|known| matches!(known.value, LoginSecret::Clear(_)))
        {
            // The password itself is worth more.
            return;
        }
        let against = stored.clone();
        self.learned.insert(holder, Checked { against, value });
    }

    /// The password by which a client has shown that it knows the user's present secret.
    pub(crate) fn shown(&self, database: &str, user: &str) -> Option<&Password> {
        let (holder, stored) = self.held(database, user)?;
        match self.learned.get(&holder).filter(|learned| learned.against == *stored)?.value {
            LoginSecret::Clear(ref password) => Some(password),
            _ => None,
        }
    }

    /// What servers of a pool are logged in to with. A forced user's secret never comes from a client.
    pub(crate) fn for_server(
        &self,
        entry: Option<&Database>,
        database: &str,
        user: &str,
        is_forced: bool,
    ) -> LoginSecret {
        if is_forced {
            let own = entry.and_then(|entry| entry.password.as_ref());
            let own = own.map(|password| StoredSecret::parse(password.expose().as_bytes()));
            let stored = own.as_ref().or_else(|| self.userlist.secret(user));
            return stored.map_or(LoginSecret::None, LoginSecret::from_stored);
        }
        let Some((holder, stored)) = self.held(database, user) else { return LoginSecret::None };
        let learned = self.learned.get(&holder).filter(|learned| learned.against == *stored);
        match learned {
            Some(learned) => learned.value.clone(),
            None => LoginSecret::from_stored(stored),
        }
    }

    /// A verifier made from the user's clear-text password, if there is one for the present password.
    pub(crate) fn verifier(&self, user: &str, password: &StoredSecret) -> Option<&ScramVerifier> {
        self.verifiers.get(user).filter(|made| made.against == *password).map(|made| &made.value)
    }

    pub(crate) fn keep_verifier(&mut self, user: &str, verifier: ScramVerifier) {
        // Only for users of the file: their number is bounded.
        if let Some(stored) = self.userlist.secret(user) {
            let against = stored.clone();
            self.verifiers.insert(user.to_owned(), Checked { against, value: verifier });
        }
    }

    pub(crate) fn mock(&self, settings: &Settings, user: &str) -> Credential {
        Credential::mock(&self.mock_key, user, iterations(settings))
    }

    pub(crate) fn salt(&self, user: &str) -> Vec<u8> {
        self.mock_key.salt(user).to_vec()
    }
}

/// `scram_iterations`.
pub(crate) fn iterations(settings: &Settings) -> NonZeroU32 {
    NonZeroU32::new(settings.general.scram_iterations).unwrap_or(ITERATIONS_DEFAULT)
}
