//! What is known of the nodes of one cluster, and which of them may have a new server connection.
//!
//! One [`Cluster`] is one list of hosts. It asks for probes and is told what they said, and what traffic showed by the
//! way; from that it judges each node's state and role, who the one true primary is, and which connections
//! must go. It knows neither sockets nor protocol nor pools: nodes are numbers, probes are effects, answers are
//! events, and `now` is handed in.
//!
//! ```text
//! tick(now)                 ->  Effects: probe these nodes
//!     probed(node, answer)  ->  Effects: what became known; `changed`: ask fate() and can_choose() again
//! heard(node, sign)         ->  Effects: a probe at once
//! choose(wanted, balance)   ->  the node for one new connection; released(node) when that is gone
//! add(), remove(node)       ->  the list of hosts is another one; nodes in both stay what they are
//! ```
//!
//! The rule of reads: what a standby lacks of what a client has written is known without asking anybody for each
//! query. See `fresh` and `board`.
//!
//! The rule of writes: a cluster has one system identifier, agreed upon by its nodes once and never changed, and
//! the highest timeline that any of them was seen on. A node is written to only if it has proved, itself and on
//! the SQL side, that it is out of recovery, on that timeline, of that identifier, and no other node claims the
//! same.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod board;
mod choose;
mod cluster;
mod fate;
mod fresh;
mod judge;
mod limits;
mod members;
mod node;
mod view;

#[cfg(test)]
mod tests;

pub use answer::{Answer, Failure, Sign};
pub use board::{Board, Need, Parts, Reader};
pub use choose::{Balance, Wanted, Weight};
pub use cluster::{Cluster, Effects, Fact, NodeId, Probe, What};
pub use fate::Fate;
pub use limits::Limits;
pub use view::{NodeView, Role, State};
