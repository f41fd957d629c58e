//! Which nodes there are: those that come, go, are drained, or have no readers.

use std::sync::Arc;

use model::Moment;

use crate::board::Board;
use crate::cluster::{Cluster, Effects, NodeId};
use crate::node::Node;

impl Cluster {
    /// One more node, of which nothing is known; it is asked at the next tick. It may have the number of one that is
    /// gone. `None`: there are too many.
    pub fn add(&mut self, now: Moment) -> Option<NodeId> {
        let is_free = |node: &Node| node.is_gone && node.servers == 0 && !node.is_probing;
        let index = match self.nodes.iter().position(is_free) {
            Some(index) => {
                self.nodes[index] = Node::new(now);
                index
            }
            None => {
                self.nodes.push(Node::new(now));
                self.nodes.len() - 1
            }
        };
        let id = u16::try_from(index).ok().map(NodeId);
        // What it was before was another node.
        self.primary = self.primary.filter(|primary| Some(*primary) != id);
        if id.is_none() {
            self.nodes.pop();
        }
        self.renew_board();
        id
    }

    /// A node is no longer one of the cluster's: it gets nothing more, and what it has ends when it is free.
    pub fn remove(&mut self, node: NodeId) -> Effects {
        let effects = self.changed(node, |record| {
            record.is_drained = false;
            !std::mem::replace(&mut record.is_gone, true)
        });
        self.renew_board();
        effects
    }

    /// The numbers of nodes mean others now: whoever looks at the board that was finds nobody there.
    fn renew_board(&mut self) {
        self.board.close();
        self.board = Arc::new(Board::new(self.nodes.len()));
        self.publish(None);
    }

    /// The operator takes a node out, or puts it back.
    pub fn set_drained(&mut self, node: NodeId, is_drained: bool) -> Effects {
        self.changed(node, |record| std::mem::replace(&mut record.is_drained, is_drained) != is_drained)
    }

    /// Whether a node has readers while it is a standby.
    pub fn set_reads(&mut self, node: NodeId, takes_reads: bool) -> Effects {
        self.changed(node, |record| std::mem::replace(&mut record.takes_reads, takes_reads) != takes_reads)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.members().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All nodes.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> {
        let all = (0..).zip(&self.nodes);
        all.filter(|(_, node)| !node.is_gone).map(|(index, _)| NodeId(index))
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.is_gone)
    }

    fn changed(&mut self, node: NodeId, change: impl FnOnce(&mut Node) -> bool) -> Effects {
        let mut effects = Effects::default();
        if let Some(record) = self.nodes.get_mut(node.index()) {
            effects.changed = change(record);
        }
        self.judge(&mut effects);
        self.publish(None);
        effects
    }
}
