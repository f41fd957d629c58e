//! Addresses of names: asked of the system (getaddrinfo), kept for `dns_max_ttl`, handed out in turn.
//!
//! One lookup per name is under way at most, and it goes on when those who wait for it give up. A failed lookup
//! is no verdict: the last good addresses stay in use while lookups fail, and the name is asked for again after
//! `dns_nxdomain_ttl`. Does not know what the addresses are used for.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long answers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DnsOptions {
    /// `dns_max_ttl`: a good answer.
    pub max_ttl: Duration,
    /// `dns_nxdomain_ttl`: a failure.
    pub nxdomain_ttl: Duration,
}

/// Why a name has no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsFault {
    /// The system's words about it.
    LookupFailed(String),
    /// The name is known and has no address.
    NoAddress,
}

impl fmt::Display for DnsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DnsFault::LookupFailed(words) => write!(f, "DNS lookup failed: {words}"),
            DnsFault::NoAddress => f.write_str("DNS lookup failed: no address"),
        }
    }
}

impl std::error::Error for DnsFault {}

/// One line of `SHOW DNS_HOSTS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsHost {
    /// The name.
    pub name: String,
    /// Until it is looked up again; zero if the next use looks it up.
    pub ttl: Duration,
    /// Its addresses, none if there was never a good answer.
    pub addresses: Vec<IpAddr>,
}

/// The names of this process.
#[derive(Clone)]
pub struct Dns {
    shared: Arc<Shared>,
}

type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
type Resolver = Box<dyn Fn(String) -> Lookup + Send + Sync>;

struct Shared {
    resolver: Resolver,
    options: Mutex<DnsOptions>,
    names: Mutex<HashMap<String, Name>>,
    changes: watch::Sender<u64>,
}

struct Name {
    addresses: Vec<IpAddr>,
    fault: Option<DnsFault>,
    next: usize,
    /// When the answer is too old; `None` before the first one.
    due: Option<Instant>,
    /// Set while a lookup is under way; it is dropped, and so tells, when the lookup is over.
    under_way: Option<watch::Receiver<()>>,
}

