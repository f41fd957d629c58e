//! What we log in to a server with, and which exchanges it serves. Does not know the server, nor which
//! exchanges the settings allow.

use crate::md5::{Md5Response, Md5Secret};
use crate::scram::ScramLogin;
use crate::{Password, StoredSecret};

/// A secret of ours for one user of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LoginSecret {
    /// Nothing: only a server that trusts us lets us in.
    #[default]
    None,
    /// A password, which serves every exchange.
    Clear(Password),
    /// An md5 secret, which serves the md5 exchange only.
    Md5(Md5Secret),
    /// SCRAM keys taken from a client's own login (or from a cache): SCRAM only, same salt and iterations only.
    Scram(ScramLogin),
}

impl LoginSecret {
    /// What a stored secret is worth for logging in: a SCRAM verifier alone is worth nothing.
    pub fn from_stored(stored: &StoredSecret) -> LoginSecret {
        match stored {
            StoredSecret::Clear(password) => LoginSecret::Clear(password.clone()),
            StoredSecret::Md5(secret) => LoginSecret::Md5(secret.clone()),
            StoredSecret::Scram(_) | StoredSecret::Unusable => LoginSecret::None,
        }
    }

    /// For a server that asks for the password in clear text; `None` if we do not have it.
    pub fn cleartext(&self) -> Option<&Password> {
        match self {
            LoginSecret::Clear(password) => Some(password),
            LoginSecret::None | LoginSecret::Md5(_) | LoginSecret::Scram(_) => None,
        }
    }

    /// The answer to a server's md5 salt; `None` if the secret does not serve this exchange.
    pub fn md5(&self, user: &str, salt: [u8; 4]) -> Option<Md5Response> {
        match self {
            LoginSecret::Clear(password) => Some(Md5Secret::from_password(password, user).response(salt)),
            LoginSecret::Md5(secret) => Some(secret.response(salt)),
            LoginSecret::None | LoginSecret::Scram(_) => None,
        }
    }

    /// Whether the secret serves SCRAM: asked before the exchange begins.
    pub fn serves_scram(&self) -> bool {
        matches!(self, LoginSecret::Clear(_) | LoginSecret::Scram(_))
    }
}
