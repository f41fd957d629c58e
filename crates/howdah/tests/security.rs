//! Clients that lie, guess, flood and snoop get nothing, and take nothing from the others.
#![allow(clippy::disallowed_methods)] // clients are threads, and files are looked at

mod stage;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use stage::{LIMIT, PASSWORD, bare, check_fatal, holder, login, pooler, refused, server_for, wait_for_pool};
use testkit::howdah::{ADMIN, ADMIN_PASSWORD, STATS, STATS_PASSWORD};
use testkit::message::{self, query};
use testkit::{
    CancelKey, End, Event, FakeServer, Howdah, Login, Raw, eventually, eventually_shown, reply, send_cancel,
};

/// A SASLInitialResponse whose inner length is a lie.
fn sasl_initial(mechanism: &[u8], length: i32, data: &[u8]) -> Vec<u8> {
    let mut body = mechanism.to_vec();
    body.extend_from_slice(&length.to_be_bytes());
    body.extend_from_slice(data);
    message::message(b'p', &body)
}

#[test]
fn malformed_sasl_messages_are_refused_and_nobody_else_notices() {
    let name = "security_sasl";
    let howdah = pooler(name).setting("auth_type", "scram-sha-256").start();
    let mut other = howdah.login(&login(name));
    let scram = b"SCRAM-SHA-256\0";
    let first = b"n,,n=,r=fixedfixed";
    let mut lies: Vec<Vec<u8>> = [-2, -1, 0, 1, first.len() as i32 + 1, 65_536, i32::MAX, i32::MIN]
        .iter()
        .map(|&length| sasl_initial(scram, length, first))
        .collect();
    lies.extend([
        sasl_initial(b"SCRAM-SHA-256", 5, b"n,,n="),
        sasl_initial(b"NONSENSE\0", 5, b"n,,n="),
        sasl_initial(b"SCRAM-SHA-256-PLUS\0", first.len() as i32, first),
        sasl_initial(scram, 3, b"n,,"),
        sasl_initial(scram, 18, b"p=tls-unique,,r=xx"),
        message::message(b'p', b""),
        message::message(b'p', b"SCRAM-SHA-256\0\0"),
        message::message(b'p', &vec![b'x'; 60_000]),
        message::message_of_length(b'p', 3, b""),
        message::message_of_length(b'p', -1, b""),
        message::message_of_length(b'p', i32::MAX, b"SCRAM"),
        query("select 1"),
        message::sync(),
    ]);
    for lie in &lies {
        let mut raw = Raw::connect(howdah.port());
        login(name).send_startup(&mut raw);
        assert_eq!(raw.recv().letter(), "R(10)");
        raw.send(lie);
        let told = raw.expect_closed();
        assert!(told.is_empty() || told == "E(08P01)" || told == "E(28P01)", "{lie:?}: {told}");
        assert_eq!(other.value("select 1"), "1");
    }
    // The second message of the exchange, wrong in every piece.
    for proof in ["", "x", "c=biws", "c=biws,r=wrong,p=AAAA", "c=eSws,r=,p=", ",,,,", "m=x,c=biws", "\u{ff}"]
    {
        let mut raw = Raw::connect(howdah.port());
        login(name).send_startup(&mut raw);
        raw.recv();
        raw.send(message::sasl_initial("SCRAM-SHA-256", first));
        assert_eq!(raw.recv().letter(), "R(11)");
        raw.send(message::sasl_response(proof.as_bytes()));
        assert!(raw.expect_closed().starts_with("E("), "{proof}: {}", raw.seen());
    }
    assert_eq!(other.value("select 1"), "1");
}

/// Every command that changes something, and the ways to look.
const ACTIONS: [&str; 16] = [
    "SET default_pool_size = 1",
    "RELOAD",
    "PAUSE",
    "PAUSE {db}",
    "RESUME",
    "SUSPEND",
    "KILL",
    "KILL {db}",
    "KILL_CLIENT {id}",
    "DISABLE {db}",
    "ENABLE {db}",
    "RECONNECT",
    "WAIT_CLOSE",
    "SHUTDOWN",
    "SHUTDOWN WAIT_FOR_SERVERS",
    "SHUTDOWN WAIT_FOR_CLIENTS",
];

