//! LISTEN and NOTIFY in transaction mode, against real servers: nobody keeps a server for it, nothing is lost.
//!
//! Channels are named after their test: they are shared by all that use the database.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use oracle::{LIMIT, TRANSACTION, USER, pooler};
use testkit::message::{self, bind, execute, parse, query, sync};
use testkit::{Event, Howdah, HowdahOptions, Message, Raw, Row, Version, cell, eventually_shown};

fn options() -> HowdahOptions {
    pooler(Version::wanted()).setting("default_pool_size", "1")
}

/// Channel and payload.
type Note = (String, String);

/// A client that keeps what it is notified of.
struct Client {
    raw: Raw,
    notes: VecDeque<Note>,
    warnings: Vec<String>,
    /// The process id of the last notification.
    process_id: u32,
}

impl Client {
    fn new(howdah: &Howdah) -> Client {
        let raw = howdah.session(USER, TRANSACTION);
        Client { raw, notes: VecDeque::new(), warnings: Vec::new(), process_id: 0 }
    }

    fn listening(howdah: &Howdah, channel: &str) -> Client {
        let mut client = Client::new(howdah);
        client.sql(&format!("listen {channel}"));
        client
    }

    fn take(&mut self, message: &Message) -> bool {
        match message.tag {
            b'A' => {
                self.process_id = message.int32_at(0).expect("a process id") as u32;
                let text = String::from_utf8_lossy(&message.body[4..]).into_owned();
                let mut parts = text.split('\0').map(str::to_owned);
                self.notes.push_back((parts.next().expect("a channel"), parts.next().expect("a payload")));
                true
            }
            b'N' => {
                self.warnings.push(message.text());
                true
            }
            _ => false,
        }
    }

    /// Sends, and gives what is answered besides notifications.
    #[track_caller]
    fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Vec<Message> {
        self.raw.send(bytes);
        let mut messages = Vec::new();
        loop {
            let message = self.raw.recv();
            if !self.take(&message) {
                messages.push(message);
                if messages.last().is_some_and(|message| message.tag == b'Z') {
                    return messages;
                }
            }
        }
    }

    #[track_caller]
    fn sql(&mut self, text: &str) -> Vec<Row> {
        let messages = self.ask(query(text));
        let error = messages.iter().find(|message| message.tag == b'E');
        assert!(error.is_none(), "{text}: {:?}", error.map(Message::text));
        message::rows(&messages)
    }

    /// Runs SQL that fails.
    #[track_caller]
    fn fail(&mut self, text: &str) {
        let messages = self.ask(query(text));
        assert!(messages.iter().any(|message| message.tag == b'E'), "{text} does not fail");
    }

    /// The next notification, waited for.
    #[track_caller]
    fn hear(&mut self) -> Note {
        let deadline = Instant::now() + LIMIT;
        while self.notes.is_empty() {
            match self.raw.next(deadline.saturating_duration_since(Instant::now())) {
                Event::Message(message) => assert!(self.take(&message), "unexpected {}", message.letter()),
                other => panic!("no notification but {other:?}; seen: {}", self.raw.seen()),
            }
        }
        self.notes.pop_front().expect("one was heard")
    }

    #[track_caller]
    fn hears(&mut self, channel: &str, payload: &str) {
        assert_eq!(self.hear(), (channel.to_owned(), payload.to_owned()));
    }
}

fn notify(howdah: &Howdah, channel: &str, payload: &str) {
    Client::new(howdah).sql(&format!("notify {channel}, '{payload}'"));
}

fn listener(howdah: &Howdah) -> Vec<(String, String)> {
    let rows = howdah.admin("show listeners");
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.into_iter().next().expect("one")
}

/// Whether any client keeps a server, which none does for long that has asked nothing.
#[track_caller]
fn kept(howdah: &Howdah, expected: bool) {
    eventually_shown(howdah, "show servers", |rows| {
        expected == rows.iter().any(|row| cell(row, "state") == Some("active"))
    });
}

#[test]
fn clients_listen_while_others_use_the_only_server() {
    let howdah = options().start();
    let mut one = Client::listening(&howdah, "only_a");
    let mut two = Client::listening(&howdah, "only_b");
    two.sql("listen only_a");
    let mut other = Client::new(&howdah);
    for round in 0..20 {
        other.sql("select 1");
        other.sql(&format!("begin; notify only_a, '{round}'; select 1; commit"));
        other.sql(&format!("select pg_notify('only_b', '{round}')"));
        one.hears("only_a", &round.to_string());
        two.hears("only_a", &round.to_string());
        two.hears("only_b", &round.to_string());
        assert_eq!(two.sql("select 7"), [[Some("7".to_owned())]]);
    }
    kept(&howdah, false);
    let listener = listener(&howdah);
    assert_eq!(cell(&listener, "clients"), Some("2"));
    assert_eq!(cell(&listener, "channels"), Some("2"));
    assert_eq!(cell(&listener, "state"), Some("listening"));
}

