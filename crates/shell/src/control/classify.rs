//! Which statements may go to a standby: found out here, off the way of a query.
//!
//! `reads` knows what to ask and what follows; this knows how: one connection to a database's primary, kept for the next
//! question, and a thread with a stack that no statement is too deep for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use model::PoolId;
use parking_lot::Mutex;
use reads::{Case, Judged, Ticket, Verdict, Why};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use super::Control;
use crate::connect::{self, Kept, ProbeError, RowFailure};
use crate::home::Home;

/// So many statements are looked at at once.
const TURNS: usize = 2;
/// For connecting, logging in and asking, each.
const LIMIT: Duration = Duration::from_secs(10);
/// When it could not be found out, nobody tries again for so long.
const PAUSE: Duration = Duration::from_secs(1);
/// What no server has told of (another session's CREATE FUNCTION) is noticed after so long.
const VERDICT_AGE_MAX: Duration = Duration::from_secs(120);
/// A connection that nobody asked on for so long is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// The connections to catalogs.
pub(super) struct Catalogs {
    turns: Semaphore,
    kept: Mutex<HashMap<PoolId, (Kept, Instant)>>,
    renewed: Mutex<Instant>,
}

impl Default for Catalogs {
    fn default() -> Catalogs {
        Catalogs { turns: Semaphore::new(TURNS), kept: Mutex::default(), renewed: Mutex::new(Instant::now()) }
    }
}

impl Catalogs {
    /// Closes the connections of these pools that nobody asks on.
    pub(super) fn forget(&self, pools: &[PoolId]) {
        self.kept.lock().retain(|pool, _| !pools.contains(pool));
    }

    /// Closes the connections that are not in use.
    pub(super) fn close_idle(&self) {
        self.kept.lock().clear();
    }
}

impl Control {
    /// Finds out whether a statement may go to a standby.
    pub(super) async fn classify(self: Arc<Self>, home: Arc<Home>, ticket: Ticket, masked: String) {
        // The semaphore is never closed, so this only waits.
        let turn = self.catalogs.turns.acquire().await;
        let verdict = self.judge(&home, masked).await;
        drop(turn);
        match verdict {
            Ok(verdict) => home.verdicts().put(ticket, verdict),
            Err(failure) => {
                tracing::warn!("{:?}: the catalog was not asked about a statement: {failure}", home.cell);
                tokio::time::sleep(PAUSE).await;
                home.verdicts().give_up(ticket);
            }
        }
    }

    async fn judge(&self, home: &Home, masked: String) -> Result<Verdict, String> {
        // Whatever cannot be read to its end stays with the primary.
        const UNREAD: Verdict = Verdict::Primary(Why::Unreadable);
        let mut case = match on_deep_stack(move || Case::open(&masked)).await? {
            Some(Ok(case)) => case,
            Some(Err(why)) => return Ok(Verdict::Primary(why)),
            None => return Ok(UNREAD),
        };
        loop {
            let row = match self.ask_catalog(home, &case.question()).await {
                Ok(row) => row,
                // The answer is larger than any that we take.
                Err(ProbeError::Row(RowFailure::Question(server::login::QuestionError::NotOneRow))) => {
                    return Ok(Verdict::Primary(Why::TooLong));
                }
                Err(error) => return Err(error.to_string()),
            };
            let answered = on_deep_stack(move || (case.answer(&row), case)).await?;
            let Some((judged, next)) = answered else { return Ok(UNREAD) };
            case = next;
            match judged {
                Ok(Judged::Done(verdict)) => return Ok(verdict),
                Ok(Judged::More) => {}
                Err(unclear) => return Err(unclear.to_string()),
            }
        }
    }

    async fn ask_catalog(&self, home: &Home, question: &str) -> Result<server::login::Columns, ProbeError> {
        let id = home.cell.id;
        let order = self.shared.hub.lock().listen_order(self.shared.clock.now(), &home.cell);
        let Some(order) = order else { return Err(ProbeError::Silent) };
        let order = self.own_order(&order, "howdah reads", true);
        let kept = self.catalogs.kept.lock().remove(&id).map(|(kept, _)| kept);
        let was_kept = kept.is_some();
        let mut asked = connect::probe(kept, &order, &self.context, question, LIMIT).await;
        if was_kept && matches!(asked, Err(ProbeError::Row(RowFailure::Lost(_)))) {
            // It may have been closed long ago. A new one decides.
            asked = connect::probe(None, &order, &self.context, question, LIMIT).await;
        }
        let (row, kept) = asked?;
        self.catalogs.kept.lock().insert(id, (kept, Instant::now()));
        Ok(row)
    }

    /// All verdicts are found out anew: what they were made of may have changed.
    pub(super) fn forget_verdicts(&self) {
        *self.catalogs.renewed.lock() = Instant::now();
        self.catalogs.close_idle();
        self.shared.homes().iter().for_each(|home| home.forget_verdicts());
    }

    /// The same, if it is long ago; and connections that nobody uses are closed.
    pub(super) fn forget_old_verdicts(&self) {
        self.catalogs.kept.lock().retain(|_, (_, used)| used.elapsed() < IDLE_MAX);
        if self.catalogs.renewed.lock().elapsed() >= VERDICT_AGE_MAX {
            self.forget_verdicts();
        }
    }
}

/// Runs something that may be deep, on a thread of its own; `None` if it did not come to an end.
async fn on_deep_stack<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, String> {
    let (tell, told) = oneshot::channel();
    let run = move || drop(tell.send(work()));
    std::thread::Builder::new()
        .name("reads".to_owned())
        .stack_size(reads::STACK_BYTES)
        .spawn(run)
        .map_err(|error| format!("no thread: {error}"))?;
    Ok(told.await.ok())
}
