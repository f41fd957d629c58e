//! What load balancers ask: whether newcomers are welcome, and whether a database could serve them.

use cluster::Wanted;
use console::Shutdown;
use settings::Database;

use crate::clusters::{places, wanted};
use crate::hub::Hub;

/// Whether newcomers are welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// They are.
    Ready,
    /// All is paused.
    Paused,
    /// The process is going to end.
    Draining,
}

/// Whether a database could serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// It could.
    Fit,
    /// There is no such database.
    Unknown,
    /// It is paused.
    Paused,
    /// It takes no new clients.
    Disabled,
    /// None of its hosts is what it wants.
    NoNode,
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// Whether newcomers are welcome.
    pub fn readiness(&self) -> Readiness {
        match self.shutdown_mode() {
            Some(Shutdown::Immediate | Shutdown::WaitForServers | Shutdown::WaitForClients) => {
                Readiness::Draining
            }
            None if self.is_all_paused() => Readiness::Paused,
            None => Readiness::Ready,
        }
    }

    /// Whether a client of this database would find a server, as far as that is known. Asking makes no entry.
    pub fn fitness(&self, name: &str) -> Fitness {
        let Some(found) = self.settings.find(name) else { return Fitness::Unknown };
        let entry = self.entries.get(name);
        if entry.is_some_and(|entry| entry.is_disabled) {
            Fitness::Disabled
        } else if self.is_paused(name) {
            Fitness::Paused
        } else if self.has_fitting_node(found.database) {
            Fitness::Fit
        } else {
            Fitness::NoNode
        }
    }

    fn has_fitting_node(&self, database: &Database) -> bool {
        let Some(attrs) = database.target_session_attrs else { return true };
        let wanted: Wanted = wanted(attrs);
        let id = self.clusters.by_places.get(&places(&self.settings, database));
        let watched = id.and_then(|id| self.clusters.all.get(id));
        watched.is_some_and(|watched| watched.cluster.can_choose(wanted))
    }
}

impl Readiness {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Readiness::Ready => "ready",
            Readiness::Paused => "paused",
            Readiness::Draining => "draining",
        }
    }
}

impl Fitness {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Fitness::Fit => "ready",
            Fitness::Unknown => "unknown",
            Fitness::Paused => "paused",
            Fitness::Disabled => "disabled",
            Fitness::NoNode => "no fitting host",
        }
    }
}
