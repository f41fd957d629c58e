//! Which ways to authenticate ourselves we put up with. Does not know what the secrets are.

/// A way in which a server may ask us who we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It does not ask.
    Trust,
    /// The password as it is: whoever plays the server has it then.
    Cleartext,
    /// The password hashed with a salt.
    Md5,
    /// SCRAM-SHA-256.
    Scram,
    /// SCRAM-SHA-256 bound to the TLS connection.
    ScramPlus,
}

impl Method {
    const ALL: [Method; 5] =
        [Method::Trust, Method::Cleartext, Method::Md5, Method::Scram, Method::ScramPlus];

    /// The word for it, as in the settings and the log.
    pub fn name(self) -> &'static str {
        match self {
            Method::Trust => "trust",
            Method::Cleartext => "password",
            Method::Md5 => "md5",
            Method::Scram => "scram-sha-256",
            Method::ScramPlus => "scram-sha-256-plus",
        }
    }

    /// The method of a word in the settings.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of [`Method`]s: what the settings allow a server to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Methods(u8);

impl Methods {
    /// No method: no server is let have anything.
    pub const EMPTY: Methods = Methods(0);
    /// Every method, as PgBouncer does.
    pub const ALL: Methods = Methods(0b1_1111);

    /// This set and one method more.
    #[must_use]
    pub fn with(self, method: Method) -> Methods {
        Methods(self.0 | method.bit())
    }

    /// This set without one method.
    #[must_use]
    pub fn without(self, method: Method) -> Methods {
        Methods(self.0 & !method.bit())
    }

    /// Whether the method is in the set.
    pub fn allows(self, method: Method) -> bool {
        self.0 & method.bit() != 0
    }
}

impl FromIterator<Method> for Methods {
    fn from_iter<T: IntoIterator<Item = Method>>(methods: T) -> Methods {
        methods.into_iter().fold(Methods::EMPTY, Methods::with)
    }
}