#[test]
fn nobody_else_inherits_a_channel() {
    let howdah = options().start();
    let _one = Client::listening(&howdah, "inherits");
    let mut other = Client::new(&howdah);
    for _ in 0..5 {
        assert_eq!(other.sql("select pg_listening_channels()"), Vec::<Row>::new());
        other.sql("notify inherits");
    }
    assert_eq!(other.notes, []);
}

#[test]
fn what_is_rolled_back_was_never_sent_and_never_listened_to() {
    let howdah = options().start();
    let mut own = Client::listening(&howdah, "back_a");
    let mut other = Client::new(&howdah);
    other.sql("begin; notify back_a, 'no'; rollback");
    other.sql("begin; savepoint s; notify back_a, 'no'; rollback to s; commit");
    other.fail("begin; notify back_a, 'no'; select 1/0; commit");
    other.sql("rollback");

    own.sql("begin; listen back_b; rollback");
    own.sql("begin; savepoint s; listen back_c; rollback to s; commit");
    own.fail("listen back_d; select 1/0");
    own.sql("begin; unlisten back_a; rollback");
    own.sql("begin; savepoint s; unlisten *; rollback to s; commit");
    own.sql("begin");
    own.sql("listen back_e");
    own.fail("select 1/0");
    own.sql("commit");
    for channel in ["back_b", "back_c", "back_d", "back_e"] {
        other.sql(&format!("notify {channel}"));
    }
    other.sql("notify back_a, 'yes'");
    own.hears("back_a", "yes");

    own.sql("begin; savepoint s; listen back_f; release s; unlisten back_a; commit");
    other.sql("notify back_a");
    other.sql("notify back_f, 'yes'");
    own.hears("back_f", "yes");
}

#[test]
fn a_notification_waits_for_the_end_of_a_transaction() {
    let howdah = options().setting("default_pool_size", "2").start();
    let mut own = Client::listening(&howdah, "waits");
    let mut witness = Client::listening(&howdah, "waits");
    own.sql("begin");
    notify(&howdah, "waits", "one");
    witness.hears("waits", "one");
    own.sql("select 1");
    notify(&howdah, "waits", "two");
    witness.hears("waits", "two");
    own.sql("select 1");
    assert_eq!(own.notes, []);
    own.sql("commit");
    own.hears("waits", "one");
    own.hears("waits", "two");
}

#[test]
fn what_is_sent_while_a_transaction_only_wants_to_listen_is_not_for_it() {
    let howdah = options().setting("default_pool_size", "2").start();
    let mut witness = Client::listening(&howdah, "early");
    let mut own = Client::new(&howdah);
    own.sql("begin");
    own.sql("listen early");
    notify(&howdah, "early", "before");
    witness.hears("early", "before");
    own.sql("select 1");
    own.sql("commit");
    notify(&howdah, "early", "after");
    let first = own.hear();
    // What was on its way while the COMMIT was may be either side of it, as in PostgreSQL.
    assert!(first.1 == "after" || own.hear().1 == "after");
}

#[test]
fn nothing_is_lost_from_the_moment_that_listen_is_answered() {
    let howdah = options().setting("default_pool_size", "3").start();
    let mut other = Client::new(&howdah);
    for round in 0..100 {
        let channel = format!("moment_{}", round % 7);
        let mut own = Client::listening(&howdah, &channel);
        other.sql(&format!("notify {channel}, '{round}'"));
        own.hears(&channel, &round.to_string());
        if round % 3 == 0 {
            own.sql("unlisten *");
            own.sql(&format!("listen {channel}"));
            other.sql(&format!("notify {channel}, 'again {round}'"));
            own.hears(&channel, &format!("again {round}"));
        }
    }
}

