//! Metrics, as a scraper asks for them: after real traffic, through a failover, and from who means no good.
#![allow(clippy::disallowed_methods)] // scrapers are threads, and connections that say nothing

mod stage;
#[path = "stage/trio.rs"]
mod trio;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stage::{bare, holder, server_for};
use testkit::exposition::{self, Exposition};
use testkit::message::query;
use testkit::{Howdah, HowdahOptions, Login, StopMode, eventually, free_port, http};
use trio::{Trio, hinted, place, reader};

const LIMIT: Duration = Duration::from_secs(30);
const OPEN: &str = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";

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
    /// The head and the body of an answer.
    fn ask(&self, accept: &str) -> (String, String) {
        let request =
            format!("GET /metrics HTTP/1.1\r\nHost: h\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
        let bytes = http::exchange(self.port, request.as_bytes()).expect("an answer");
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        (head.to_lowercase(), body.to_owned())
    }

    #[track_caller]
    fn scrape(&self) -> Exposition {
        let (head, body) = self.ask(OPEN);
        assert!(head.starts_with("http/1.1 200 ") && head.contains("application/openmetrics-text"), "{head}");
        exposition::parse(&body, true).unwrap_or_else(|fault| panic!("{fault}\n{body}"))
    }

    /// Waits until a sum is this; an answer may be a moment old.
    #[track_caller]
    fn until(&self, name: &str, labels: &[(&str, &str)], wanted: f64) {
        let mut last = 0.0;
        let done = testkit::wait::holds_within(LIMIT, || {
            last = self.scrape().sum(name, labels);
            last == wanted
        });
        assert!(done, "{name} {labels:?} is {last}, not {wanted}");
    }
}

#[test]
fn what_clients_did_is_told_in_both_formats() {
    let name = "metrics_basic";
    let server = server_for(name);
    let hostile = "q\"b c";
    let options = bare()
        .database(name, &server.connection(name))
        .database(&format!("'{hostile}'"), &server.connection(name))
        .user(name, stage::PASSWORD)
        .setting("pool_mode", "transaction")
        .setting("max_client_conn", "77");
    let stand = start(options);
    let database = [("database", name)];
    let mut client = stand.howdah.session(name, name);
    let before = stand.scrape();
    for _ in 0..10 {
        client.sql("select repeat('x', 100)");
    }
    let mut other = stand.howdah.session(name, hostile);
    other.sql("begin");
    other.sql("select 1");
    stand.until(
        "howdah_pool_queries_total",
        &database,
        before.sum("howdah_pool_queries_total", &database) + 10.0,
    );
    stand.until("howdah_pool_clients", &[("database", hostile), ("state", "active")], 1.0);
    let told = stand.scrape();
    assert_eq!(told.sum("howdah_pool_transactions_total", &database), 10.0);
    assert!(told.sum("howdah_pool_sent_bytes_total", &database) > 1_000.0);
    assert!(told.sum("howdah_pool_received_bytes_total", &database) > 200.0);
    assert!(told.sum("howdah_pool_query_seconds_total", &database) > 0.0);
    assert_eq!(told.sum("howdah_pool_client_logins_total", &database), 1.0);
    assert_eq!(told.sum("howdah_pool_servers", &[("database", name), ("state", "idle")]), 1.0);
    assert_eq!(told.sum("howdah_pool_servers", &[("database", hostile), ("state", "active")]), 1.0);
    assert_eq!(told.sum("howdah_database_servers", &database), 1.0);
    assert_eq!(told.sum("howdah_clients_limit", &[]), 77.0);
    assert_eq!(told.sum("howdah_series_left_out", &[]), 0.0);
    assert_eq!(told.samples["howdah_build_info"].len(), 1);
    assert!(!told.samples["howdah_build_info"][0].0["io_backend"].is_empty());
    assert!(told.sum("process_resident_memory_bytes", &[]) > 1e6 && told.sum("process_open_fds", &[]) > 5.0);
    assert!(told.sum("process_start_time_seconds", &[]) > 1.6e9);
    // What counts never falls.
    for (name, samples) in before.samples.iter().filter(|(name, _)| before.is_counter(name)) {
        for (labels, value) in samples {
            let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (&**name, &**value)).collect();
            assert!(told.sum(name, &labels) >= *value, "{name} {labels:?}");
        }
    }
    let (head, body) = stand.ask("*/*");
    assert!(
        head.contains("content-type: text/plain; version=0.0.4") && head.contains("cache-control: no-store")
    );
    let plain = exposition::parse(&body, false).unwrap_or_else(|fault| panic!("{fault}\n{body}"));
    assert_eq!(plain.samples.keys().collect::<Vec<_>>(), told.samples.keys().collect::<Vec<_>>());
    other.sql("commit");
}