const LOOKS: [&str; 19] = [
    "CLIENTS",
    "SERVERS",
    "SOCKETS",
    "ACTIVE_SOCKETS",
    "POOLS",
    "PINS",
    "PEER_POOLS",
    "DATABASES",
    "USERS",
    "PEERS",
    "LISTS",
    "STATS",
    "STATS_TOTALS",
    "STATS_AVERAGES",
    "TOTALS",
    "CONFIG",
    "VERSION",
    "STATE",
    "MEM",
];

#[test]
fn whoever_may_look_may_only_look() {
    let name = "security_roles";
    let howdah = pooler(name).setting("default_pool_size", "7").start();
    let mut client = holder(&howdah, name);
    let port = client.local_port().to_string();
    let id = howdah.admin_value("SHOW CLIENTS", &[("port", &port)], "id");
    let mut stats = howdah.login(&Login::new(STATS, "pgbouncer").password(STATS_PASSWORD));
    for action in ACTIONS {
        let command = action.replace("{db}", name).replace("{id}", &id);
        let refusal = stats.try_sql(&command).expect_err(&command);
        assert_eq!(
            (refusal.severity.as_str(), refusal.text.as_str()),
            ("ERROR", "admin access needed"),
            "{command}"
        );
        let parts = [message::parse("", &command, &[]), message::bind("", "", &[]), message::execute("", 0)];
        let answer = stats.ask([parts.concat(), message::sync()].concat());
        assert!(answer.contains("E(") && !answer.contains("C("), "{command}: {answer}");
    }
    for look in LOOKS {
        assert!(stats.ask(query(&format!("SHOW {look}"))).ends_with("C(SHOW) ZI"), "{look}");
    }
    assert!(stats.ask(query("SHOW FDS")).starts_with("E("), "descriptors and keys");
    assert_eq!(client.ask(query("commit")), "C(COMMIT) ZI");
    assert_eq!(howdah.admin_value("SHOW CONFIG", &[("key", "default_pool_size")], "value"), "7");
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
    for database in ["pgbouncer", "howdah"] {
        check_fatal(&refused(&howdah, &Login::new(name, database)), "42501", "not allowed");
    }
}

#[test]
fn wrong_password_opens_the_console_under_no_auth_type() {
    let name = "security_console";
    let server = server_for(name);
    for auth_type in ["plain", "md5", "scram-sha-256"] {
        let howdah = bare()
            .database(name, &format!("{} user={name}", server.connection(name)))
            .user(name, PASSWORD)
            .setting("auth_type", auth_type)
            .start();
        howdah.login(&login(name)).sql("select 1");
        for database in ["pgbouncer", "howdah"] {
            for (user, password) in
                [(ADMIN, PASSWORD), (ADMIN, "wrong"), (ADMIN, ""), ("pgbouncer", ""), ("root", "x")]
            {
                let refusal = refused(&howdah, &Login::new(user, database).password(password));
                assert_eq!(refusal.sqlstate, "28P01", "{auth_type}, {user}, {password:?}: {refusal:?}");
            }
            let admin = Login::new(ADMIN, database).password(ADMIN_PASSWORD);
            assert_eq!(howdah.login(&admin).table("SHOW VERSION").len(), 1);
            let known = Login::new(name, database).password(PASSWORD);
            assert_eq!(refused(&howdah, &known).text, "not allowed", "{auth_type}");
        }
    }
    // Nobody has to prove anything: then nobody but the administrators may do anything.
    let howdah = bare()
        .database(name, &format!("{} user={name}", server.connection(name)))
        .user(name, PASSWORD)
        .setting("auth_type", "any")
        .start();
    let mut anybody = howdah.session("anybody", "pgbouncer");
    assert_eq!(anybody.table("SHOW STATE").len(), 3);
    assert_eq!(anybody.try_sql("SHUTDOWN").expect_err("no right").text, "admin access needed");
}

/// Everything that a session has been sent, as text.
fn swallow(raw: &mut Raw, seen: &mut String) {
    loop {
        match raw.next(Duration::from_millis(50)) {
            Event::Message(message) => seen.push_str(&String::from_utf8_lossy(&message.body)),
            Event::End(_) | Event::Silence => return,
        }
    }
}