#[test]
fn the_order_of_a_channel_is_kept() {
    let howdah = options().setting("default_pool_size", "2").start();
    let mut listeners: Vec<Client> = (0..3).map(|_| Client::listening(&howdah, "ordered")).collect();
    let mut other = Client::new(&howdah);
    for transaction in 0..50 {
        other.sql("begin");
        for number in 0..20 {
            other.sql(&format!("notify ordered, '{}'", transaction * 20 + number));
        }
        other.sql("commit");
    }
    for client in &mut listeners {
        for number in 0..1000 {
            client.hears("ordered", &number.to_string());
        }
        client.sql("select 1");
        assert_eq!(client.notes, [], "nothing comes twice");
    }
}

#[test]
fn a_client_hears_itself() {
    let howdah = options().start();
    let mut own = Client::listening(&howdah, "itself");
    own.sql("notify itself, 'one'");
    own.hears("itself", "one");
    own.sql("begin; notify itself, 'two'; notify itself, 'two'; notify itself, 'three'; commit");
    own.hears("itself", "two");
    own.hears("itself", "three");
    own.sql("listen itself");
    own.sql("notify itself, 'four'");
    own.hears("itself", "four");
    own.sql("select 1");
    assert_eq!(own.notes, []);
}

#[test]
fn names_and_payloads_are_as_postgresql_has_them() {
    let howdah = options().start();
    let mut own = Client::new(&howdah);
    let mut other = Client::new(&howdah);
    let long = "n".repeat(70);
    own.sql(&format!(r#"listen "A ""b"" C"; listen FoLdEd; listen "Folded"; listen "ünï"; listen {long}"#));
    other.sql(r#"notify "A ""b"" C", 'quoted'"#);
    own.hears("A \"b\" C", "quoted");
    other.sql("notify FOLDED, 'folded'");
    own.hears("folded", "folded");
    other.sql("notify \"Folded\", 'not folded'");
    own.hears("Folded", "not folded");
    other.sql("notify ünï, 'zwölf'");
    own.hears("ünï", "zwölf");
    other.sql(&format!("notify {long}, 'cut'"));
    own.hears(&long[..63], "cut");
    let payload = "p".repeat(7999);
    other.sql(&format!("notify folded, '{payload}'"));
    own.hears("folded", &payload);
    own.fail("listen \"\"");
    own.fail("listen a.b");
    own.sql("unlisten \"Folded\"");
    other.sql("notify \"Folded\"");
    other.sql("notify folded, 'still'");
    own.hears("folded", "still");
    kept(&howdah, false);
}

#[test]
fn each_client_reads_in_its_own_encoding() {
    let howdah = options().setting("default_pool_size", "2").start();
    let mut unicode = Client::listening(&howdah, "encoded");
    let login = testkit::Login::new(USER, TRANSACTION).parameter("client_encoding", "LATIN1");
    let mut latin = howdah.login(&login);
    latin.sql("listen encoded");
    notify(&howdah, "encoded", "é");
    unicode.hears("encoded", "é");
    let message = latin.recv();
    assert_eq!((message.tag, &message.body[4..]), (b'A', &b"encoded\0\xe9\0"[..]));
    assert_eq!(howdah.admin("show listeners").len(), 2);
    // A name that the server may fold or cut in its own way is listened to by the client itself.
    latin.send(message::message(b'Q', b"listen \xe9\0"));
    latin.until_ready();
    kept(&howdah, true);
    let mut other = howdah.login(&login);
    other.send(message::message(b'Q', b"select pg_notify('\xe9', 'self')\0"));
    other.until_ready();
    assert_eq!(&latin.recv().body[4..], b"\xe9\0self\0");
}

#[test]
fn the_extended_protocol_listens_too() {
    let howdah = options().start();
    let mut own = Client::new(&howdah);
    let listen = [parse("", "listen extended", &[]), bind("", "", &[]), execute("", 0)].concat();
    let select = [parse("", "select 1", &[]), bind("", "", &[]), execute("", 0), sync()].concat();
    own.ask([select.clone(), listen.clone(), select].concat());
    own.ask([]);
    notify(&howdah, "extended", "one");
    own.hears("extended", "one");
    own.ask([parse("u", "unlisten extended", &[]), bind("", "u", &[]), execute("", 0), sync()].concat());
    own.ask([parse("l", "listen extended_2", &[]), bind("", "l", &[]), execute("", 0), sync()].concat());
    notify(&howdah, "extended", "no");
    notify(&howdah, "extended_2", "two");
    own.hears("extended_2", "two");
    own.ask([bind("", "u", &[]), execute("", 0), sync()].concat());
    own.ask([bind("", "l", &[]), execute("", 0), sync()].concat());
    kept(&howdah, false);
}

#[test]
fn a_lost_listener_is_there_again_and_its_clients_are_told() {
    let howdah = options().start();
    let mut own = Client::listening(&howdah, "lost");
    let mut other = Client::new(&howdah);
    for loss in 1..=3 {
        let pid = cell(&listener(&howdah), "remote_pid").expect("a pid").to_owned();
        other.sql(&format!("select pg_terminate_backend({pid})"));
        eventually_shown(&howdah, "show listeners", |rows| {
            rows.iter().any(|row| {
                cell(row, "losses") == Some(&loss.to_string()) && cell(row, "state") == Some("listening")
            })
        });
        while own.warnings.len() < loss {
            let message = own.raw.recv();
            assert!(own.take(&message));
        }
        other.sql(&format!("notify lost, '{loss}'"));
        own.hears("lost", &loss.to_string());
    }
    assert!(own.warnings[0].contains("notifications may have been lost"), "{:?}", own.warnings);
    assert_eq!(own.sql("select 1").len(), 1);
}

#[test]
fn a_lost_listener_can_end_its_clients() {
    let howdah = options().setting("listen_lost", "close").start();
    let mut own = Client::listening(&howdah, "ended");
    let mut other = Client::new(&howdah);
    let pid = cell(&listener(&howdah), "remote_pid").expect("a pid").to_owned();
    other.sql(&format!("select pg_terminate_backend({pid})"));
    let last = own.raw.expect_closed();
    assert!(last.contains("08006"), "{last}");
    assert_eq!(other.sql("select 1").len(), 1);
}

#[test]
fn two_hundred_listeners_need_one_connection() {
    let howdah = options().setting("default_pool_size", "2").setting("max_client_conn", "300").start();
    let mut clients: Vec<Client> =
        (0..200).map(|number| Client::listening(&howdah, &format!("many_{}", number % 20))).collect();
    let mut other = Client::new(&howdah);
    for channel in 0..20 {
        other.sql(&format!("notify many_{channel}, 'to all'"));
    }
    for (number, client) in clients.iter_mut().enumerate() {
        client.hears(&format!("many_{}", number % 20), "to all");
    }
    let listener = listener(&howdah);
    assert_eq!(cell(&listener, "clients"), Some("200"));
    assert_eq!(cell(&listener, "channels"), Some("20"));
    assert!(howdah.admin("show servers").len() <= 2);
}

#[test]
fn a_listener_ends_when_nobody_listens_any_more() {
    let howdah = options().start();
    let mut one = Client::listening(&howdah, "ends_a");
    let two = Client::listening(&howdah, "ends_b");
    let mut three = Client::listening(&howdah, "ends_c");
    let mut four = Client::listening(&howdah, "ends_c");
    let clients = |count: &'static str| {
        move |rows: &[Vec<(String, String)>]| rows.iter().all(|row| cell(row, "clients") == Some(count))
    };
    one.sql("unlisten ends_a");
    eventually_shown(&howdah, "show listeners", clients("3"));
    two.raw.close();
    eventually_shown(&howdah, "show listeners", clients("2"));
    three.sql("discard all");
    eventually_shown(&howdah, "show listeners", clients("1"));
    notify(&howdah, "ends_c", "last");
    four.hears("ends_c", "last");
    four.sql("unlisten *");
    eventually_shown(&howdah, "show listeners", |rows| rows.is_empty());
    for client in [&mut one, &mut three, &mut four] {
        client.sql("select 1");
        assert_eq!(client.notes, []);
    }
    let mut again = Client::listening(&howdah, "ends_a");
    notify(&howdah, "ends_a", "again");
    again.hears("ends_a", "again");
}

#[test]
fn a_client_that_never_reads_is_closed_and_costs_no_more_than_its_limit() {
    let howdah = options().setting("notify_queue_size_max", "200000").start();
    let mut deaf = Client::listening(&howdah, "deaf");
    let mut own = Client::listening(&howdah, "deaf");
    let mut other = Client::new(&howdah);
    let payload = "p".repeat(7000);
    let mut sent = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    while !howdah.log().contains("notify_queue_size_max") {
        assert!(Instant::now() < deadline, "it is never closed");
        other.sql(&format!("select pg_notify('deaf', '{payload}' || n) from generate_series(1, 20) n"));
        sent += 20;
        for _ in 0..20 {
            assert_eq!(own.hear().0, "deaf", "the other one hears all");
        }
    }
    assert!(sent > 20);
    assert_eq!(cell(&listener(&howdah), "clients"), Some("1"));
    // Whatever was written before its end, the end is there.
    let _ = deaf.raw.expect_closed();
}

#[test]
fn a_client_in_a_long_transaction_is_bounded_too() {
    let howdah =
        options().setting("default_pool_size", "2").setting("notify_queue_size_max", "100000").start();
    let mut own = Client::listening(&howdah, "bounded");
    own.sql("begin");
    let mut other = Client::new(&howdah);
    let payload = "p".repeat(7000);
    other.sql(&format!("select pg_notify('bounded', '{payload}' || n) from generate_series(1, 20) n"));
    let last = own.raw.expect_closed();
    assert!(last.contains("53400"), "{last}");
}

#[test]
fn without_fanout_a_client_keeps_its_server_while_it_listens() {
    let howdah = options().setting("default_pool_size", "2").setting("listen_fanout", "0").start();
    let mut own = Client::listening(&howdah, "kept");
    assert_eq!(howdah.admin("show listeners").len(), 0);
    kept(&howdah, true);
    notify(&howdah, "kept", "one");
    own.hears("kept", "one");
    own.sql("unlisten kept");
    kept(&howdah, false);
}

#[test]
fn with_more_channels_than_allowed_a_client_listens_by_itself() {
    let howdah = options().setting("default_pool_size", "2").setting("listen_channels_max", "2").start();
    let mut own = Client::listening(&howdah, "more_a");
    own.sql("listen more_b");
    kept(&howdah, false);
    own.sql("listen more_c");
    kept(&howdah, true);
    for channel in ["more_a", "more_b", "more_c"] {
        notify(&howdah, channel, "x");
    }
    let mut heard: Vec<String> = (0..3).map(|_| own.hear().0).collect();
    heard.sort();
    assert_eq!(heard, ["more_a", "more_b", "more_c"]);
    own.sql("unlisten more_c");
    notify(&howdah, "more_c", "no");
    notify(&howdah, "more_a", "y");
    own.hears("more_a", "y");
}

#[test]
fn a_listener_that_cannot_connect_lets_clients_listen_by_themselves() {
    let postgres = testkit::Postgres::start(testkit::PostgresOptions::new(Version::wanted()));
    let connection = postgres.connection("postgres");
    let howdah = oracle::pooler_to(&connection).user("poor", "").setting("default_pool_size", "2").start();
    postgres.sql("create role poor login connection limit 1");
    let mut own = howdah.session("poor", TRANSACTION);
    own.sql("listen poor");
    kept(&howdah, true);
    testkit::eventually(LIMIT, || howdah.log().contains("too many connections for role"));
}

#[test]
fn where_state_is_refused_listen_is_not() {
    let howdah = options().setting("session_state", "refuse").start();
    let mut own = Client::listening(&howdah, "refuse");
    own.fail("select pg_advisory_lock(1)");
    notify(&howdah, "refuse", "one");
    own.hears("refuse", "one");
}

#[test]
fn pause_lets_go_of_the_database_and_resume_listens_again() {
    let postgres = testkit::Postgres::start(testkit::PostgresOptions::new(Version::wanted()));
    let howdah = oracle::pooler_to(&postgres.connection("postgres")).start();
    let mut own = Client::listening(&howdah, "paused");
    howdah.admin("pause");
    testkit::eventually(LIMIT, || postgres.sessions_in("postgres") <= 1);
    howdah.admin("resume");
    eventually_shown(&howdah, "show listeners", |rows| {
        rows.iter().any(|row| cell(row, "state") == Some("listening"))
    });
    while own.warnings.is_empty() {
        let message = own.raw.recv();
        assert!(own.take(&message));
    }
    notify(&howdah, "paused", "one");
    own.hears("paused", "one");
}

#[test]
fn reconnect_connects_the_listener_anew() {
    let howdah = options().start();
    let mut own = Client::listening(&howdah, "reconnect");
    let before = cell(&listener(&howdah), "remote_pid").map(str::to_owned);
    howdah.admin("reconnect");
    eventually_shown(&howdah, "show listeners", |rows| {
        rows.iter().any(|row| {
            cell(row, "state") == Some("listening") && cell(row, "remote_pid") != before.as_deref()
        })
    });
    while own.warnings.is_empty() {
        let message = own.raw.recv();
        assert!(own.take(&message));
    }
    notify(&howdah, "reconnect", "one");
    own.hears("reconnect", "one");
}

#[test]
fn a_listener_follows_its_database() {
    let new = testkit::Postgres::start(testkit::PostgresOptions::new(Version::wanted()));
    let old = testkit::Postgres::shared(Version::wanted());
    let howdah = oracle::pooler_to(&old.connection("postgres")).start();
    let mut own = Client::listening(&howdah, "follows");
    let text = howdah.ini_text().replace(&old.connection("postgres"), &new.connection("postgres"));
    howdah.reload_ini(&text);
    while own.warnings.is_empty() {
        let message = own.raw.recv();
        assert!(own.take(&message));
    }
    new.sql("notify follows, 'new'");
    own.hears("follows", "new");
}

#[test]
fn a_restart_of_the_server_is_survived() {
    let postgres = testkit::Postgres::start(testkit::PostgresOptions::new(Version::wanted()));
    let howdah = oracle::pooler_to(&postgres.connection("postgres")).start();
    let mut own = Client::listening(&howdah, "restart");
    kept(&howdah, false);
    postgres.kill();
    postgres.start_again();
    while own.warnings.is_empty() {
        let message = own.raw.recv();
        assert!(own.take(&message));
    }
    postgres.sql("notify restart, 'again'");
    own.hears("restart", "again");
}

/// Each job is done once, and no worker sleeps while there is one.
#[test]
fn a_job_queue_does_each_job_once() {
    const WORKERS: usize = 8;
    const JOBS: usize = 300;
    let howdah = options().setting("default_pool_size", "3").start();
    let mut boss = Client::new(&howdah);
    boss.sql("drop table if exists listen_jobs; create table listen_jobs (id int primary key, done_by int)");
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let howdah = &howdah;
                scope.spawn(move || work(howdah, worker))
            })
            .collect();
        for job in 0..JOBS {
            boss.sql(&format!("begin; insert into listen_jobs values ({job}); notify listen_jobs; commit"));
        }
        boss.sql(&format!(
            "begin; insert into listen_jobs select -n from generate_series(1, {WORKERS}) n; \
             notify listen_jobs; commit"
        ));
        workers.into_iter().map(|worker| worker.join().expect("a worker")).sum::<usize>()
    });
    assert_eq!(done, JOBS);
    let left = boss.sql("select count(*) from listen_jobs where done_by is null");
    assert_eq!(left, [[Some("0".to_owned())]]);
    boss.sql("drop table listen_jobs");
    kept(&howdah, false);
}

