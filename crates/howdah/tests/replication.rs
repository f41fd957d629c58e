//! Replication connections: a server of their own from login to the end, for whatever the walsender speaks.
//!
//! Rows P10 and P38 of the table of cases that poolers got wrong.
#![allow(clippy::disallowed_methods)] // tests run programs

mod oracle;

use std::process::{Command, Stdio};
use std::time::Duration;

use oracle::{LIMIT, SESSION, TRANSACTION, USER, fresh_database, has_full_size, pooler, pooler_to};
use testkit::message::{self, copy_data, copy_done, query};
use testkit::{Event, Howdah, Login, Message, Postgres, Raw, Signal, TempDir, Version, eventually, os};

fn walsender(howdah: &Howdah, kind: &str) -> Raw {
    howdah.login(&Login::new(USER, TRANSACTION).parameter("replication", kind))
}

/// How many walsenders of this name the server has.
fn walsenders(server: &Postgres, name: &str) -> usize {
    let sql = format!("select count(*) from pg_stat_replication where application_name = '{name}'");
    server.session(USER).value(&sql).parse().expect("a count")
}

/// A message to say how far was read, as pg_receivewal sends it.
fn status_update(position: u64) -> Vec<u8> {
    let mut body = vec![b'r'];
    (0..3).for_each(|_| body.extend_from_slice(&position.to_be_bytes()));
    body.extend_from_slice(&[0; 8]);
    body.push(0);
    copy_data(&body)
}

