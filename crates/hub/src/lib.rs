//! What clients share: databases, users, pools, limits, secrets, cancel keys, and the state that the console steers.
//!
//! One [`Hub`] stands behind one lock. It is asked when a client logs in or leaves, when a server opens or has
//! closed, when the console or a signal wants something, and when time is up; never on the way of a query, which
//! concerns one [`PoolCell`] only. Events go in, decisions come out; what is to be done to clients and servers is
//! answered as [`Work`], and whoever holds the sockets does it after giving the lock back.
//!
//! Locks are taken in one order: the hub, then a pool. With a pool locked, the hub is never asked.
//!
//! The life of a client, as calls:
//!
//! ```text
//! admit                                   a socket was accepted
//!   identify -> Plan { challenge, seat }  a Lookup is answered by looked_up, a Derivation by derived
//!   enter(seat, evidence) -> Entered      it has proved who it is
//!   issue_key                             the key it may cancel by
//! login_over                              entered or not: the login has ended
//! leave                                   if it had entered
//! ```
//!
//! The life of a server: a pool says [`pool::Opens`], then for each slot
//!
//! ```text
//! open_server(pool) -> OpenOrder          counted from now on; else Pool::open_refused(slot)
//!   Pool::opened or Pool::open_failed
//!   Pool::closed(slot)                    its socket is closed
//! server_gone(pool) -> pools to poke      after a failed opening too
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cell;
mod hub;
mod work;

mod route;
mod secrets;
mod policy;
mod admission;
mod cancel;
mod fanout;

mod limits;
mod clusters;
mod membership;
mod topology;
mod readers;
mod entry;

mod drain;
mod health;
mod reload;
mod residents;
mod tick;
mod vacancy;
mod view;

#[cfg(test)]
mod tests;

pub use admission::{Entered, LoginsFull, Member};
pub use cancel::CancelKey;
pub use cell::{PoolCell, PoolKey};
pub use clusters::{ClusterId, History, News, NodeInfo, NodeRef, Place, ProbeOrder};
pub use drain::Scope;
pub use fanout::{
    Channel, Command, Done, Fanout, FanoutLimit, FanoutLimits, Joined, ListenerId, Next, Retargeted,
    ServerEnd, Target,
};
pub use health::{Fitness, Readiness};
pub use hub::{Hub, Inputs};
pub use limits::{OpenOrder, OpenRefusal};
pub use policy::ClientPolicy;
pub use readers::Split;
pub use reload::Reload;
pub use route::{Challenge, Decoy, Derivation, Expected, Facts, Looked, Lookup, Plan, Replication, Seat};
pub use secrets::Evidence;
pub use topology::{Learned, TopologyInfo};
pub use work::Work;
