//! Claims about `relay`, each as small as it can be.

use super::*;
use crate::canned;
use crate::session::Session;
use std::net::Shutdown;

fn relay_to(server: SocketAddr, in_volleys: bool) -> SocketAddr {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || serve(vec![Route { listener, server }], in_volleys));
    address
}

/// With a call for each send, and with volleys where there are any.
fn ways() -> impl Iterator<Item = bool> {
    [false, true].into_iter().filter(|in_volleys| !in_volleys || Volley::new(0).is_ok())
}

#[test]
fn sessions_pass_through_unchanged() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let server = listener.local_addr().unwrap();
    std::thread::spawn(move || canned::serve(&listener, 1));
    for in_volleys in ways() {
        let address = relay_to(server, in_volleys);
        for _ in 0..3 {
            let mut sessions = [0, 1].map(|_| Session::open(address, "u", "d").unwrap());
            for session in &mut sessions {
                assert_eq!(session.query("select 1").unwrap(), ["0"]);
                assert_eq!(session.query("select 2").unwrap(), ["0"]);
            }
        }
    }
}

/// More than both sockets hold, towards a server that reads late: nothing is lost, and the end arrives.
#[test]
fn many_bytes_and_the_end_pass_to_a_slow_reader() {
    ways().for_each(check_slow_reader);
}

fn check_slow_reader(in_volleys: bool) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = relay_to(listener.local_addr().unwrap(), in_volleys);
    let sent: Vec<u8> = (0..20_000_000u32).map(|number| (number % 251) as u8).collect();
    let expected = sent.clone();
    let writer = std::thread::spawn(move || {
        let mut client = std::net::TcpStream::connect(address).unwrap();
        client.write_all(&sent).unwrap();
        // An answer of one byte says that all has arrived.
        client.read_exact(&mut [0]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        client.read(&mut [0]).map_or(0, |count| count)
    });
    let (mut server, _) = listener.accept().unwrap();
    let mut received = vec![0; expected.len()];
    server.read_exact(&mut received).unwrap();
    assert!(received == expected);
    server.write_all(b"!").unwrap();
    assert_eq!(server.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(writer.join().unwrap(), 0);
}

#[test]
fn a_server_that_is_not_there_closes_the_client() {
    let address = {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        relay_to(listener.local_addr().unwrap(), false)
    };
    assert!(Session::open(address, "u", "d").is_err());
}
