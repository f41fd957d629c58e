//! Metrics for who asks: gathered and written on a thread of its own, once for all who ask at the same time.
//!
//! No session is looked at and nothing of the way of a query is locked but each pool for a moment, as the console does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use console::Snapshot;
use hub::Readiness;
use hyper::body::Bytes;
use metrics::{ClusterTally, PoolTally, Reading, WeightRow, Whole};
use model::Moment;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Control;
use crate::exposition::{self, Format};
use crate::process;

/// Younger than this, an answer is given again: whoever asks without a pause costs no more than ten a second.
const AGE_MAX: Duration = Duration::from_millis(100);

/// The last answer in each format. Who asks while one is made waits for it.
#[derive(Default)]
pub(super) struct Scrapes(Mutex<Option<(Instant, Texts)>>);

struct Texts {
    open_metrics: Bytes,
    prometheus: Bytes,
}

impl Control {
    /// The text; nothing, if it could not be written.
    pub(super) async fn scrape(self: Arc<Self>, format: Format) -> Option<Bytes> {
        let control = Arc::clone(&self);
        let mut last = self.scrapes.0.lock().await;
        if last.as_ref().is_none_or(|(made, _)| made.elapsed() >= AGE_MAX) {
            // It is gone only if the thread has panicked, which is in the log.
            let texts = tokio::task::spawn_blocking(move || control.texts()).await.ok()??;
            *last = Some((Instant::now(), texts));
        }
        let (_, texts) = last.as_ref()?;
        Some(match format {
            Format::OpenMetrics => texts.open_metrics.clone(),
            Format::Prometheus => texts.prometheus.clone(),
        })
    }

    fn texts(&self) -> Option<Texts> {
        let reading = self.reading();
        let write = |format| exposition::write(metrics::families(&reading), format).ok().map(Bytes::from);
        Some(Texts { open_metrics: write(Format::OpenMetrics)?, prometheus: write(Format::Prometheus)? })
    }

    fn reading(&self) -> Reading {
        let now = self.shared.clock.now();
        let (shown, (readiness, logins), clusters, weights) = {
            let hub = self.shared.hub.lock();
            let shown =
                Snapshot { pools: hub.pool_rows(now), databases: hub.database_rows(), ..Snapshot::default() };
            (shown, (hub.readiness(), hub.logins()), hub.histories(), hub.read_parts())
        };
        let shown = Snapshot {
            pins: self.pins(),
            listeners: self.shared.listeners.rows(),
            nodes: self.nodes(now),
            routes: self.routes(),
            ..shown
        };
        let weight = |(database, node, weight)| WeightRow { database, node, weight };
        let cluster = |(databases, history): (String, hub::History)| ClusterTally {
            databases,
            failovers: history.failovers,
            losses: history.losses,
        };
        Reading {
            shown,
            pools: self.tallies(),
            clusters: clusters.into_iter().map(cluster).collect(),
            weights: weights.into_iter().map(weight).collect(),
            whole: self.whole(readiness, logins),
            process: process::read(self.shared.clock.unix_seconds_at(Moment::default())),
        }
    }

    fn tallies(&self) -> Vec<PoolTally> {
        let tally = |home: &Arc<crate::home::Home>| {
            let key = &home.cell.key;
            PoolTally {
                database: key.database.clone(),
                user: key.user.clone(),
                standby: key.reader.as_ref().map(ToString::to_string),
                totals: home.totals(),
                statements: home.statements.len() as u64,
                is_held: home.pool().is_held(),
            }
        };
        self.shared.homes().iter().map(tally).collect()
    }

    fn whole(&self, readiness: Readiness, logins: u32) -> Whole {
        Whole {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            io_backend: self.shared.io_backend.get().copied().unwrap_or_default(),
            workers: self.shared.workers.len() as u64,
            clients_limit: self.shared.settings().general.max_client_conn.into(),
            logins: logins.into(),
            cancels: self.shared.cancels.load(Ordering::Relaxed) as u64,
            is_paused: readiness == Readiness::Paused,
            is_draining: readiness == Readiness::Draining,
        }
    }
}