#[test]
fn no_secret_is_ever_logged_or_shown() {
    let name = "security_hush";
    let server = server_for(name);
    server.sql(&format!("alter role {name} password 'canary-clear'"));
    let verifier = server
        .session("postgres")
        .value(&format!("select rolpassword from pg_authid where rolname = '{name}'"));
    let (_, keys) = verifier.split_once("$4096:").expect("a SCRAM verifier");
    let howdah = bare()
        .database(name, &format!("{} user={name} password=canary-entry", server.connection(name)))
        .database("own", &server.connection(name))
        .user(name, "canary-clear")
        .user("verifier", &verifier)
        .setting("auth_type", "plain")
        .setting("verbose", "2")
        .setting("log_connections", "1")
        .argument("-v")
        .argument("-v")
        .start();
    let mut seen = String::new();
    assert_eq!(howdah.login(&Login::new(name, "own").password("canary-clear")).value("select 1"), "1");
    howdah.login(&Login::new(name, name).password("canary-clear")).sql("select 1");
    for (user, password) in [(name, "canary-wrong"), ("nobody", "canary-wrong"), ("verifier", "canary-wrong")]
    {
        seen.push_str(&refused(&howdah, &Login::new(user, name).password(password)).text);
    }
    let mut console = howdah.login(&Login::new(ADMIN, "pgbouncer").password(ADMIN_PASSWORD));
    for look in LOOKS.iter().chain(&["HELP", "FDS", "DNS_HOSTS", "DNS_ZONES"]) {
        console.send(query(&format!("SHOW {look}")));
    }
    for command in
        ["SET auth_query = 'canary-set'", "SET no_such = 'canary-set'", "RELOAD", "RECONNECT", "WAIT_CLOSE"]
    {
        console.send(query(command));
        swallow(&mut console, &mut seen);
    }
    // Mistakes beside secrets.
    let broken =
        howdah.ini_text().replace("password=canary-entry", "password=canary-entry prot=canary-broken");
    howdah.write_ini(&broken);
    fs::write(howdah.dir().join("userlist.txt"), "\"x\" \"canary-list\nbroken canary-line\n")
        .expect("own file");
    console.send(query("RELOAD"));
    swallow(&mut console, &mut seen);
    // Its own settings are shown to an administrator: that one is no secret.
    let seen = seen.replace("canary-set", "");
    let log = howdah.log().replace("canary-set", "");
    assert!(log.len() > 1000, "verbose, and nothing to be seen");
    for secret in ["canary", "admin-password", "stats-password", keys] {
        for (place, text) in [("log", &log), ("console", &seen)] {
            let found = text.lines().find(|line| line.contains(secret));
            assert_eq!(found, None, "{secret} in the {place}");
        }
    }
}

/// Names that nobody has, of all lengths and bytes that a name can have.
fn odd_name(number: usize) -> String {
    let mut state = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let length = 1 + number % 63;
    let mut name = String::new();
    while name.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        name.push(char::from(33 + (state % 94) as u8));
    }
    name
}

#[test]
fn names_of_databases_that_nobody_proved_anything_for_leave_nothing_behind() {
    let name = "security_names";
    let server = server_for(name);
    let howdah = bare()
        .database("*", &format!("host=127.0.0.1 port={}", server.port()))
        .setting("auth_type", "plain")
        .user(name, PASSWORD)
        .start();
    assert_eq!(howdah.login(&login(name)).value("select current_database()"), name);
    let admin = Login::new(ADMIN, "pgbouncer").password(ADMIN_PASSWORD);
    let mut console = howdah.login(&admin);
    let before = (console.table("SHOW DATABASES").len(), console.table("SHOW POOLS").len());
    let memory = howdah.rss_kb();
    std::thread::scope(|scope| {
        for seat in 0..4 {
            let howdah = &howdah;
            scope.spawn(move || {
                for number in 0..1000 {
                    let database = odd_name(seat * 1000 + number);
                    let refusal = refused(howdah, &Login::new(name, &database).password("wrong"));
                    assert_eq!(refusal.sqlstate, "28P01", "{database}");
                }
            });
        }
    });
    assert_eq!((console.table("SHOW DATABASES").len(), console.table("SHOW POOLS").len()), before);
    let grown = howdah.rss_kb().saturating_sub(memory);
    assert!(grown < 16 * 1024, "{grown} KB more");
    let long = "d".repeat(9000);
    assert_eq!(refused(&howdah, &Login::new(name, &long).password(PASSWORD)).severity, "FATAL");
    assert_eq!(howdah.login(&login(name)).value("select 1"), "1");
}

