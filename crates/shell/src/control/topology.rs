//! Engines that know the members of clusters, asked again and again: one task for each that an entry names.
//!
//! Any of an engine's URLs will do; the one that answered last is asked first. What an answer means is `patroni`'s to
//! say, and what becomes of it the hub's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use patroni::Report;
use settings::{General, SslMode, Topology, Url};
use tokio::task::AbortHandle;

use super::Control;
use crate::connect::Deadline;
use crate::http;
use crate::tls::{ServerTls, TlsOptions};

/// The tasks, by what they ask.
#[derive(Default)]
pub(super) struct Watches(Mutex<BTreeMap<Topology, AbortHandle>>);

/// What a task keeps from one time to the next.
#[derive(Default)]
struct Asker {
    /// The URL that answered last.
    first: usize,
    /// For URLs that want it, with the files that it was made of.
    tls: Option<(TlsFiles, ServerTls)>,
}

/// What the settings say of `https:` URLs.
#[derive(Clone, PartialEq, Eq)]
struct TlsFiles {
    authorities: String,
    certificate: String,
    key: String,
}

impl Control {
    /// Begins to ask the engines that are new in the settings, and stops asking those that are no longer there.
    pub(super) fn watch_topologies(self: &Arc<Self>) {
        let settings = self.shared.settings();
        let named = settings.topologies();
        let mut watches = self.watches.0.lock();
        watches.retain(|topology, task| {
            let is_named = named.contains(topology);
            if !is_named {
                task.abort();
            }
            is_named
        });
        for topology in named {
            if !watches.contains_key(topology) {
                let task = tokio::spawn(Arc::clone(self).watch(topology.clone()));
                watches.insert(topology.clone(), task.abort_handle());
            }
        }
    }

    async fn watch(self: Arc<Self>, topology: Topology) {
        let mut asker = Asker::default();
        loop {
            let told = self.ask_engine(&topology, &mut asker).await;
            let shared = &self.shared;
            let learned = shared.hub.lock().told_members(shared.clock.now(), &topology, told);
            shared.carry_out(learned.work);
            if let Some(reload) = learned.reload {
                self.apply(reload);
            }
            let interval = self.shared.settings().general.topology_interval;
            tokio::time::sleep(interval.max(INTERVAL_LEAST)).await;
        }
    }

    /// The first answer of any URL that is one.
    async fn ask_engine(&self, topology: &Topology, asker: &mut Asker) -> Result<Report, String> {
        let mut faults = Vec::new();
        let count = topology.urls.len();
        for turn in 0..count {
            let place = (asker.first + turn) % count;
            match self.ask_url(&topology.urls[place], asker).await {
                Ok(report) => {
                    asker.first = place;
                    return Ok(report);
                }
                Err(fault) => faults.push(format!("{}: {fault}", topology.urls[place])),
            }
        }
        // Files may have been renewed.
        asker.tls = None;
        // The same words each time, so that they are said once.
        faults.sort();
        Err(faults.join("; "))
    }

    async fn ask_url(&self, url: &Url, asker: &mut Asker) -> Result<Report, String> {
        let settings = self.shared.settings();
        let tls = if url.tls { asker.tls(&settings.general)? } else { ServerTls::DISABLED };
        let limit = settings.general.topology_timeout.max(INTERVAL_LEAST);
        let bounds = (patroni::BYTES_MAX, Deadline::after(limit));
        let answer = http::get(url, "/cluster", bounds, (&tls, &self.dns));
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(body)) => Report::read(&body).map_err(|fault| fault.to_string()),
            Ok(Err(fault)) => Err(fault.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}

impl Asker {
    fn tls(&mut self, general: &General) -> Result<ServerTls, String> {
        let files = TlsFiles {
            authorities: general.topology_tls_ca_file.clone(),
            certificate: general.topology_tls_cert_file.clone(),
            key: general.topology_tls_key_file.clone(),
        };
        if let Some((of, tls)) = &self.tls
            && *of == files
        {
            return Ok(tls.clone());
        }
        let tls = files.load()?;
        Ok(self.tls.insert((files, tls)).1.clone())
    }
}

impl TlsFiles {
    /// Always with the name checked: who can say where the servers are can have everybody's queries.
    fn load(&self) -> Result<ServerTls, String> {
        let path = |text: &str| (!text.is_empty()).then(|| text.into());
        let options = TlsOptions {
            mode: SslMode::VerifyFull,
            key_file: path(&self.key),
            cert_file: path(&self.certificate),
            ca_file: path(&self.authorities),
            v1_2: true,
            v1_3: true,
            ciphers: String::new(),
            tls13_ciphers: String::new(),
        };
        ServerTls::load(&options).map_err(|fault| format!("topology_tls: {fault}"))
    }
}

/// However the settings read, nobody is asked in a tight loop.
const INTERVAL_LEAST: Duration = Duration::from_millis(100);