/// As above, while the connection that listens is lost again and again: a worker that is warned looks for itself.
#[test]
fn a_job_queue_outlives_its_listener() {
    const WORKERS: usize = 4;
    const JOBS: usize = 60;
    let howdah = options().setting("default_pool_size", "3").start();
    let mut boss = Client::new(&howdah);
    boss.sql("drop table if exists listen_lost; create table listen_lost (id int primary key, done_by int)");
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let howdah = &howdah;
                scope.spawn(move || work_on(howdah, "listen_lost", worker))
            })
            .collect();
        for job in 0..JOBS {
            boss.sql(&format!("begin; insert into listen_lost values ({job}); notify listen_lost; commit"));
            if job % 10 == 0 {
                boss.sql(
                    "select pg_terminate_backend(pid) from pg_stat_activity \
                     where application_name = 'howdah listener' and query like '%listen_lost%'",
                );
            }
        }
        boss.sql(&format!(
            "begin; insert into listen_lost select -n from generate_series(1, {WORKERS}) n; \
             notify listen_lost; commit"
        ));
        workers.into_iter().map(|worker| worker.join().expect("a worker")).sum::<usize>()
    });
    assert_eq!(done, JOBS);
    boss.sql("drop table listen_lost");
}

/// Takes jobs until one of a negative number says that it is over.
fn work(howdah: &Howdah, worker: usize) -> usize {
    work_on(howdah, "listen_jobs", worker)
}

fn work_on(howdah: &Howdah, table: &str, worker: usize) -> usize {
    let mut own = Client::listening(howdah, table);
    let mut done = 0;
    loop {
        own.notes.clear();
        own.warnings.clear();
        let job = own.sql(&format!(
            "update {table} set done_by = {worker} where id = (select id from {table} \
             where done_by is null order by id desc limit 1 for update skip locked) returning id"
        ));
        match job.first().and_then(|row| row[0].clone()) {
            Some(id) if id.starts_with('-') => return done,
            Some(_) => done += 1,
            // Nothing to do: it sleeps until it hears, or is warned that it may not have heard.
            None => {
                while own.notes.is_empty() && own.warnings.is_empty() {
                    let message = own.raw.recv();
                    assert!(own.take(&message));
                }
            }
        }
    }
}
