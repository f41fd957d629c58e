//! Why a login failed, as facts without any secret in them. What the client is told (SQLSTATE, words) and how
//! the log says it is decided elsewhere; an unknown user and a wrong password are one fact here on purpose.

use std::fmt;

/// Why a client was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its certificate or its operating-system user stands for another user.
    IdentityDiffers,
    /// It showed no certificate, or none with a name.
    IdentityMissing,
    /// The method is not built: LDAP and PAM.
    MethodUnsupported,
    /// No line of the HBA file matches.
    NoRule,
    /// It sent a password of no bytes.
    PasswordEmpty,
    /// The password is wrong, or the user does not exist.
    PasswordWrong,
    /// A line of the HBA file says `reject`.
    Rejected,
    /// The SCRAM exchange failed.
    Scram(ScramFault),
    /// Checking a clear-text password against this verifier takes more iterations than we allow.
    SecretTooCostly,
    /// `trust`, and the user does not exist.
    UserUnknown,
}

impl From<ScramFault> for Refusal {
    fn from(fault: ScramFault) -> Refusal {
        Refusal::Scram(fault)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::IdentityDiffers => "the client's certificate or system user stands for another user",
            Refusal::IdentityMissing => "the client showed no certificate name",
            Refusal::MethodUnsupported => "the authentication method is not supported",
            Refusal::NoRule => "no authentication method is found",
            Refusal::PasswordEmpty => "empty password returned by client",
            Refusal::PasswordWrong => "password authentication failed",
            Refusal::Rejected => "login rejected",
            Refusal::Scram(fault) => return fault.fmt(f),
            Refusal::SecretTooCostly => "the stored SCRAM secret has too many iterations",
            Refusal::UserUnknown => "no such user",
        })
    }
}

impl std::error::Error for Refusal {}

/// Which kind of mistake a [`ScramFault`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The password (or the user) is wrong: SQLSTATE 28P01.
    Password,
    /// The other side broke the protocol: SQLSTATE 08P01.
    Protocol,
    /// Both sides work and cannot agree: what one requires the other does not offer.
    Policy,
}

/// What went wrong in a SCRAM exchange, on either side of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScramFault {
    /// The attribute named should have stood here.
    AttributeMissing(char),
    /// An attribute of the base protocol stands where only extensions may.
    AttributeUnexpected(char),
    /// An authorization identity was asked for; PostgreSQL has none.
    AuthorizationIdentity,
    /// The channel binding data differ: somebody sits between the two ends.
    BindingDiffers,
    /// The first byte is none of `n`, `y` and `p`.
    BindingFlagUnknown,
    /// SCRAM-SHA-256-PLUS was chosen, and the message binds to no channel.
    BindingMissing,
    /// We require channel binding, and the server does not offer it or the connection has none.
    BindingRequired,
    /// Another kind of channel binding than `tls-server-end-point`.
    BindingTypeUnknown,
    /// SCRAM-SHA-256 was chosen, and the message binds to a channel.
    BindingUnasked,
    /// The client thinks that we did not offer channel binding, but we did: a downgrade attack.
    Downgraded,
    /// The iteration count is no plain decimal number.
    IterationsMalformed,
    /// The iteration count is zero or above our limit.
    IterationsOutOfRange,
    /// Our keys were made with another salt or iteration count than the server asks for.
    KeysForOtherSalt,
    /// A mandatory extension (`m=`), and we know none.
    MandatoryExtension,
    /// Not a list of attributes.
    Malformed,
    /// The client chose a mechanism that we did not offer.
    MechanismUnknown,
    /// The server offers no mechanism that we know.
    MechanismsUnknown,
    /// A message longer than any honest one.
    MessageTooLong,
    /// The last message repeats another nonce than the one agreed on.
    NonceDiffers,
    /// A nonce that is empty or has a byte that is not printable.
    NonceMalformed,
    /// The server's nonce does not begin with ours, or adds nothing to it.
    NonceNotExtended,
    /// A nonce longer than 1 kB.
    NonceTooLong,
    /// The proof is not base64 of 32 bytes.
    ProofMalformed,
    /// The proof does not match: wrong password, or no such user.
    ProofWrong,
    /// The salt is empty or not base64.
    SaltMalformed,
    /// A salt longer than 1 kB.
    SaltTooLong,
    /// The server ended the exchange with an error value.
    ServerError(ServerErrorValue),
    /// The server's signature is not base64 of 32 bytes.
    SignatureMalformed,
    /// The server's signature is wrong: it does not know the password's verifier.
    SignatureWrong,
}