impl Dns {
    /// Asks the system.
    pub fn new(options: DnsOptions) -> Dns {
        Dns::with_resolver(options, |name| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        })
    }

    fn with_resolver(
        options: DnsOptions,
        resolver: impl Fn(String) -> Lookup + Send + Sync + 'static,
    ) -> Dns {
        let shared = Shared {
            resolver: Box::new(resolver),
            options: Mutex::new(options),
            names: Mutex::new(HashMap::new()),
            changes: watch::Sender::new(0),
        };
        Dns { shared: Arc::new(shared) }
    }

    /// Takes new times, for answers from now on.
    pub fn configure(&self, options: DnsOptions) {
        *self.shared.options.lock() = options;
    }

    /// All addresses of a name, beginning with the one whose turn it is; never empty. An address literal is its
    /// own answer.
    pub async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, DnsFault> {
        if let Ok(address) = name.trim_start_matches('[').trim_end_matches(']').parse() {
            return Ok(vec![address]);
        }
        loop {
            let mut under_way = match self.known(name) {
                Known::Answer(answer) => return answer,
                Known::Wait(under_way) => under_way,
            };
            // Only ever an error: the sender says nothing and goes when the lookup is over.
            let _ = under_way.changed().await;
        }
    }

    /// The addresses that a name has now, if it was looked up with success: servers at others are outdated.
    pub fn addresses(&self, name: &str) -> Option<Vec<IpAddr>> {
        let names = self.shared.names.lock();
        names.get(name).filter(|name| !name.addresses.is_empty()).map(|name| name.addresses.clone())
    }

    /// Tells each time the addresses of some name have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// All names, sorted.
    pub fn snapshot(&self) -> Vec<DnsHost> {
        let now = Instant::now();
        let names = self.shared.names.lock();
        let mut hosts: Vec<_> = names
            .iter()
            .map(|(name, known)| DnsHost {
                name: name.clone(),
                ttl: known.due.map_or(Duration::ZERO, |due| due.saturating_duration_since(now)),
                addresses: known.addresses.clone(),
            })
            .collect();
        hosts.sort_by(|one, other| one.name.cmp(&other.name));
        hosts
    }

    fn known(&self, name: &str) -> Known {
        let mut names = self.shared.names.lock();
        if !names.contains_key(name) {
            if names.len() >= NAMES_MAX {
                let now = Instant::now();
                names.retain(|_, known| known.under_way.is_some() || known.due.is_some_and(|due| due > now));
            }
            names.insert(name.to_owned(), Name::unknown());
        }
        let Some(known) = names.get_mut(name) else {
            // It was put there above.
            return Known::Answer(Err(DnsFault::NoAddress));
        };
        if known.due.is_some_and(|due| Instant::now() < due) {
            return Known::Answer(known.take_turn());
        }
        let under_way = known.under_way.get_or_insert_with(|| self.look_up(name)).clone();
        // While a name is looked up again its last addresses serve, so that a slow resolver delays nobody.
        if known.addresses.is_empty() { Known::Wait(under_way) } else { Known::Answer(known.take_turn()) }
    }

    /// Begins a lookup that nobody can cancel.
    fn look_up(&self, name: &str) -> watch::Receiver<()> {
        let (sender, receiver) = watch::channel(());
        let dns = self.clone();
        let name = name.to_owned();
        tokio::spawn(async move {
            let found = (dns.shared.resolver)(name.clone()).await;
            dns.learn(&name, found);
            // Only after what was learned can be seen.
            drop(sender);
        });
        receiver
    }

    fn learn(&self, name: &str, found: io::Result<Vec<IpAddr>>) {
        let options = *self.shared.options.lock();
        let found = match found {
            Ok(addresses) if addresses.is_empty() => Err(DnsFault::NoAddress),
            Ok(mut addresses) => {
                addresses.sort_unstable();
                addresses.dedup();
                addresses.truncate(ADDRESSES_MAX);
                Ok(addresses)
            }
            Err(error) => Err(DnsFault::LookupFailed(error.to_string())),
        };
        let mut changed = false;
        if let Some(known) = self.shared.names.lock().get_mut(name) {
            known.under_way = None;
            match found {
                Ok(addresses) => {
                    changed = !known.addresses.is_empty() && known.addresses != addresses;
                    known.addresses = addresses;
                    known.fault = None;
                    known.due = Some(Instant::now() + options.max_ttl.max(TTL_MIN));
                }
                Err(fault) => {
                    known.fault = Some(fault);
                    known.due = Some(Instant::now() + options.nxdomain_ttl.max(TTL_MIN));
                }
            }
        }
        if changed {
            self.shared.changes.send_modify(|count| *count += 1);
        }
    }
}

enum Known {
    Answer(Result<Vec<IpAddr>, DnsFault>),
    Wait(watch::Receiver<()>),
}

impl Name {
    fn unknown() -> Name {
        Name { addresses: Vec::new(), fault: None, next: 0, due: None, under_way: None }
    }

    fn take_turn(&mut self) -> Result<Vec<IpAddr>, DnsFault> {
        if self.addresses.is_empty() {
            return Err(self.fault.clone().unwrap_or(DnsFault::NoAddress));
        }
        let mut turn = self.addresses.clone();
        turn.rotate_left(self.next % self.addresses.len());
        self.next = self.next.wrapping_add(1);
        Ok(turn)
    }
}

/// Names beyond this push out those whose time is over.
const NAMES_MAX: usize = 4096;
/// More addresses of one name are not kept.
const ADDRESSES_MAX: usize = 256;
/// A time of 0 would make those who wait for the same lookup ask again one after the other.
const TTL_MIN: Duration = Duration::from_millis(100);
