//! How a client must show who it is: the words of `auth_type` and of the HBA file, and which exchange a method
//! leads to with the secret that is stored. Does not run the exchanges and does not look secrets up.

use subtle::ConstantTimeEq;

use crate::md5::Md5Secret;
use crate::scram::{ITERATIONS_MAX, ScramKeys, ScramVerifier, salted_password};
use crate::{Password, Refusal, StoredSecret};

/// A way to authenticate clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientMethod {
    /// The user name is ignored; the database must name a user.
    Any,
    /// The user must exist.
    Trust,
    /// The password in clear text (`plain` in the settings, `password` in the HBA file).
    Plain,
    /// The md5 exchange, or SCRAM where the stored secret is a SCRAM verifier.
    Md5,
    /// SCRAM-SHA-256, with channel binding if there is TLS.
    Scram,
    /// The name in a verified client certificate.
    Cert,
    /// The operating-system user at the other end of a Unix socket.
    Peer,
    /// Nobody.
    Reject,
    /// An LDAP server is asked.
    Ldap,
    /// PAM is asked.
    Pam,
    /// The HBA file decides. [`crate::hba::Hba::decide`] never answers this.
    Hba,
}

impl ClientMethod {
    /// What `auth_type` may say.
    pub const SETTING_WORDS: &'static [(&'static str, ClientMethod)] = &[
        ("any", ClientMethod::Any),
        ("trust", ClientMethod::Trust),
        ("plain", ClientMethod::Plain),
        ("md5", ClientMethod::Md5),
        ("cert", ClientMethod::Cert),
        ("hba", ClientMethod::Hba),
        ("ldap", ClientMethod::Ldap),
        ("pam", ClientMethod::Pam),
        ("scram-sha-256", ClientMethod::Scram),
    ];

    /// What the method column of the HBA file may say.
    pub const HBA_WORDS: &'static [(&'static str, ClientMethod)] = &[
        ("trust", ClientMethod::Trust),
        ("reject", ClientMethod::Reject),
        ("md5", ClientMethod::Md5),
        ("password", ClientMethod::Plain),
        ("peer", ClientMethod::Peer),
        ("cert", ClientMethod::Cert),
        ("scram-sha-256", ClientMethod::Scram),
        ("ldap", ClientMethod::Ldap),
    ];

    /// A word of `auth_type`.
    pub fn from_setting(word: &str) -> Option<ClientMethod> {
        find(ClientMethod::SETTING_WORDS, word)
    }

    /// A word of the HBA file.
    pub fn from_hba(word: &str) -> Option<ClientMethod> {
        find(ClientMethod::HBA_WORDS, word)
    }

    /// The exchange to begin. `stored` is `None` for a user who does not exist; `unknown_as` then decides
    /// between md5 and SCRAM where the method leaves both open, so that a missing user looks like the others.
    pub fn challenge(self, stored: Option<&StoredSecret>, unknown_as: UnknownAs) -> Challenge {
        match self {
            ClientMethod::Any => Challenge::Pass,
            ClientMethod::Trust if stored.is_some() => Challenge::Pass,
            ClientMethod::Trust => Challenge::Refuse(Refusal::UserUnknown),
            ClientMethod::Plain => Challenge::Cleartext,
            ClientMethod::Md5 => match stored {
                Some(StoredSecret::Clear(_) | StoredSecret::Md5(_)) => Challenge::Md5,
                Some(StoredSecret::Scram(_)) => Challenge::Scram,
                Some(StoredSecret::Unusable) | None => match unknown_as {
                    UnknownAs::Md5 => Challenge::Md5,
                    UnknownAs::Scram => Challenge::Scram,
                },
            },
            ClientMethod::Scram => Challenge::Scram,
            ClientMethod::Cert => Challenge::Certificate,
            ClientMethod::Peer => Challenge::Peer,
            ClientMethod::Reject => Challenge::Refuse(Refusal::Rejected),
            ClientMethod::Ldap | ClientMethod::Pam => Challenge::Refuse(Refusal::MethodUnsupported),
            ClientMethod::Hba => Challenge::Refuse(Refusal::NoRule),
        }
    }
}

/// Which exchange a user without a usable secret is shown under the method md5. Best what most users have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownAs {
    /// As one with an md5 or clear-text secret.
    Md5,
    /// As one with a SCRAM verifier.
    Scram,
}

/// What comes next in a client's login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// Nothing: the client is in.
    Pass,
    /// The client is out.
    Refuse(Refusal),
    /// AuthenticationCleartextPassword, then [`check_plain`].
    Cleartext,
    /// AuthenticationMD5Password, then [`crate::md5::check_md5`].
    Md5,
    /// AuthenticationSASL, then [`crate::scram::AwaitClientFirst`] with what [`scram_source`] says.
    Scram,
    /// The certificate's name, by [`crate::ident::check_identity`].
    Certificate,
    /// The socket's user, by [`crate::ident::check_identity`].
    Peer,
}

/// Where the verifier of a SCRAM exchange comes from.
#[derive(Clone, Copy, Debug)]
pub enum ScramSource<'a> {
    /// Stored: [`crate::scram::Credential::stored`].
    Stored(&'a ScramVerifier),
    /// To be made from this password by [`ScramVerifier::from_password`], which is slow: cache it. Its salt
    /// should be [`crate::scram::MockKey::salt`], or a changing salt tells this user from the others.
    Derive(&'a Password),
    /// There is none: [`crate::scram::Credential::mock`].
    Mock,
}

/// Where the verifier for this user comes from; `stored` is `None` for a user who does not exist.
pub fn scram_source(stored: Option<&StoredSecret>) -> ScramSource<'_> {
    match stored {
        Some(StoredSecret::Scram(verifier)) => ScramSource::Stored(verifier),
        Some(StoredSecret::Clear(password)) if !password.is_empty() => ScramSource::Derive(password),
        Some(StoredSecret::Clear(_) | StoredSecret::Md5(_) | StoredSecret::Unusable) | None => {
            ScramSource::Mock
        }
    }
}

/// Checks a password in clear text against any kind of secret; `stored` is `None` for an unknown user.
/// **Slow** (PBKDF2) where [`StoredSecret::check_is_slow`].
pub fn check_plain(stored: Option<&StoredSecret>, user: &str, given: &Password) -> Result<(), Refusal> {
    if given.is_empty() {
        return Err(Refusal::PasswordEmpty);
    }
    let same = match stored {
        Some(StoredSecret::Clear(password)) => password == given,
        Some(StoredSecret::Md5(secret)) => *secret == Md5Secret::from_password(given, user),
        Some(StoredSecret::Scram(verifier)) => {
            if verifier.iterations().get() > ITERATIONS_MAX {
                return Err(Refusal::SecretTooCostly);
            }
            let salted = salted_password(given, verifier.salt(), verifier.iterations());
            let keys = ScramKeys::from_salted(&salted);
            let stored_matches = keys.stored_key.reveal().ct_eq(verifier.stored_key().reveal());
            (stored_matches & keys.server_key.reveal().ct_eq(verifier.server_key().reveal())).into()
        }
        // The comparison is made for the time it takes; an empty password equals nothing that comes here.
        Some(StoredSecret::Unusable) | None => Password::new(Vec::new()) == *given,
    };
    if same { Ok(()) } else { Err(Refusal::PasswordWrong) }
}

fn find(words: &[(&str, ClientMethod)], word: &str) -> Option<ClientMethod> {
    words.iter().find(|(name, _)| *name == word).map(|(_, method)| *method)
}

#[cfg(test)]
mod tests;
