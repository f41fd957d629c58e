//! The monitor: one connection to each node of each cluster, asked what the node is.
//!
//! When a node is asked is `cluster`'s to say. This knows how, and what the answer means in its words.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Answer, Failure};
use hub::{NodeRef, ProbeOrder};
use parking_lot::Mutex;
use server::login::LoginError;

use super::Control;
use crate::connect::{self, ConnectError, Kept, ProbeError, RowFailure, Stage};

/// The connections that are kept, and what went wrong last.
#[derive(Default)]
pub(super) struct Monitors {
    kept: Mutex<HashMap<NodeRef, Kept>>,
    errors: Mutex<HashMap<NodeRef, String>>,
}

impl Monitors {
    /// What the last probe of a node failed on, in words; empty if it did not.
    pub(super) fn error(&self, at: NodeRef) -> String {
        self.errors.lock().get(&at).cloned().unwrap_or_default()
    }

    /// Forgets nodes that no longer are.
    pub(super) fn retain(&self, is_known: impl Fn(NodeRef) -> bool) {
        self.kept.lock().retain(|at, _| is_known(*at));
        self.errors.lock().retain(|at, _| is_known(*at));
    }
}

impl Control {
    /// Asks a node.
    pub(super) async fn probe(self: Arc<Self>, probe: ProbeOrder) {
        let ProbeOrder { at, fresh, order, limit } = probe;
        let kept = self.monitors.kept.lock().remove(&at).filter(|_| !fresh);
        let connect = self.own_order(&order, "howdah monitor", true);
        let outcome = connect::probe(kept, &connect, &self.context, QUESTION, limit).await;
        let outcome = match outcome {
            Ok((row, kept)) => match answer(&row) {
                Some(answer) => {
                    self.monitors.kept.lock().insert(at, kept);
                    self.monitors.errors.lock().remove(&at);
                    Ok(answer)
                }
                None => Err((Failure::Denied, "no answer to understand".to_owned())),
            },
            Err(error) => Err((failure(&error), error.to_string())),
        };
        let outcome = outcome.map_err(|(failure, words)| {
            self.monitors.errors.lock().insert(at, words);
            failure
        });
        let shared = &self.shared;
        let work = shared.hub.lock().probed(shared.clock.now(), at, outcome);
        if !work.recheck.is_empty() {
            // They are idle, and a server that shuts down in order would wait for them.
            self.catalogs.close_idle();
        }
        shared.carry_out(work);
    }
}

fn failure(error: &ProbeError) -> Failure {
    if let Some(words) = error.words() {
        let code = words.sqlstate.as_deref().unwrap_or_default();
        return match code {
            // In English, as PostgreSQL says it before it knows of any language.
            "57P03" if words.message.contains("shutting down") => Failure::Leaving,
            "57P03" => Failure::Starting,
            "53300" => Failure::Full,
            _ if code.starts_with("57P0") => Failure::Lost,
            _ => Failure::Denied,
        };
    }
    match error {
        ProbeError::Silent => Failure::Silent,
        ProbeError::Row(RowFailure::Lost(_)) => Failure::Lost,
        ProbeError::Row(RowFailure::Question(_)) => Failure::Denied,
        ProbeError::Connect(error) => match error {
            ConnectError::Dns(..) | ConnectError::Timeout(Stage::Name) => Failure::Name,
            ConnectError::Timeout(_) => Failure::Silent,
            ConnectError::Unreachable(..) => Failure::Refused,
            ConnectError::Closed(_) | ConnectError::Io(..) => Failure::Lost,
            ConnectError::BytesAfterLogin
            | ConnectError::ClientGone
            | ConnectError::Login(LoginError::Fault(_) | LoginError::Failed(_))
            | ConnectError::RoleDiffers(_)
            | ConnectError::TlsBadAnswer(_)
            | ConnectError::TlsHandshake(_)
            | ConnectError::TlsRefused => Failure::Denied,
        },
    }
}

/// What a node is asked: nothing that needs a right. What a standby receives is shown only to roles that may read
/// statistics; for others its own files show later that it follows a new timeline. Functions that fail in or out of recovery are guarded, because a
/// promotion can come at any time; then the probe fails and the next one does not.
const QUESTION: &str = "select pg_catalog.pg_is_in_recovery(), \
    (select system_identifier from pg_catalog.pg_control_system()), \
    case when pg_catalog.pg_is_in_recovery() \
    then pg_catalog.to_hex((select timeline_id from pg_catalog.pg_control_checkpoint())) \
    else pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8) end, \
    pg_catalog.current_setting('default_transaction_read_only'), \
    pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time())::pg_catalog.numeric, \
    pg_catalog.pg_wal_lsn_diff(case when pg_catalog.pg_is_in_recovery() \
    then coalesce(pg_catalog.pg_last_wal_replay_lsn(), '0/0') \
    else pg_catalog.pg_current_wal_insert_lsn() end, '0/0'), \
    case when not pg_catalog.pg_is_in_recovery() \
    or pg_catalog.pg_last_wal_receive_lsn() = pg_catalog.pg_last_wal_replay_lsn() then 0 else \
    pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - pg_catalog.pg_last_xact_replay_timestamp()) end, \
    greatest((select timeline_id from pg_catalog.pg_control_checkpoint()), \
    (select min_recovery_end_timeline from pg_catalog.pg_control_recovery()), \
    (select received_tli from pg_catalog.pg_stat_wal_receiver))";

fn answer(row: &[Option<Box<[u8]>>]) -> Option<Answer> {
    let [in_recovery, system, timeline, read_only, started, position, behind, history] = row else {
        return None;
    };
    let text = |column: &Option<Box<[u8]>>| {
        column.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()).map(str::to_owned)
    };
    let seconds = |column| text(column).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    let position = text(position)?;
    Some(Answer {
        in_recovery: text(in_recovery)? == "t",
        // Signed in SQL, and only ever compared.
        system: text(system)?.parse::<i64>().ok()?.cast_unsigned(),
        timeline: u32::from_str_radix(&text(timeline)?, 16).ok()?,
        history: text(history)?.parse().ok()?,
        read_only: text(read_only)? == "on",
        started: (seconds(started) * 1e6) as u64,
        position: position.split('.').next()?.parse().ok()?,
        behind: Duration::try_from_secs_f64(seconds(behind).clamp(0.0, BEHIND_MAX)).ok()?,
    })
}

/// A year: more is no different.
const BEHIND_MAX: f64 = 366.0 * 86_400.0;