#[test]
fn pins_and_listeners_are_told_and_applications_are_not() {
    let name = "metrics_pins";
    let server = server_for(name);
    let options = bare()
        .database(name, &server.connection(name))
        .user(name, stage::PASSWORD)
        .setting("pool_mode", "transaction");
    let stand = start(options);
    let login =
        |who: &str| Login::new(name, name).password(stage::PASSWORD).parameter("application_name", who);
    let mut clients: Vec<_> = (0..3).map(|who| stand.howdah.login(&login(&format!("secret{who}")))).collect();
    for client in &mut clients {
        client.sql("create temporary table mine (n int)");
    }
    let pinned = [("database", name), ("statement", "CREATE")];
    stand.until("howdah_pins", &pinned, 3.0);
    assert_eq!(stand.scrape().find("howdah_pins", &pinned).len(), 1, "one line for all applications");
    stand.until("howdah_pool_servers_pinned", &[("database", name)], 3.0);
    clients[0].sql("drop table mine");
    stand.until("howdah_pins", &pinned, 2.0);
    stand.until("howdah_pins_begun_total", &pinned, 3.0);
    clients[0].sql("listen news");
    stand.until("howdah_listener_clients", &[("database", name)], 1.0);
    clients[0].sql("notify news");
    stand.until("howdah_listener_notifications_total", &[("database", name)], 1.0);
    assert!(!stand.ask(OPEN).1.contains("secret"));
}

#[test]
fn clusters_and_routes_are_told_through_a_failover() {
    let trio = Trio::start();
    trio.primary.sql("create table t (n int)");
    trio.settle();
    let stand =
        start(trio.pooler(
            "read_write_split=statement consistency=eventual host_weights=1,2,3 primary_read_weight=4",
        ));
    let mut client = reader(&trio, &stand.howdah);
    client.sql("insert into t values (1)");
    let nodes = [&trio.primary, &trio.standbys[0], &trio.standbys[1]].map(place);
    stand.until("howdah_routes_total", &[("database", "db"), ("to", "primary"), ("reason", "write")], 1.0);
    stand.until("howdah_node_up", &[], 3.0);
    stand.until("howdah_node_role", &[("role", "primary"), ("node", &nodes[0])], 1.0);
    stand.until("howdah_node_role", &[("role", "standby")], 2.0);
    stand.until("howdah_node_timeline", &[], 3.0);
    eventually(LIMIT, || stand.scrape().find("howdah_node_lag_seconds", &[]).len() == 2);
    let told = stand.scrape();
    assert_eq!(told.sum("howdah_node_weight", &[("node", &nodes[2])]), 3.0);
    assert_eq!(told.sum("howdah_node_weight", &[("node", "primary")]), 4.0);
    assert_eq!(told.sum("howdah_cluster_failovers_total", &[("databases", "db")]), 0.0);
    // Pools for reads are told apart by where they are.
    assert_eq!(
        told.find("howdah_pool_transactions_total", &[("database", "db"), ("standby", &nodes[1])]).len(),
        1
    );
    trio.primary.stop(StopMode::Immediate);
    stand.until("howdah_pool_held", &[("database", "db"), ("standby", "")], 1.0);
    stand.until("howdah_node_up", &[("node", &nodes[0])], 0.0);
    stand.until("howdah_cluster_primary_losses_total", &[], 1.0);
    client.send(query("insert into t values (2)"));
    stand.until("howdah_pool_clients", &[("state", "waiting")], 1.0);
    trio.standbys[0].promote();
    assert_eq!(client.answers(1), "C(INSERT 0 1) ZI");
    stand.until("howdah_cluster_failovers_total", &[("databases", "db")], 1.0);
    stand.until("howdah_pool_held", &[("database", "db"), ("standby", "")], 0.0);
    stand.until("howdah_node_role", &[("role", "primary"), ("node", &nodes[1])], 1.0);
    drop(hinted(&mut client));
}