/// The next message that carries data of the log.
#[track_caller]
fn data(raw: &mut Raw) -> Message {
    loop {
        match raw.next(LIMIT) {
            Event::Message(message) if message.tag == b'd' && message.body.first() == Some(&b'w') => {
                return message;
            }
            Event::Message(message) if message.tag == b'd' => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn physical_replication_streams_and_ends_by_half_closes() {
    let server = Postgres::shared(Version::wanted());
    let howdah = pooler(Version::wanted()).start();
    let mut raw = walsender(&howdah, "true");
    let identity = raw.table("IDENTIFY_SYSTEM").remove(0);
    let value = |name| testkit::cell(&identity, name).expect("a column").to_owned();
    assert_eq!(
        value("systemid"),
        server.session(USER).value("select system_identifier::text from pg_control_system()")
    );
    assert_eq!(raw.table("SHOW data_directory_mode").len(), 1);
    // From the beginning of the segment in which the log now ends.
    let end = value("xlogpos");
    let (high, low) = end.split_once('/').expect("a position");
    let low = u32::from_str_radix(low, 16).expect("hexadecimal") & !(4 * 1024 * 1024 - 1);
    raw.send(query(&format!("START_REPLICATION PHYSICAL {high}/{low:X} TIMELINE {}", value("timeline"))));
    assert_eq!(raw.recv().letter(), "W");
    let mut received = data(&mut raw).body.len();
    raw.send(status_update(1));
    // What is written now arrives, too.
    server.sql("select pg_logical_emit_message(false, 'replication test', repeat('m', 100000))");
    while received < 100_000 {
        received += data(&mut raw).body.len();
    }
    raw.send(copy_done());
    let mut rest = Vec::new();
    while rest.last().is_none_or(|letter| letter != "ZI") {
        match raw.next(LIMIT) {
            Event::Message(message) if message.tag == b'd' => {}
            Event::Message(message) => rest.push(message.letter()),
            other => panic!("{other:?} after {rest:?}"),
        }
    }
    assert_eq!(rest, ["c", "C(START_STREAMING)", "C(START_REPLICATION)", "ZI"]);
    // The session goes on after it.
    assert_eq!(raw.table("IDENTIFY_SYSTEM").len(), 1);
}

#[test]
fn logical_replication_streams_changes_and_takes_sql() {
    let server = fresh_database(Version::wanted(), "replication_logical");
    let mut owner = server.session("replication_logical");
    owner.sql("create table t (n int primary key, v text)");
    owner.sql("create publication p for table t");
    let howdah =
        pooler_to(&server.connection("replication_logical")).setting("default_pool_size", "2").start();
    let mut raw = walsender(&howdah, "database");
    assert_eq!(raw.value("select current_database()"), "replication_logical");
    raw.sql("CREATE_REPLICATION_SLOT replication_logical TEMPORARY LOGICAL pgoutput");
    owner.sql("insert into t select n, 'a value to look for ' || n from generate_series(1, 100) n");
    raw.send(query(
        "START_REPLICATION SLOT replication_logical LOGICAL 0/0 (proto_version '1', publication_names 'p')",
    ));
    assert_eq!(raw.recv().letter(), "W");
    let mut seen = 0;
    while seen < 100 {
        let text = String::from_utf8_lossy(&data(&mut raw).body).into_owned();
        seen += usize::from(text.contains("a value to look for"));
    }
    // Others go on meanwhile.
    assert_eq!(howdah.session(USER, TRANSACTION).value("select count(*) from t"), "100");
    raw.close();
    eventually(LIMIT, || {
        owner.value("select count(*) from pg_replication_slots where database = current_database()") == "0"
    });
}

#[test]
fn walsender_is_never_reused_nor_outlives_its_client() {
    let server = fresh_database(Version::wanted(), "replication_ends");
    let howdah = pooler_to(&server.connection("replication_ends")).setting("default_pool_size", "3").start();
    let leavings: [fn(Raw); 3] = [Raw::close, Raw::reset, drop::<Raw>];
    for (number, leave) in leavings.into_iter().enumerate() {
        let name = format!("walsender {number}");
        let login = Login::new(USER, TRANSACTION)
            .parameter("replication", "yes")
            .parameter("application_name", &name);
        let mut raw = howdah.login(&login);
        let identity = raw.table("IDENTIFY_SYSTEM").remove(0);
        let position = testkit::cell(&identity, "xlogpos").expect("a column");
        raw.send(query(&format!("START_REPLICATION PHYSICAL {position}")));
        assert_eq!(raw.recv().letter(), "W");
        eventually(LIMIT, || walsenders(server, &name) == 1);
        leave(raw);
        eventually(LIMIT, || walsenders(server, &name) == 0);
        let mut ordinary = howdah.session(USER, TRANSACTION);
        assert_eq!(
            ordinary.value("select backend_type from pg_stat_activity where pid = pg_backend_pid()"),
            "client backend"
        );
    }
    has_full_size(&howdah, TRANSACTION, 3);
}

// P38

#[test]
fn replication_has_the_words_of_a_boolean() {
    let howdah = pooler(Version::wanted()).start();
    for word in ["true", "on", "yes", "1", "t", "TRUE", "y", "database"] {
        let mut raw = walsender(&howdah, word);
        assert_eq!(raw.table("IDENTIFY_SYSTEM").len(), 1, "{word}");
        raw.close();
    }
    for word in ["false", "off", "no", "0", "f", "OFF", "n"] {
        let mut raw = walsender(&howdah, word);
        assert_eq!(raw.try_sql("IDENTIFY_SYSTEM").expect_err("no walsender").sqlstate, "42601", "{word}");
        assert_eq!(raw.value("select 1"), "1", "{word}");
    }
    for word in ["maybe", "", "2", "o", "databases"] {
        let login = Login::new(USER, TRANSACTION).parameter("replication", word);
        let refusal =
            Raw::try_login(howdah.port(), &login).err().unwrap_or_else(|| panic!("{word:?} was taken"));
        assert_eq!(refusal.severity, "FATAL", "{word}");
    }
    assert_eq!(howdah.session(USER, SESSION).value("select 1"), "1");
}

#[test]
fn startup_parameters_reach_the_walsender() {
    let howdah = pooler(Version::wanted()).start();
    let login = Login::new(USER, TRANSACTION)
        .parameter("replication", "database")
        .parameter("options", "-c statement_timeout=54321ms")
        .parameter("application_name", "told at startup");
    let mut raw = howdah.login(&login);
    assert_eq!(raw.value("show statement_timeout"), "54321ms");
    assert_eq!(raw.value("show application_name"), "told at startup");
    raw.close();
    assert_ne!(howdah.session(USER, TRANSACTION).value("show statement_timeout"), "54321ms");
}

#[test]
fn errors_of_a_walsender_leave_its_session_alive() {
    let howdah = pooler(Version::wanted()).start();
    let mut raw = walsender(&howdah, "true");
    assert_eq!(
        raw.try_sql("START_REPLICATION SLOT \"no_such_slot\" PHYSICAL 0/0").expect_err("no slot").sqlstate,
        "42704"
    );
    assert_eq!(raw.try_sql("IDENTIFY_SYSTEM nonsense").expect_err("no command").sqlstate, "42601");
    assert_eq!(raw.table("IDENTIFY_SYSTEM").len(), 1);
    // A physical one has no database to run SQL in.
    let refusal = raw.try_sql("select 1").expect_err("no SQL here");
    let mut direct = Raw::login(
        Postgres::shared(Version::wanted()).port(),
        &Login::new(USER, USER).parameter("replication", "true"),
    );
    assert_eq!(refusal, direct.try_sql("select 1").expect_err("nor there"));
}

// The real programs

#[test]
fn pg_receivewal_receives_the_log() {
    let server = Postgres::shared(Version::wanted());
    // The program asks for a database of this name, which PostgreSQL does not look at.
    let howdah = pooler(Version::wanted()).database("replication", &server.connection(USER)).start();
    let dir = TempDir::new();
    // Further than the segment in which it begins.
    let end = server.session(USER).value("select (pg_current_wal_lsn() + 6000000)::text");
    let mut command = Command::new(server.program("pg_receivewal"));
    let connection = format!("host=127.0.0.1 port={} user={USER}", howdah.port());
    command.args(["--dbname", &connection, "--no-loop", "--no-sync", "--endpos", &end, "--directory"]);
    command.arg(dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = os::spawn(command, Signal::Kill).expect("pg_receivewal can be started");
    let mut feeder = server.session(USER);
    eventually(Duration::from_secs(30), || {
        feeder.sql("select pg_logical_emit_message(true, 'replication test', repeat('m', 500000))");
        child.try_wait().expect("own process").is_some()
    });
    let output = child.wait_with_output().expect("own process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::read_dir(dir.path()).expect("own directory").count() > 0, "nothing was received");
}

#[test]
fn replication_connections_do_not_take_the_places_of_others_for_ever() {
    let howdah = pooler(Version::wanted()).setting("default_pool_size", "2").start();
    for _ in 0..10 {
        let mut raw = walsender(&howdah, "true");
        raw.send(message::all(&[query("IDENTIFY_SYSTEM"), message::terminate()]));
        raw.expect_closed();
    }
    has_full_size(&howdah, TRANSACTION, 2);
}
