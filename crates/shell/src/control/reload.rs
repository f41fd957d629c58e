//! New settings put in force while everything goes on.

use std::sync::Arc;

use console::Failure;
use hub::Reload;
use model::PoolId;

use super::{Control, dns_options};
use crate::entry::link_policy;
use crate::home::{ClientRef, ServerRef};
use crate::session::Letter;
use crate::{log, reading, systemd};

impl Control {
    /// Reads the files again. If anything is wrong with them the old settings stay, and the log says what.
    ///
    /// # Errors
    /// The first of what is wrong.
    pub(super) async fn reload(self: &Arc<Self>) -> Result<(), Failure> {
        systemd::notify(systemd::Notice::Reloading);
        let control = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || {
            let inputs = control.files.read()?;
            reading::load_tls(&control.shared, &inputs.settings)?;
            Ok(inputs)
        });
        let result: Result<hub::Inputs, Vec<String>> =
            read.await.unwrap_or_else(|error| Err(vec![error.to_string()]));
        systemd::notify(systemd::Notice::Ready);
        match result {
            Ok(inputs) => {
                let now = self.shared.clock.now();
                let reload = self.shared.hub.lock().reload(now, inputs);
                self.apply(reload);
                Ok(())
            }
            Err(problems) => {
                problems.iter().for_each(|problem| tracing::error!("{problem}"));
                tracing::error!("the settings were not reloaded; the old ones stay in force");
                Err(Failure::ReloadFailed(problems.into_iter().next()))
            }
        }
    }

    /// Puts into force what the hub has taken.
    pub(super) fn apply(self: &Arc<Self>, reload: Reload<ClientRef, ServerRef>) {
        let shared = &self.shared;
        let settings = Arc::clone(shared.hub.lock().settings());
        shared.set_settings(Arc::clone(&settings));
        shared.carry_out(reload.work);
        if let Err(fault) = log::configure(reading::log_options(&settings, self.files.is_quiet())) {
            tracing::error!("{fault}");
        }
        shared.listeners.configure(&settings);
        self.retarget_listeners();
        self.dns.configure(dns_options(&settings));
        self.lookups.close_idle(std::time::Duration::ZERO);
        self.forget_verdicts();
        self.renew_policies();
        self.watch_topologies();
        if reload.changes.server_tls {
            let work = shared.hub.lock().reconnect(&hub::Scope::All);
            self.done(work);
            self.renew_listeners(&hub::Scope::All);
        }
    }

    /// Every session and every pool gets the policy that holds for it now.
    fn renew_policies(&self) {
        let shared = &self.shared;
        for home in shared.homes() {
            let policy = shared.hub.lock().policy(home.cell.id, &home.cell.key.user);
            if let Some(policy) = policy {
                *home.cleaning.lock() = Arc::new(link_policy(&policy, false));
            }
            *home.readers.lock() = None;
        }
        let clients: Vec<(PoolId, ClientRef)> =
            shared.hub.lock().members().map(|(pool, client)| (pool, Arc::clone(client))).collect();
        for (pool, client) in clients {
            let Some(who) = client.who() else { continue };
            let Some(home) = shared.home_of(pool) else { continue };
            let policy = shared.hub.lock().policy(home.cell.id, &who.user);
            if let Some(policy) = policy {
                let terms = match who.replication {
                    "none" if !who.is_passthrough => home.receptions.terms(&policy),
                    _ => Arc::new(link_policy(&policy, true)),
                };
                shared.post(&client, Letter::Terms(terms));
            }
        }
    }
}