impl ScramFault {
    /// The kind of mistake.
    pub fn blame(self) -> Blame {
        match self {
            ScramFault::ProofWrong
            | ScramFault::KeysForOtherSalt
            | ScramFault::ServerError(ServerErrorValue::InvalidProof | ServerErrorValue::UnknownUser) => {
                Blame::Password
            }
            ScramFault::BindingRequired
            | ScramFault::MechanismsUnknown
            | ScramFault::IterationsOutOfRange
            | ScramFault::ServerError(_) => Blame::Policy,
            _ => Blame::Protocol,
        }
    }

    fn words(self) -> &'static str {
        match self {
            ScramFault::AttributeMissing(_) | ScramFault::AttributeUnexpected(_) => "",
            ScramFault::AuthorizationIdentity => "authorization identity is not supported",
            ScramFault::BindingDiffers => "channel binding check failed",
            ScramFault::BindingFlagUnknown => "unexpected channel-binding flag",
            ScramFault::BindingMissing => "SCRAM-SHA-256-PLUS selected without channel binding data",
            ScramFault::BindingRequired => "channel binding is required and cannot be had",
            ScramFault::BindingTypeUnknown => "unsupported channel-binding type",
            ScramFault::BindingUnasked => "SCRAM-SHA-256 selected with channel binding data",
            ScramFault::Downgraded => "client was made to believe that channel binding is not offered",
            ScramFault::IterationsMalformed => "malformed iteration count",
            ScramFault::IterationsOutOfRange => "iteration count is out of range",
            ScramFault::KeysForOtherSalt => "SCRAM keys belong to another salt or iteration count",
            ScramFault::MandatoryExtension => "unsupported mandatory extension",
            ScramFault::Malformed => "malformed message",
            ScramFault::MechanismUnknown => "client selected an unknown SASL mechanism",
            ScramFault::MechanismsUnknown => "server offers no known SASL mechanism",
            ScramFault::MessageTooLong => "message is too long",
            ScramFault::NonceDiffers => "nonce does not match",
            ScramFault::NonceMalformed => "malformed nonce",
            ScramFault::NonceNotExtended => "server did not extend the nonce",
            ScramFault::NonceTooLong => "nonce is too long",
            ScramFault::ProofMalformed => "malformed proof",
            ScramFault::ProofWrong => "wrong password or no such user",
            ScramFault::SaltMalformed => "malformed salt",
            ScramFault::SaltTooLong => "salt is too long",
            ScramFault::ServerError(_) => "server ended the exchange with an error",
            ScramFault::SignatureMalformed => "malformed server signature",
            ScramFault::SignatureWrong => "wrong server signature",
        }
    }
}

impl fmt::Display for ScramFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScramFault::AttributeMissing(name) => write!(f, "SCRAM: attribute {name:?} is missing"),
            ScramFault::AttributeUnexpected(name) => write!(f, "SCRAM: unexpected attribute {name:?}"),
            ScramFault::ServerError(value) => write!(f, "SCRAM: server answered {}", value.name()),
            other => write!(f, "SCRAM: {}", other.words()),
        }
    }
}

impl std::error::Error for ScramFault {}

macro_rules! server_error_values {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// The error values of RFC 5802 that a server may end the exchange with.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ServerErrorValue {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl ServerErrorValue {
            /// Any value that RFC 5802 does not list is `Other`; its text is not kept.
            pub(crate) fn parse(value: &[u8]) -> ServerErrorValue {
                $(if value == $name.as_bytes() { return ServerErrorValue::$variant; })*
                ServerErrorValue::Other
            }

            /// As it stands in the message.
            pub fn name(self) -> &'static str {
                match self { $(ServerErrorValue::$variant => $name,)* }
            }
        }
    };
}

server_error_values! {
    ChannelBindingNotSupported = "channel-binding-not-supported",
    ChannelBindingsDontMatch = "channel-bindings-dont-match",
    ExtensionsNotSupported = "extensions-not-supported",
    InvalidEncoding = "invalid-encoding",
    InvalidProof = "invalid-proof",
    InvalidUsernameEncoding = "invalid-username-encoding",
    NoResources = "no-resources",
    Other = "other-error",
    ServerDoesSupportChannelBinding = "server-does-support-channel-binding",
    UnknownUser = "unknown-user",
    UnsupportedChannelBindingType = "unsupported-channel-binding-type",
}
