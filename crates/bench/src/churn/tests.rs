//! Claims about `churn`, each as small as it can be.

use super::*;
use crate::canned;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SHORT: Window = Window { warm_up: Duration::from_millis(20), measured: Duration::from_millis(100) };

fn door(address: SocketAddr) -> Door {
    Door { address, user: "u".into(), database: "d".into(), sql: "select 1".into() }
}

#[test]
fn each_visit_is_a_connection_with_one_answer() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || canned::serve(&listener, 1));
    let tally = run(&door(address), 5, 2, SHORT, &Stop::default()).unwrap();
    assert!(tally.latencies.count() > 5, "{} visits", tally.latencies.count());
    assert_eq!(tally.trouble, Trouble::default());
    assert_eq!(tally.until.since(tally.from), SHORT.measured);
}

#[test]
fn who_is_turned_away_is_trouble_and_comes_again() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let came = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&came);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            seen.fetch_add(1, Ordering::Relaxed);
            drop(stream);
        }
    });
    let tally = run(&door(address), 2, 1, SHORT, &Stop::default()).unwrap();
    assert_eq!(tally.latencies.count(), 0);
    assert!(tally.trouble.count > 2 && came.load(Ordering::Relaxed) > 2, "{:?}", tally.trouble);
}

#[test]
fn nobody_at_the_door_is_trouble_and_ends() {
    let address = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let tally = run(&door(address), 2, 1, SHORT, &Stop::default()).unwrap();
    assert_eq!(tally.latencies.count(), 0);
    assert!(tally.trouble.count > 0);
}