#[test]
fn a_scrape_waits_for_no_server_and_no_client() {
    let name = "metrics_wait";
    let server = server_for(name);
    let stand = start(bare().database(name, &server.connection(name)).user(name, stage::PASSWORD));
    let mut waiting = stand.howdah.session(name, name);
    waiting.sql("select 1");
    let mut console = stand.howdah.console();
    console.sql(&format!("PAUSE {name}"));
    waiting.send(query("select 1"));
    stand.until("howdah_pool_clients", &[("database", name), ("state", "waiting")], 1.0);
    stand.until("howdah_database_paused", &[("database", name)], 1.0);
    let first = stand.scrape().sum("howdah_pool_max_wait_seconds", &[("database", name)]);
    eventually(LIMIT, || stand.scrape().sum("howdah_pool_max_wait_seconds", &[("database", name)]) > first);
    console.sql(&format!("RESUME {name}"));
    waiting.until_ready();
    let held = holder(&stand.howdah, name);
    stand.howdah.signal(testkit::Signal::Terminate);
    stand.until("howdah_draining", &[], 1.0);
    drop((held, waiting, console));
    stand.howdah.wait_exit(LIMIT);
}

#[test]
fn many_scrapers_and_hostile_ones_disturb_nobody() {
    let name = "metrics_hostile";
    let server = server_for(name);
    let stand = start(bare().database(name, &server.connection(name)).user(name, stage::PASSWORD));
    for method in ["POST", "PUT", "DELETE", "BREW", "get"] {
        assert_eq!(
            http::request(stand.port, method, "/metrics", "").expect("an answer").status,
            405,
            "{method}"
        );
    }
    assert_eq!(http::request(stand.port, "HEAD", "/metrics", "").expect("an answer").body, "");
    for path in ["/metrics/", "/metrics/x", "/Metrics", "//metrics"] {
        assert_eq!(http::request(stand.port, "GET", path, "").expect("an answer").status, 404, "{path}");
    }
    assert_eq!(http::request(stand.port, "GET", "/metrics?name[]=x", "").expect("an answer").status, 200);
    let long = [&b"GET /metrics?"[..], &[b'x'; 100_000], b" HTTP/1.1\r\n\r\n"].concat();
    let accepts = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "Accept: x\r\n".repeat(500));
    let binary = b"GET /metrics HTTP/1.1\r\nAccept: \xff\x00\r\n\r\n";
    for bytes in [&long[..], accepts.as_bytes(), &binary[..], b"GET /metrics\r\n\r\n"] {
        let answer = http::exchange(stand.port, bytes).expect("it closes");
        assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    }
    // Some begin and do not go on, some ask and do not read.
    let open = || TcpStream::connect(("127.0.0.1", stand.port)).expect("a queue");
    let mut slow: Vec<TcpStream> = (0..20).map(|_| open()).collect();
    let mut deaf: Vec<TcpStream> = (0..20).map(|_| open()).collect();
    for (number, stream) in slow.iter_mut().enumerate() {
        stream.write_all(&b"GET /metrics HTTP/1.1\r\nHost: h\r\n"[..number + 1]).expect("open");
    }
    for stream in &mut deaf {
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("open");
    }
    let mut client = stand.howdah.session(name, name);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let mut count = 0_u32;
            loop {
                client.sql("select 1");
                count += 1;
                if over.load(Ordering::SeqCst) {
                    return count;
                }
            }
        });
        let scrapers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| (0..20).for_each(|_| drop(stand.scrape())))).collect();
        let results: Vec<_> = scrapers.into_iter().map(|scraper| scraper.join()).collect();
        over.store(true, Ordering::SeqCst);
        let count = traffic.join().expect("no error");
        results.into_iter().for_each(|result| result.expect("a strict answer each time"));
        stand.until("howdah_pool_queries_total", &[("database", name)], f64::from(count));
    });
    for stream in &mut slow {
        stream.set_read_timeout(Some(LIMIT)).expect("open");
        let mut answer = Vec::new();
        // It is closed when its time is over.
        stream.read_to_end(&mut answer).expect("closed, not silent");
        assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    }
    drop(deaf);
}
