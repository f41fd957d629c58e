//! The end of the process: when it comes, and how it is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use console::Shutdown;
use tokio::sync::Notify;

use super::Control;
use crate::systemd;
use crate::worker::Errand;

/// Whether the process is to end.
#[derive(Clone, Default)]
pub struct Ending(Arc<(AtomicBool, Notify)>);

impl Ending {
    /// It is.
    pub fn reach(&self) {
        self.0.0.store(true, Ordering::Release);
        self.0.1.notify_waiters();
        self.0.1.notify_one();
    }

    /// Whether it is.
    pub fn is_reached(&self) -> bool {
        self.0.0.load(Ordering::Acquire)
    }

    /// Waits until it is.
    pub async fn reached(&self) {
        while !self.is_reached() {
            self.0.1.notified().await;
        }
    }
}

impl Control {
    /// SHUTDOWN, or a signal that means it. A second signal ends the process at once.
    pub(super) fn shut_down(&self, mode: Shutdown) {
        let shared = &self.shared;
        let mut hub = shared.hub.lock();
        if hub.shutdown_mode().is_some() || mode == Shutdown::Immediate {
            drop(hub);
            self.ending.reach();
            return;
        }
        let work = hub.shutdown(mode);
        drop(hub);
        systemd::notify(systemd::Notice::Stopping);
        shared.workers.iter().for_each(|worker| worker.ask(Errand::Deafen));
        shared.carry_out(work);
    }

    /// Says why the process ends.
    pub(super) fn say_over(&self) {
        if self.ending.is_reached() {
            return;
        }
        match self.shared.hub.lock().shutdown_mode() {
            Some(Shutdown::WaitForServers) => tracing::info!("server connections dropped, exiting"),
            Some(Shutdown::WaitForClients) => tracing::info!("client connections dropped, exiting"),
            Some(Shutdown::Immediate) | None => {}
        }
    }
}
