//! The one table of keys: what an entry of it says, and the macro that turns entries into a typed struct.
//!
//! A key is added, documented or declared built in its own entry and nowhere else.

mod entries;
mod general;

pub use entries::{DATABASE, Database, PEER, Peer, USER, User};
pub use general::{GENERAL, General};

use std::fmt;

use crate::value::Kind;

/// A section of pgbouncer.ini.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// `[pgbouncer]`: one key a line.
    General,
    /// `[databases]`: one database a line.
    Databases,
    /// `[users]`: one user a line.
    Users,
    /// `[peers]`: one peer a line.
    Peers,
}

impl Section {
    /// All, in the order of the manual.
    pub const ALL: [Section; 4] = [Section::General, Section::Databases, Section::Users, Section::Peers];

    /// The name between the brackets.
    pub fn name(self) -> &'static str {
        match self {
            Section::General => "pgbouncer",
            Section::Databases => "databases",
            Section::Users => "users",
            Section::Peers => "peers",
        }
    }

    /// Whether what the section sets up is built; a section that is not is warned of once.
    pub fn status(self) -> Status {
        match self {
            Section::General | Section::Databases | Section::Users => Status::Built,
            Section::Peers => Status::NotBuilt,
        }
    }

    /// The section's keys.
    pub fn specs(self) -> Vec<&'static Spec> {
        match self {
            Section::General => GENERAL.iter().map(|key| &key.spec).collect(),
            Section::Databases => DATABASE.iter().map(|key| &key.spec).collect(),
            Section::Users => USER.iter().map(|key| &key.spec).collect(),
            Section::Peers => PEER.iter().map(|key| &key.spec).collect(),
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.name())
    }
}

/// When a new value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At once, by RELOAD or SET.
    Reload,
    /// At once, and the database's servers are closed as they come free.
    Reconnect,
    /// Only when the process starts; RELOAD and SET pass over it in silence.
    Restart,
}

/// Whether the function behind a key is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is.
    Built,
    /// It is, except for these values, which are warned of.
    BuiltExcept(&'static [&'static str]),
    /// It is not yet: accepted, and warned of once.
    NotBuilt,
    /// It never can be, because of how we are made: accepted, and warned of once.
    Meaningless,
    /// It has nothing to act on here and nobody would miss it: accepted in silence.
    Ignored,
}

/// One entry of the table, without the field it fills.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The key in the file.
    pub name: &'static str,
    /// An older name that is still read.
    pub alias: Option<&'static str>,
    /// The heading it stands under in the manual.
    pub group: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The default as text; `None` is shown as NULL.
    pub default: Option<&'static str>,
    /// When a new value takes effect.
    pub change: Change,
    /// Whether it does anything yet.
    pub status: Status,
    /// The documentation, one line of source a line; each may begin with a blank.
    pub doc: &'static str,
}

impl Spec {
    /// RELOAD and SET change it: `changeable` in SHOW CONFIG.
    pub fn reloadable(&self) -> bool {
        self.change != Change::Restart
    }

    /// The documentation as one paragraph.
    pub fn paragraph(&self) -> String {
        self.doc.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
    }
}

/// One entry of the table, with the field of `T` it fills.
pub struct Key<T> {
    /// What the entry says.
    pub spec: Spec,
    pub(crate) set: fn(&mut T, &str) -> bool,
    pub(crate) show: fn(&T) -> Option<String>,
    pub(crate) same: fn(&T, &T) -> bool,
    pub(crate) copy: fn(&mut T, &T),
}

impl<T> Key<T> {
    /// The entry of a name or alias.
    pub(crate) fn find(keys: &'static [Key<T>], name: &str) -> Option<&'static Key<T>> {
        keys.iter().find(|key| key.spec.name == name || key.spec.alias == Some(name))
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

/// Turns entries into a struct with one typed field a key, its defaults, and the list of keys.
///
/// `field as "key" or "older name": Type = kind, default, when it changes, status;` with the documentation
/// above it; `as` and `or` only where they differ.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $name:ident in $list:ident;
        $(
            group $group:literal;
            $(
                $(#[doc = $doc:literal])+
                $field:ident $(as $key:literal)? $(or $alias:literal)?: $type:ty
                    = $kind:expr, $default:expr, $change:ident, $status:expr;
            )+
        )+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(
                $(#[doc = $doc])+
                pub $field: $type,
            )+)+
        }

        impl Default for $name {
            fn default() -> $name {
                $name {
                    $($(
                        $field: {
                            let default: Option<&str> = $default;
                            default
                                .and_then(|text| <$type as $crate::value::Value>::parse(text, $kind))
                                .unwrap_or_else(<$type as $crate::value::Value>::unset)
                        },
                    )+)+
                }
            }
        }

        #[doc = concat!("The keys that fill [`", stringify!($name), "`].")]
        pub static $list: &[$crate::table::Key<$name>] = &[
            $($(
                $crate::table::Key {
                    spec: $crate::table::Spec {
                        name: $crate::table::first!($($key,)? stringify!($field)),
                        alias: $crate::table::first!($(Some($alias),)? None),
                        group: $group,
                        kind: $kind,
                        default: $default,
                        change: $crate::table::Change::$change,
                        status: $status,
                        doc: concat!($($doc, "\n"),+),
                    },
                    set: |all, text| match <$type as $crate::value::Value>::parse(text, $kind) {
                        Some(value) => {
                            all.$field = value;
                            true
                        }
                        None => false,
                    },
                    show: |all| $crate::value::Value::show(&all.$field, $kind),
                    same: |one, other| one.$field == other.$field,
                    copy: |to, from| to.$field = from.$field.clone(),
                },
            )+)+
        ];
    };
}

/// The first of its arguments.
macro_rules! first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

pub(crate) use first;
pub(crate) use table;