#[test]
fn many_databases_of_one_who_may_are_bounded_in_memory() {
    let fake = FakeServer::start(|session| {
        session.startup()?;
        session.send(&reply::error("FATAL", "3D000", "there is no such database"))
    });
    let howdah = bare()
        .database("*", &format!("host=127.0.0.1 port={}", fake.address().port()))
        .setting("server_login_retry", "0.1")
        .user("somebody", "")
        .start();
    let _warm = refused(&howdah, &Login::new("somebody", "first"));
    let memory = howdah.rss_kb();
    std::thread::scope(|scope| {
        for seat in 0..4 {
            let howdah = &howdah;
            scope.spawn(move || {
                for number in 0..250 {
                    let database = odd_name(seat * 250 + number);
                    let refusal = refused(howdah, &Login::new("somebody", &database));
                    assert!(refusal.sqlstate == "3D000", "{database}: {refusal:?}");
                }
            });
        }
    });
    let grown = howdah.rss_kb().saturating_sub(memory);
    assert!(grown < 32 * 1024, "{grown} KB more");
    assert!(!howdah.admin("SHOW VERSION").is_empty());
}

#[test]
fn guessed_cancel_keys_are_closed_without_a_word_like_right_ones() {
    let name = "security_cancel";
    let howdah = pooler(name).setting("log_disconnections", "0").start();
    let mut busy = howdah.session(name, name);
    let idle = howdah.session(name, name);
    busy.send(query("select pg_sleep(1.5)"));
    wait_for_pool(&howdah, name, &[("sv_active", "1")]);
    let before = howdah.log().lines().count();
    let key = busy.key.clone().expect("logged in");
    let silent = |key: &CancelKey| {
        let mut raw = Raw::connect(howdah.port());
        raw.send(message::cancel_request(key.pid, &key.secret));
        assert_eq!(raw.next(LIMIT), Event::End(End::Closed));
    };
    for guess in 0..1000_u32 {
        // The right process id, and secrets near and far.
        let mut secret = key.secret.clone();
        let last = secret.len() - 1;
        secret[last] ^= 1 + (guess % 255) as u8;
        secret[0] ^= (guess / 255) as u8;
        silent(&CancelKey { pid: key.pid, secret });
    }
    for secret in
        [vec![], key.secret[..3].to_vec(), [&key.secret[..], &[0]].concat(), vec![0; 256], vec![0; 300]]
    {
        let mut raw = Raw::connect(howdah.port());
        raw.send(message::cancel_request(key.pid, &secret));
        assert_eq!(raw.expect_closed(), "");
    }
    silent(&idle.key.clone().expect("logged in"));
    assert_eq!(busy.answers(1), "T D C(SELECT 1) ZI");
    let logged = howdah.log().lines().count() - before;
    assert!(logged < 100, "{logged} lines for a thousand guesses");
    busy.send(query("select pg_sleep(60)"));
    wait_for_pool(&howdah, name, &[("sv_active", "1")]);
    send_cancel(&howdah.port().into(), &key);
    let answer = busy.answers(1);
    assert!(message::is_canceled(&answer, 'I'), "{answer}");
}

#[test]
fn cancel_keys_are_random_in_every_byte() {
    let name = "security_keys";
    let howdah = pooler(name).start();
    let keys: Vec<Vec<u8>> = (0..40)
        .map(|_| howdah.session(name, name).key.clone().expect("logged in"))
        .map(|key| [&key.pid.to_be_bytes()[..], &key.secret].concat())
        .collect();
    for place in 0..8 {
        let mut bytes: Vec<u8> = keys.iter().map(|key| key[place]).collect();
        bytes.sort_unstable();
        bytes.dedup();
        assert!(bytes.len() > 20, "byte {place} has {} values in 40 keys", bytes.len());
    }
    let long = howdah.login(&login(name).protocol(3, 2));
    assert_eq!(long.key.clone().expect("logged in").secret.len(), 32);
}

