//! A pool as the workers see it: the pool itself behind its short lock, and what is counted about it.

use std::sync::{Arc, OnceLock};

use link::Policy;
use model::{Parameters, Statements};
use parking_lot::Mutex;
use pool::Pool;
use reads::Verdicts;
use stats::Counters;

use crate::moored::Moored;
use crate::reception::Receptions;
use crate::session::Session;
use crate::split::Readers;

/// Handles as the pool moves them.
pub type ClientRef = Arc<Session>;
/// Handles as the pool moves them.
pub type ServerRef = Arc<Moored>;
/// The pool of the data plane.
pub type SharedPool = Pool<ClientRef, ServerRef>;
/// The hub's record of a pool.
pub type Cell = hub::PoolCell<ClientRef, ServerRef>;

/// One pool.
pub struct Home {
    /// The hub's record.
    pub cell: Arc<Cell>,
    /// It is on one standby, for reads alone.
    pub is_reader: bool,
    /// Where the reads of its clients may go, once one of them has asked.
    pub readers: Mutex<Option<Arc<Readers>>>,
    /// What each worker counted.
    pub counters: Box<[Counters]>,
    /// What the first server reported: told to clients at their login.
    pub welcome: Mutex<Option<Arc<Parameters>>>,
    /// What clients that come alike are given alike.
    pub receptions: Receptions,
    /// Prepared statements of its clients and servers.
    pub statements: Arc<Statements>,
    /// How servers are cleaned whose client is gone.
    pub cleaning: Mutex<Arc<Policy>>,
    /// Which of its clients' statements may go to a standby; made when the first is asked about.
    verdicts: OnceLock<Verdicts>,
}

impl Home {
    /// A pool that nobody has used yet.
    pub fn new(cell: Arc<Cell>, workers: usize, statements: Arc<Statements>, cleaning: Arc<Policy>) -> Home {
        let counters = (0..workers).map(|_| Counters::default()).collect();
        Home {
            is_reader: cell.key.reader.is_some(),
            readers: Mutex::new(None),
            cell,
            counters,
            welcome: Mutex::new(None),
            statements,
            receptions: Receptions::default(),
            cleaning: Mutex::new(cleaning),
            verdicts: OnceLock::new(),
        }
    }

    /// What is known of its clients' statements. A change of the schema that some server has told of forgets it.
    #[inline]
    pub fn verdicts(&self) -> &Verdicts {
        let verdicts = self.verdicts.get_or_init(Verdicts::default);
        verdicts.schema_is(self.statements.generation());
        verdicts
    }

    /// The catalog may be another than it was, without any server having told.
    pub fn forget_verdicts(&self) {
        if let Some(verdicts) = self.verdicts.get() {
            verdicts.forget_all();
        }
    }

    /// What all workers counted together.
    pub fn totals(&self) -> stats::Totals {
        self.counters.iter().map(Counters::totals).sum()
    }

    /// The pool, locked. Held for as short as it takes to decide; nothing else is locked meanwhile but a berth.
    pub fn pool(&self) -> std::sync::MutexGuard<'_, SharedPool> {
        self.cell.lock()
    }
}
