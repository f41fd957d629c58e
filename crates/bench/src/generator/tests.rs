//! Claims about `generator`, each as small as it can be.

use super::*;
use crate::canned;
use std::io::{Read, Write};
use std::net::TcpListener;

fn door(address: SocketAddr) -> Door {
    Door { address, user: "u".into(), database: "d".into(), sql: "select 1".into() }
}

fn canned_server() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || canned::serve(&listener, 1));
    address
}

/// A server that does to each connection what `handle` does, one after the other.
fn scripted(handle: impl Fn(std::net::TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(handle));
    address
}

const SHORT: Window = Window { warm_up: Duration::from_millis(20), measured: Duration::from_millis(100) };
const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn transactions_are_counted_only_inside_the_window() {
    let mut swarm = Swarm::log_in(&door(canned_server()), 7, LIMIT, &Stop::default()).unwrap();
    assert_eq!((swarm.logged_in(), swarm.take_trouble()), (7, Trouble::default()));
    let tally = swarm.run(SHORT, &Stop::default()).unwrap();
    assert!(tally.latencies.count() > 0);
    assert_eq!(tally.until.since(tally.from), SHORT.measured);
    assert_eq!(tally.trouble, Trouble::default());
    let shut = Window { warm_up: Duration::from_millis(20), measured: Duration::ZERO };
    assert_eq!(swarm.run(shut, &Stop::default()).unwrap().latencies.count(), 0);
}

#[test]
fn every_thread_takes_its_share() {
    let tally = closed_loop(&door(canned_server()), 5, 3, SHORT, &Stop::default()).unwrap();
    assert!(tally.latencies.count() > 0);
    assert_eq!(tally.trouble, Trouble::default());
}

#[test]
fn idle_clients_have_asked_once() {
    let mut swarm = Swarm::log_in(&door(canned_server()), 100, LIMIT, &Stop::default()).unwrap();
    swarm.ask_once(LIMIT, &Stop::default()).unwrap();
    assert_eq!((swarm.logged_in(), swarm.take_trouble()), (100, Trouble::default()));
}

#[test]
fn a_refused_login_is_trouble_with_its_text() {
    let address = scripted(|mut stream| {
        let mut packet = [0; 100];
        let _ = stream.read(&mut packet);
        let refusal = protocol::message(b'E', &[b"SFATAL\0C53300\0Mtoo many clients\0\0"]);
        let _ = stream.write_all(&refusal);
    });
    let mut swarm = Swarm::log_in(&door(address), 3, LIMIT, &Stop::default()).unwrap();
    assert_eq!(swarm.logged_in(), 0);
    let trouble = swarm.take_trouble();
    assert_eq!(trouble.first.as_deref(), Some("53300 too many clients"));
    // The refusal and the close that follows it, three times.
    assert_eq!(trouble.count, 6);
}

#[test]
fn nobody_listening_is_trouble_and_no_hang() {
    let address = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let mut swarm = Swarm::log_in(&door(address), 2, LIMIT, &Stop::default()).unwrap();
    assert_eq!((swarm.logged_in(), swarm.take_trouble().count), (0, 2));
    assert_eq!(swarm.run(SHORT, &Stop::default()).unwrap().latencies.count(), 0);
}

#[test]
fn a_client_that_gets_no_reply_is_given_up() {
    let address = scripted(|mut stream| {
        let mut talk = canned::Talk::default();
        let (mut packet, mut greeting) = ([0; 100], Vec::new());
        let count = stream.read(&mut packet).unwrap();
        talk.hear(&packet[..count], &mut greeting).unwrap();
        stream.write_all(&greeting).unwrap();
        // Takes queries until the client gives up, and says nothing.
        while stream.read(&mut packet).is_ok_and(|count| count > 0) {}
    });
    let mut swarm = Swarm::log_in(&door(address), 1, LIMIT, &Stop::default()).unwrap();
    swarm.ask_once(Duration::from_millis(50), &Stop::default()).unwrap();
    assert_eq!((swarm.logged_in(), swarm.take_trouble().count), (0, 1));
}
