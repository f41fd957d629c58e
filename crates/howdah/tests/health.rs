//! The health endpoint, asked as load balancers ask, and as nobody should.
#![allow(clippy::disallowed_methods)] // connections that say nothing

mod stage;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use stage::{bare, holder, server_for};
use testkit::{
    Howdah, HowdahOptions, Login, PostgresOptions, Signal, StopMode, Version, eventually, free_port, http,
};

const LIMIT: Duration = Duration::from_secs(30);

struct Stand {
    howdah: Howdah,
    port: u16,
}

fn start(options: HowdahOptions) -> Stand {
    let port = free_port();
    let howdah = options.setting("health_listen", &format!("127.0.0.1:{port}")).start();
    Stand { howdah, port }
}

impl Stand {
    fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let answer = http::request(self.port, method, path, "").expect("an answer");
        (answer.status, answer.body)
    }

    #[track_caller]
    fn check(&self, path: &str, status: u16, body: &str) {
        assert_eq!(self.ask("GET", path), (status, body.to_owned()), "{path}");
    }
}

#[test]
fn ready_paused_and_draining_are_told_apart() {
    let name = "health_states";
    let server = server_for(name);
    let stand = start(bare().database(name, &server.connection(name)).user(name, stage::PASSWORD));
    for path in ["/", "/ready", "/?from=haproxy"] {
        stand.check(path, 200, "ready");
    }
    stand.check("/live", 200, "live");
    stand.check(&format!("/db/{name}"), 200, "ready");
    let mut console = stand.howdah.console();
    console.sql(&format!("DISABLE {name}"));
    stand.check(&format!("/db/{name}"), 503, "disabled");
    stand.check("/ready", 200, "ready");
    console.sql(&format!("ENABLE {name}"));
    console.sql(&format!("PAUSE {name}"));
    stand.check(&format!("/db/{name}"), 503, "paused");
    console.sql(&format!("RESUME {name}"));
    console.sql("PAUSE");
    stand.check("/", 503, "paused");
    stand.check(&format!("/db/{name}"), 503, "paused");
    stand.check("/live", 200, "live");
    console.sql("RESUME");
    stand.check("/", 200, "ready");
    // It goes on answering until the last client has left.
    let client = holder(&stand.howdah, name);
    stand.howdah.signal(Signal::Terminate);
    eventually(LIMIT, || stand.ask("GET", "/ready") == (503, "draining".to_owned()));
    stand.check("/live", 200, "live");
    stand.check(&format!("/db/{name}"), 503, "draining");
    drop((client, console));
    stand.howdah.wait_exit(LIMIT);
    assert!(http::request(stand.port, "GET", "/live", "").is_err(), "nobody is there");
}

#[test]
fn requests_that_load_balancers_make_are_answered_and_others_refused() {
    let name = "health_requests";
    let server = server_for(name);
    let stand = start(bare().database("'a b/c'", &server.connection(name)).user(name, stage::PASSWORD));
    assert_eq!(stand.ask("OPTIONS", "/"), (200, "ready".to_owned()));
    assert_eq!(stand.ask("HEAD", "/"), (200, String::new()));
    for method in ["POST", "PUT", "DELETE", "BREW"] {
        assert_eq!(stand.ask(method, "/").0, 405, "{method}");
    }
    stand.check("/db/a%20b%2fc", 200, "ready");
    stand.check("/db/nosuch", 404, "unknown");
    for path in ["/db/", "/db/a/b", "/db/%", "/db/%2", "/db/%+1", "/db/%ff", "/x", "/ready/", "/../live"] {
        stand.check(path, 404, "not found");
    }
}

#[test]
fn a_database_is_ready_while_one_of_its_hosts_is_what_it_wants() {
    let server = PostgresOptions::new(Version::wanted()).start();
    let entry = |attrs: &str| format!("{} target_session_attrs={attrs}", server.connection("postgres"));
    let options = bare()
        .database("rw", &entry("read-write"))
        .database("ro", &entry("standby"))
        .user("postgres", "")
        .setting("monitor_user", "postgres");
    let stand = start(options);
    stand.howdah.login(&Login::new("postgres", "rw")).sql("select 1");
    stand.check("/db/rw", 200, "ready");
    stand.check("/db/ro", 503, "no fitting host");
    server.stop(StopMode::Fast);
    eventually(LIMIT, || stand.ask("GET", "/db/rw") == (503, "no fitting host".to_owned()));
    stand.check("/ready", 200, "ready");
    server.start_again();
    eventually(LIMIT, || stand.ask("GET", "/db/rw").0 == 200);
}

#[test]
fn nothing_that_is_sent_there_hangs_or_grows_it() {
    let name = "health_hostile";
    let server = server_for(name);
    let stand = start(bare().database(name, &server.connection(name)).user(name, stage::PASSWORD));
    let long = [&b"GET /"[..], &[b'x'; 100_000], b" HTTP/1.1\r\n\r\n"].concat();
    let many: String = (0..200).map(|at| format!("h{at}: x\r\n")).collect();
    let many = format!("GET / HTTP/1.1\r\n{many}\r\n");
    for bytes in [&b"\x00\x00\x00\x08\x04\xd2\x16\x2f"[..], b"GET\r\n\r\n", &long, many.as_bytes()] {
        let answer = http::exchange(stand.port, bytes).expect("it closes");
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(!text.contains(" 200 "), "{text}");
    }
    // More than there is room for: the surplus is closed at once, and the rest after their time.
    let mut idle: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(("127.0.0.1", stand.port)).expect("a queue")).collect();
    for stream in &mut idle {
        stream.set_read_timeout(Some(LIMIT)).expect("an open socket");
        let _ = stream.write_all(b"GET / HT");
    }
    for stream in &mut idle {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    }
    eventually(LIMIT, || http::request(stand.port, "GET", "/", "").is_ok_and(|answer| answer.status == 200));
    stand.howdah.session(name, name).sql("select 1");
}

#[test]
fn an_address_that_is_taken_keeps_it_from_starting() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let (status, log) = bare().setting("health_listen", &address).start_and_fail();
    assert!(!status.success());
    assert!(log.contains(&format!("cannot listen on {address}")), "{log}");
}
