//! What becomes of the connections that a node has.

use crate::choose::Wanted;
use crate::cluster::{Cluster, NodeId};
use crate::judge::Standing;
use crate::node::Reach;

/// What is to be done with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It stays.
    Keep,
    /// It is closed as soon as nobody uses it: at once, if it is idle.
    WhenFree,
    /// It is cut, whoever uses it: nothing that the node says may reach anybody any more.
    AtOnce,
}

impl Cluster {
    /// What is to be done with a connection to a node that was made for this.
    pub fn fate(&self, node: NodeId, wanted: Wanted) -> Fate {
        let Some(record) = self.nodes.get(node.index()) else { return Fate::WhenFree };
        let standing = self.standing(node);
        match standing {
            // A server that is no longer the primary and does not know it acknowledges what will be lost.
            Standing::Stale | Standing::Foreign => return Fate::AtOnce,
            // Taken from the list as the primary: that alone makes nothing wrong of what it is doing.
            Standing::Rival if !record.is_gone => return Fate::AtOnce,
            Standing::Unproved | Standing::Primary | Standing::Standby | Standing::Rival => {}
        }
        match record.reach {
            Reach::Unknown if record.is_gone => Fate::WhenFree,
            Reach::Unknown => Fate::Keep,
            Reach::Down(true) => Fate::AtOnce,
            // Its sessions end by themselves, or go on to their end.
            Reach::Down(false) | Reach::Leaving => Fate::WhenFree,
            Reach::Up if record.is_drained || record.is_gone => Fate::WhenFree,
            Reach::Up => self.fate_by_role(node, wanted, standing),
        }
    }

    fn fate_by_role(&self, node: NodeId, wanted: Wanted, standing: Standing) -> Fate {
        let is_standby = standing == Standing::Standby;
        let has_other = || self.can_choose(wanted);
        let record = &self.nodes[node.index()];
        let is_reader = !record.is_lagging && (record.takes_reads || !is_standby);
        let fits = match wanted {
            Wanted::Any => is_reader || !has_other(),
            Wanted::ReadWrite | Wanted::Primary => !is_standby,
            Wanted::Standby | Wanted::PreferStandby | Wanted::ReadOnly => {
                // A laggard is better than nobody only for whom it is already serving.
                self.fits(node, wanted) || (is_standby && !has_other())
            }
        };
        if fits || standing == Standing::Unproved { Fate::Keep } else { Fate::WhenFree }
    }
}
