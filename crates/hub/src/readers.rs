//! Pools for reads: one on each node of the cluster of an entry whose reads may go to standbys.
//!
//! They live as long as the pool that clients enter. Which of them a read goes to is said where it is read; this says
//! which there are.

use std::sync::Arc;

use cluster::{Balance, Board, NodeId, Weight};
use model::{Moment, PoolId};
use settings::{Consistency, Database, ReadSplit};

use crate::cell::{PoolCell, PoolKey};
use crate::clusters::{ClusterId, Place, balance, monitored, places};
use crate::hub::{Hub, Record};

/// Where the reads of a pool's clients may go.
pub struct Split<C, S> {
    /// Who may be read from.
    pub board: Arc<Board>,
    /// The pools, by node.
    pub cells: Vec<Arc<PoolCell<C, S>>>,
    /// Single statements that are proved to read go there too.
    pub by_statement: bool,
    /// How current they must be.
    pub consistency: Consistency,
    /// How the choice falls among several.
    pub balance: Balance,
    /// What part each takes, by node.
    pub weights: Vec<Weight>,
    /// The primary's part beside those.
    pub primary_weight: u32,
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// Where the reads of a pool's clients may go, if its entry says that they may go anywhere.
    pub fn split_of(&mut self, now: Moment, pool: PoolId) -> Option<Split<C, S>> {
        let record = self.pools.get(&pool).filter(|record| !record.is_orphan)?;
        let key = record.cell.key.clone();
        let settings = Arc::clone(&self.settings);
        let database = self.database(&settings, &key.database)?;
        if key.reader.is_some() || database.read_write_split == ReadSplit::Off {
            return None;
        }
        let (id, ..) = self.cluster_of(&key)?;
        let watched = self.clusters.all.get(&id)?;
        let board = Arc::clone(watched.cluster.board());
        let (places, weights) = (watched.places.clone(), self.weights(&key, id));
        let cells = places.into_iter().map(|place| self.pool_at(now, &key.database, &key.user, Some(place)));
        Some(Split {
            board,
            cells: cells.collect(),
            by_statement: database.read_write_split == ReadSplit::Statement,
            consistency: database.consistency,
            balance: balance(database.load_balance_hosts),
            weights,
            primary_weight: database.primary_read_weight,
        })
    }

    /// What part of the readers of an entry each node takes, and how far it is, if the entry says anything of that.
    pub(crate) fn weights(&self, key: &PoolKey, id: ClusterId) -> Vec<Weight> {
        let database = self.database(&self.settings, &key.database);
        let says =
            |database: &&Database| !database.host_weights.is_empty() || !database.host_zones.is_empty();
        let (Some(database), Some(watched)) = (database.filter(says), self.clusters.all.get(&id)) else {
            return Vec::new();
        };
        let own = self.settings.general.zone.as_deref();
        let list = places(&self.settings, database);
        let weight = |place: &Place| {
            let Some(at) = list.iter().position(|other| other == place) else { return Weight::default() };
            let weight = database.host_weights.get(at).and_then(|weight| weight.parse().ok());
            let zone = database.host_zones.get(at).map(String::as_str);
            let is_far = own.is_some() && zone.is_some() && zone != own;
            Weight { weight: weight.unwrap_or(1), distance: u32::from(is_far) }
        };
        watched.places.iter().map(weight).collect()
    }

    /// What part of the reads each host of an entry takes that is watched, and the primary: entry, host, part.
    pub fn read_parts(&self) -> Vec<(String, String, u32)> {
        let mut parts = Vec::new();
        for (name, database) in monitored(&self.settings) {
            for (at, place) in places(&self.settings, database).iter().enumerate() {
                let weight = database.host_weights.get(at).and_then(|weight| weight.parse().ok());
                parts.push((name.to_owned(), place.to_string(), weight.unwrap_or(1)));
            }
            if database.read_write_split != ReadSplit::Off {
                parts.push((name.to_owned(), "primary".to_owned(), database.primary_read_weight));
            }
        }
        parts
    }

    /// The node that a pool for reads is on, as long as its entry has it.
    pub(crate) fn reader_of(&self, key: &PoolKey, place: &Place) -> Option<(ClusterId, NodeId)> {
        let database = self.database(&self.settings, &key.database)?;
        if database.read_write_split == ReadSplit::Off {
            return None;
        }
        let id = *self.clusters.by_places.get(&places(&self.settings, database))?;
        let watched = self.clusters.all.get(&id)?;
        let node = watched.cluster.ids().find(|node| watched.places[node.index()] == *place)?;
        Some((id, node))
    }

    /// Whether a pool for reads is kept although nobody is counted for it: as long as clients may come to it.
    pub(crate) fn keeps_reader(&self, record: &Record<C, S>) -> bool {
        let key = &record.cell.key;
        let Some(place) = &key.reader else { return false };
        let main =
            self.entries.get(&key.database).and_then(|entry| entry.pools.get(&(key.user.clone(), None)));
        main.is_some() && self.reader_of(key, place).is_some()
    }
}
