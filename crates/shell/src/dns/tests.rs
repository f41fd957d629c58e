//! Names under a resolver that the tests command, and a clock that stands still.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::{Dns, DnsFault, DnsOptions};

const OPTIONS: DnsOptions =
    DnsOptions { max_ttl: Duration::from_secs(15), nxdomain_ttl: Duration::from_secs(5) };

/// A resolver whose answer the test sets, and which answers only as often as the test lets it.
struct Fake {
    dns: Dns,
    answer: Arc<Mutex<Option<Vec<IpAddr>>>>,
    asked: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

fn fake() -> Fake {
    let answer: Arc<Mutex<Option<Vec<IpAddr>>>> = Arc::default();
    let asked: Arc<AtomicUsize> = Arc::default();
    let gate = Arc::new(Semaphore::new(1000));
    let (given, counted, gated) = (Arc::clone(&answer), Arc::clone(&asked), Arc::clone(&gate));
    let dns = Dns::with_resolver(OPTIONS, move |_| {
        let (given, counted, gated) = (Arc::clone(&given), Arc::clone(&counted), Arc::clone(&gated));
        Box::pin(async move {
            counted.fetch_add(1, Ordering::Relaxed);
            gated.acquire().await.unwrap().forget();
            given.lock().clone().ok_or_else(|| std::io::Error::other("no answer"))
        })
    });
    Fake { dns, answer, asked, gate }
}

impl Fake {
    fn set(&self, last_bytes: &[u8]) {
        *self.answer.lock() = Some(addresses(last_bytes));
    }

    fn fail(&self) {
        *self.answer.lock() = None;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Lets what was begun come to its end; the clock of these tests stands still otherwise.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    async fn first(&self) -> IpAddr {
        self.dns.resolve("db").await.unwrap()[0]
    }
}

fn addresses(last_bytes: &[u8]) -> Vec<IpAddr> {
    last_bytes.iter().map(|byte| IpAddr::from([10, 0, 0, *byte])).collect()
}

#[tokio::test(start_paused = true)]
async fn literal_is_its_own_answer() {
    let fake = fake();
    assert_eq!(fake.dns.resolve("10.0.0.9").await.unwrap(), addresses(&[9]));
    assert_eq!(fake.dns.resolve("::1").await.unwrap(), ["::1".parse::<IpAddr>().unwrap()]);
    assert_eq!((fake.asked(), fake.dns.snapshot().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn addresses_take_turns_and_are_asked_for_once() {
    let fake = fake();
    fake.set(&[2, 1, 3]);
    let mut turns = Vec::new();
    for _ in 0..4 {
        turns.push(fake.first().await);
    }
    assert_eq!(turns, addresses(&[1, 2, 3, 1]));
    assert_eq!(fake.dns.resolve("db").await.unwrap(), addresses(&[2, 3, 1]));
    assert_eq!(fake.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_share_one_lookup() {
    let fake = fake();
    fake.set(&[1]);
    fake.gate.forget_permits(1000);
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let dns = fake.dns.clone();
            tokio::spawn(async move { dns.resolve("db").await })
        })
        .collect();
    fake.settle().await;
    assert_eq!(fake.asked(), 1);
    fake.gate.add_permits(1);
    for task in waiting {
        assert_eq!(task.await.unwrap().unwrap(), addresses(&[1]));
    }
    assert_eq!(fake.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn lookup_outlives_who_asked() {
    let fake = fake();
    fake.set(&[1]);
    fake.gate.forget_permits(1000);
    let gave_up = tokio::time::timeout(Duration::from_secs(1), fake.dns.resolve("db")).await;
    assert!(gave_up.is_err());
    fake.gate.add_permits(1);
    assert_eq!(fake.first().await, addresses(&[1])[0]);
    assert_eq!(fake.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn old_answer_serves_while_a_new_one_is_fetched() {
    let fake = fake();
    fake.set(&[1]);
    let mut changes = fake.dns.changes();
    fake.first().await;
    fake.set(&[2]);
    tokio::time::advance(OPTIONS.max_ttl).await;
    assert_eq!(fake.first().await, addresses(&[1])[0]);
    fake.settle().await;
    assert_eq!(fake.first().await, addresses(&[2])[0]);
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    assert_eq!(fake.dns.addresses("db").unwrap(), addresses(&[2]));
    assert_eq!(fake.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn failure_is_no_verdict_on_known_addresses() {
    let fake = fake();
    fake.set(&[1]);
    fake.first().await;
    fake.fail();
    for _ in 0..3 {
        tokio::time::advance(OPTIONS.max_ttl).await;
        fake.settle().await;
        assert_eq!(fake.first().await, addresses(&[1])[0]);
        fake.settle().await;
    }
    assert_eq!(fake.asked(), 4);
}

#[tokio::test(start_paused = true)]
async fn failure_is_kept_for_its_own_time() {
    let fake = fake();
    let fault = DnsFault::LookupFailed("no answer".into());
    assert_eq!(fake.dns.resolve("db").await, Err(fault.clone()));
    fake.set(&[1]);
    assert_eq!(fake.dns.resolve("db").await, Err(fault));
    assert_eq!(fake.asked(), 1);
    tokio::time::advance(OPTIONS.nxdomain_ttl).await;
    assert_eq!(fake.first().await, addresses(&[1])[0]);
}

#[tokio::test(start_paused = true)]
async fn name_without_address_is_a_fault() {
    let fake = fake();
    fake.set(&[]);
    assert_eq!(fake.dns.resolve("db").await, Err(DnsFault::NoAddress));
    assert_eq!(fake.dns.addresses("db"), None);
}

#[tokio::test(start_paused = true)]
async fn snapshot_shows_names_with_the_time_left() {
    let fake = fake();
    fake.set(&[1]);
    fake.first().await;
    tokio::time::advance(Duration::from_secs(5)).await;
    let hosts = fake.dns.snapshot();
    assert_eq!((hosts[0].name.as_str(), &hosts[0].addresses), ("db", &addresses(&[1])));
    assert!(hosts[0].ttl <= Duration::from_secs(10) && hosts[0].ttl > Duration::from_secs(9));
}

#[tokio::test]
async fn system_knows_localhost() {
    let found = Dns::new(OPTIONS).resolve("localhost").await.unwrap();
    assert!(found.iter().all(IpAddr::is_loopback));
}