#[test]
fn slow_strangers_keep_nobody_out_and_are_closed_in_time() {
    let name = "security_slow";
    let howdah = pooler(name)
        .setting("auth_type", "scram-sha-256")
        .setting("client_login_timeout", "3")
        .setting("max_client_conn", "1000")
        // The system's own queues are not what is looked at.
        .setting("tcp_defer_accept", "0")
        .setting("listen_backlog", "1000")
        .start();
    howdah.login(&login(name)).sql("select 1");
    let descriptors = howdah.open_files();
    let startup = message::startup((3, 0), &[("user", name), ("database", name)]);
    let start = Instant::now();
    let mut strangers: Vec<Raw> = (0..400).map(|_| Raw::connect(howdah.port())).collect();
    let mut sent = 0;
    // A byte at a time does not move the deadline.
    while start.elapsed() < Duration::from_millis(2500) {
        if sent + 1 < startup.len() {
            for raw in &mut strangers {
                let _ = raw.try_send(&startup[sent..=sent]);
            }
            sent += 1;
        }
        let login_start = Instant::now();
        assert_eq!(howdah.login(&login(name)).value("select 1"), "1");
        assert!(login_start.elapsed() < Duration::from_secs(1), "{:?}", login_start.elapsed());
    }
    for raw in &mut strangers {
        let told = raw.expect_closed();
        assert!(told.is_empty() || told == "E(08006)", "{told}");
    }
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}", start.elapsed());
    // The session's server stays in its pool.
    eventually(LIMIT, || howdah.open_files() <= descriptors + 3);
}

#[test]
fn strangers_beyond_login_connections_max_are_turned_away_and_leave_room_again() {
    let name = "security_strangers";
    let howdah = pooler(name)
        .setting("login_connections_max", "20")
        .setting("client_login_timeout", "2")
        .setting("tcp_defer_accept", "0")
        .start();
    let mut inside = howdah.session(name, name);
    let strangers: Vec<Raw> = (0..60).map(|_| Raw::connect(howdah.port())).collect();
    assert_eq!(inside.value("select 1"), "1");
    let console = Login::new(ADMIN, "pgbouncer").password(ADMIN_PASSWORD);
    // Who is in the console's own list gets in at the latest when the strangers' time is over.
    eventually(LIMIT, || Raw::try_login(howdah.port(), &console).is_ok());
    eventually(LIMIT, || Raw::try_login(howdah.port(), &login(name)).is_ok());
    drop(strangers);
    eventually_shown(&howdah, "SHOW LISTS", |rows| {
        rows.iter().any(|row| {
            testkit::cell(row, "list") == Some("login_clients") && testkit::cell(row, "items") == Some("0")
        })
    });
}

#[test]
fn unix_socket_has_the_mode_that_is_asked_for() {
    for (mode, expected) in [("0700", 0o700), ("0777", 0o777), ("0660", 0o660), ("0600", 0o600)] {
        let howdah = bare().setting("unix_socket_mode", mode).start();
        let is = |mode: u32| {
            fs::metadata(howdah.socket()).is_ok_and(|file| file.permissions().mode() & 0o7777 == mode)
        };
        eventually(LIMIT, || is(expected));
        // It stays so, and is made so again.
        assert_eq!(howdah.console().ask(query("RELOAD")), "C(RELOAD) ZI");
        assert!(is(expected), "{mode}");
    }
}

#[test]
fn large_queries_leave_no_memory_behind() {
    let name = "security_memory";
    let howdah = pooler(name).setting("default_pool_size", "2").setting("max_client_conn", "300").start();
    let mut sessions: Vec<Raw> = (0..60).map(|_| howdah.session(name, name)).collect();
    let text = "x".repeat(1_000_000);
    let sql = query(&format!("select length('{text}'), repeat('y', 1000000)"));
    assert_eq!(sessions[0].ask(&sql), "T D C(SELECT 1) ZI");
    let before = howdah.rss_kb();
    for raw in &mut sessions {
        assert_eq!(raw.ask(&sql), "T D C(SELECT 1) ZI");
    }
    let grown = howdah.rss_kb().saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KB more for 60 sessions");
    assert_eq!(sessions.len(), 60);
}

#[test]
fn other_protocols_and_noise_are_closed() {
    let name = "security_noise";
    let howdah = pooler(name).setting("client_login_timeout", "2").start();
    let mut inside = howdah.session(name, name);
    let noise: [&[u8]; 7] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0\0\0\0\0\0\0\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"SSH-2.0-OpenSSH\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\0\0\0\x08\x04\xd2\x16\x99",
        &[0; 20_000],
    ];
    for bytes in noise {
        let mut raw = Raw::connect(howdah.port());
        raw.send(bytes);
        raw.half_close();
        let told = raw.expect_closed();
        assert!(!told.contains('Z') && !told.contains('R'), "{told}");
        assert_eq!(inside.value("select 1"), "1");
    }
    check_still_welcome(&howdah, name);
}

fn check_still_welcome(howdah: &Howdah, name: &str) {
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
    assert!(!howdah.has_ended());
}
