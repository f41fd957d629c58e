//! What is due by time, and what DNS says anew.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::Moment;

use super::{Control, TICK};
use crate::connect::Endpoint;
use crate::systemd;
use crate::worker::Errand;

/// Does what is due, for ever.
pub(super) async fn run(control: Arc<Control>) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let shared = &control.shared;
        let now = shared.clock.now();
        let (work, is_over) = {
            let mut hub = shared.hub.lock();
            (hub.tick(now), hub.is_over())
        };
        shared.carry_out(work);
        if is_over {
            control.say_over();
            control.ending.reach();
        }
        control.leave_databases();
        control.close_overdue(now);
        if shared.accept_again.swap(false, Ordering::Relaxed) {
            shared.workers.iter().for_each(|worker| worker.ask(Errand::Accept));
        }
        let known = |id| shared.hub.lock().pool(id).is_some();
        let gone = control.statistics.lock().roll(shared, now);
        if let Some(line) = gone {
            systemd::notify(systemd::Notice::Status(&line));
            if shared.settings().general.log_stats {
                tracing::info!("{line}");
            }
            shared.forget_homes(known);
            let nodes: Vec<hub::NodeRef> = shared.hub.lock().nodes().iter().map(|node| node.at).collect();
            control.monitors.retain(|at| nodes.contains(&at));
            control.lookups.close_idle(Duration::from_secs(600));
            control.forget_old_verdicts();
        }
    }
}

impl Control {
    /// Servers that are cleaned or checked and do not answer hold a place of their pool for nothing.
    fn close_overdue(&self, now: Moment) {
        let limit = self.shared.settings().general.server_connect_timeout;
        self.shared.kept.lock().retain(|moored| {
            let since = moored.kept_since.load(Ordering::Relaxed);
            let is_overdue = since > 0 && Moment(since).deadline(limit) <= now;
            if is_overdue {
                self.shared.workers[usize::from(moored.worker.0)].ask(Errand::Overdue(Arc::clone(moored)));
            }
            since > 0 && !is_overdue
        });
    }
}

/// Servers at addresses that a name no longer has are closed when they are free.
pub(super) async fn watch_names(control: Arc<Control>) {
    let mut changes = control.dns.changes();
    while changes.changed().await.is_ok() {
        for home in control.shared.homes() {
            let database = home.cell.key.database.clone();
            let settings = control.shared.settings();
            let Some(found) = settings.find(&database) else { continue };
            let names = found.database.hosts.iter().filter_map(|host| match host {
                settings::Host::Name(name) => control.dns.addresses(name),
                settings::Host::Unix(_) | settings::Host::Ip(_) => None,
            });
            let addresses: Vec<_> = names.flatten().collect();
            if addresses.is_empty() {
                continue;
            }
            let is_stale = |remote: &Endpoint| match remote {
                Endpoint::Tcp(address) => !addresses.contains(&address.ip()),
                Endpoint::Unix(..) => false,
            };
            let any_stale = control
                .shared
                .servers()
                .iter()
                .any(|moored| moored.home.cell.id == home.cell.id && is_stale(&moored.facts.remote));
            if any_stale {
                let scope = hub::Scope::Database(database);
                let work = control.shared.hub.lock().reconnect(&scope);
                control.done(work);
                control.renew_listeners(&scope);
            }
        }
    }
}
