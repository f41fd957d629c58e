//! Listening on real addresses and Unix sockets.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use testkit::temp::{TempDir, free_port};

use super::*;

fn options(addresses: &[&str], port: u16) -> ListenOptions {
    ListenOptions {
        addresses: addresses.iter().map(|&address| address.to_owned()).collect(),
        port,
        backlog: 128,
        reuse_port: false,
        defer_accept: true,
        unix: None,
    }
}

fn unix(dir: &str) -> UnixOptions {
    UnixOptions { dir: dir.to_owned(), mode: 0o640, group: None }
}

fn with_unix(unix: UnixOptions, port: u16) -> ListenOptions {
    ListenOptions { unix: Some(unix), ..options(&[], port) }
}

fn addresses(listeners: &[Listener]) -> Vec<SocketAddr> {
    let tcp = listeners.iter().filter_map(|listener| match listener {
        Listener::Tcp(listener) => Some(listener.local_addr().unwrap()),
        Listener::Unix { .. } => None,
    });
    tcp.collect()
}

#[test]
fn address_is_listened_on() {
    let listeners = listen(&options(&["127.0.0.1"], free_port())).unwrap();
    let address = addresses(&listeners)[0];
    TcpStream::connect(address).unwrap();
    assert_eq!(listeners[0].to_string(), address.to_string());
}

#[test]
fn star_means_every_family() {
    let listeners = listen(&options(&["*"], free_port())).unwrap();
    let all = addresses(&listeners);
    assert!(all.iter().any(|address| address.is_ipv4() && address.ip().is_unspecified()));
    assert!(all.len() <= 2);
}

#[test]
fn name_is_looked_up() {
    let listeners = listen(&options(&["localhost"], free_port())).unwrap();
    assert!(addresses(&listeners).iter().all(|address| address.ip().is_loopback()));
}

#[test]
fn address_in_use_is_a_fault() {
    let port = free_port();
    let _first = listen(&options(&["127.0.0.1"], port)).unwrap();
    let second = listen(&options(&["127.0.0.1"], port));
    assert!(matches!(second, Err(ListenFault::Address(..))), "{second:?}");
}

#[test]
fn reuse_port_lets_two_listen() {
    let shared = ListenOptions { reuse_port: true, ..options(&["127.0.0.1"], free_port()) };
    let _first = listen(&shared).unwrap();
    listen(&shared).unwrap();
}

#[test]
fn address_of_another_machine_is_a_fault() {
    let fault = listen(&options(&["192.0.2.1"], free_port())).unwrap_err();
    assert!(fault.to_string().contains("192.0.2.1"), "{fault}");
    let fault = listen(&options(&["no.such.name.invalid"], free_port())).unwrap_err();
    assert!(fault.to_string().contains("no.such.name.invalid"), "{fault}");
}

#[test]
fn unix_socket_has_its_mode_and_answers() {
    let dir = TempDir::new();
    let name = dir.path().to_str().unwrap();
    let listeners = listen(&with_unix(unix(name), 6432)).unwrap();
    let path = dir.join(".s.PGSQL.6432");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    UnixStream::connect(&path).unwrap();
    assert_eq!(listeners[0].to_string(), format!("unix:{}", path.display()));
}

#[test]
fn unix_socket_that_answers_is_respected() {
    let dir = TempDir::new();
    let options = with_unix(unix(dir.path().to_str().unwrap()), 6432);
    let first = listen(&options).unwrap();
    let fault = listen(&options).unwrap_err();
    assert!(fault.to_string().starts_with("unix socket is in use, cannot continue"), "{fault}");
    drop(first);
    // What the first one left behind is stale now.
    listen(&options).unwrap();
}

#[test]
fn lock_file_is_respected() {
    let dir = TempDir::new();
    fs::write(dir.join(".s.PGSQL.6432.lock"), "1").unwrap();
    let fault = listen(&with_unix(unix(dir.path().to_str().unwrap()), 6432)).unwrap_err();
    assert!(matches!(fault, ListenFault::UnixLocked(_)), "{fault}");
}

#[test]
fn file_that_is_no_socket_is_not_removed() {
    let dir = TempDir::new();
    let path = dir.join(".s.PGSQL.6432");
    fs::write(&path, "mine").unwrap();
    // Connecting to it is refused, as for a stale socket.
    assert!(listen(&with_unix(unix(dir.path().to_str().unwrap()), 6432)).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn unknown_group_is_a_fault() {
    let dir = TempDir::new();
    let group = Some("no such group".to_owned());
    let unix = UnixOptions { group, ..unix(dir.path().to_str().unwrap()) };
    assert!(matches!(listen(&with_unix(unix, 6432)), Err(ListenFault::Group(..))));
}

#[test]
fn socket_file_of_a_successor_stays() {
    let dir = TempDir::new();
    let listeners = listen(&with_unix(unix(dir.path().to_str().unwrap()), 6432)).unwrap();
    let Listener::Unix { socket_file: Some(file), .. } = &listeners[0] else { panic!("no file") };
    let path = dir.join(".s.PGSQL.6432");
    let other = dir.join("other");
    let _successor = std::os::unix::net::UnixListener::bind(&other).unwrap();
    let own = dir.join("own");
    fs::rename(&path, &own).unwrap();
    fs::rename(&other, &path).unwrap();
    file.remove();
    assert!(path.exists());
    fs::rename(&own, &path).unwrap();
    file.remove();
    assert!(!path.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn abstract_socket_has_no_file() {
    let name = format!("@howdah-test-{}", std::process::id());
    let options = with_unix(unix(&name), 6432);
    let _listeners = listen(&options).unwrap();
    assert!(matches!(listen(&options), Err(ListenFault::UnixInUse(_))));
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    socket.connect(&unix_address(format!("{name}/.s.PGSQL.6432").as_bytes()).unwrap()).unwrap();
}
