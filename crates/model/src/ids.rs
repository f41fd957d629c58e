//! The names of things that outlive a borrow: numbers that are never used twice in one process.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// One client connection, from accept to close. Shown as `id` in `SHOW CLIENTS`.
    ClientId(u64)
}
id! {
    /// One server connection, from connect to close. Shown as `id` in `SHOW SERVERS`.
    ServerId(u64)
}
id! {
    /// One pool: a pair of database entry and server user.
    PoolId(u32)
}
id! {
    /// One worker thread of the data plane, counted from 0.
    WorkerId(u16)
}
