//! Large messages and slow readers: everything streams, and the pooler's memory stays as it was.
//!
//! Rows P28 to P30 of the table of cases that poolers got wrong.
#![allow(clippy::disallowed_methods)] // tests run threads and look at /proc

mod oracle;

use std::fs;
use std::io::Write;

use oracle::{LIMIT, SESSION, TRANSACTION, USER, fresh_database, has_full_size, pooler, pooler_to};
use testkit::message::{
    self, bind, copy_data, copy_done, execute, message_of_length, parse, query, rows, sync,
};
use testkit::{Certificates, Howdah, Login, Postgres, Raw, TempDir, Tls, Version, eventually};

const MB: usize = 1 << 20;
/// How much larger the process may ever have been than before.
const GROWTH_KB_MAX: u64 = 64 << 10;

/// The largest that the process has ever been, in KB.
fn peak_kb(howdah: &Howdah) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", howdah.pid())).expect("the pooler runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Does something and checks that the process has not grown by it.
#[track_caller]
fn without_growing(howdah: &Howdah, work: impl FnOnce()) {
    let before = howdah.rss_kb();
    work();
    let growth = peak_kb(howdah).saturating_sub(before);
    assert!(growth < GROWTH_KB_MAX, "the process grew by {growth} KB");
}

// P28

#[test]
fn row_of_a_gigabyte_streams() {
    let howdah = pooler(Version::wanted()).setting("server_tls_sslmode", "disable").start();
    let mut client = howdah.session(USER, TRANSACTION);
    without_growing(&howdah, || {
        client.send(query("select repeat('x', 1000 * 1000 * 1000)"));
        assert_eq!(client.recv().letter(), "T");
        assert_eq!(client.skim(), (b'D', 2 + 4 + 1_000_000_000));
        assert_eq!(client.answers(1), "C(SELECT 1) ZI");
    });
    assert_eq!(client.value("select 'after'"), "after");
}

#[test]
fn bind_of_256_megabytes_streams() {
    let howdah = pooler(Version::wanted()).start();
    for entry in [TRANSACTION, SESSION] {
        let mut client = howdah.session(USER, entry);
        without_growing(&howdah, || {
            let size = 256 * MB;
            client.send(parse("long", "select length($1), $2", &[25, 23]));
            // No name for the portal, the statement's, no formats, two values: the first is the large one.
            let mut head = b"\0long\0\0\0\0\x02".to_vec();
            head.extend_from_slice(&i32::try_from(size).expect("below 2 GB").to_be_bytes());
            let tail = b"\0\0\0\x017\0\0";
            let length = i32::try_from(4 + head.len() + size + tail.len()).expect("below 2 GB");
            client.send(message_of_length(b'B', length, &head));
            let piece = vec![b'x'; MB];
            for _ in 0..256 {
                client.send(&piece);
            }
            client.send(tail);
            client.send(message::all(&[execute("", 0), sync()]));
            let messages = client.until_ready();
            assert_eq!(rows(&messages), [[Some(size.to_string()), Some("7".to_owned())]]);
        });
    }
}

#[test]
fn query_text_and_statement_may_be_large() {
    let howdah = pooler(Version::wanted()).start();
    let mut client = howdah.session(USER, TRANSACTION);
    let text = "y".repeat(3 * MB);
    for sql in [format!("select length('{text}')"), format!("/* {text} */ select {}", text.len())] {
        assert_eq!(client.value(&sql), text.len().to_string());
        client.send(message::all(&[parse("", &sql, &[]), bind("", "", &[]), execute("", 0), sync()]));
        assert_eq!(rows(&client.until_ready()), [[Some(text.len().to_string())]]);
        client.send(message::all(&[
            parse("named", &sql, &[]),
            sync(),
            bind("", "named", &[]),
            execute("", 0),
            sync(),
        ]));
        client.until_ready();
        assert_eq!(rows(&client.until_ready()), [[Some(text.len().to_string())]]);
        assert_eq!(client.ask(message::all(&[message::close_statement("named"), sync()])), "3 ZI");
    }
    // Errors and notices with long texts.
    client.send(query("do $$ begin raise exception '%', repeat('e', 300000); end $$"));
    let messages = client.until_ready();
    assert_eq!(messages[0].text().len(), 300_000);
    client.send(query("do $$ begin raise notice '%', repeat('n', 300000); end $$"));
    assert_eq!(client.until_ready()[0].text().len(), 300_000);
    // Names have no limit in the protocol.
    let name = "n".repeat(5000);
    let batch =
        message::all(&[parse(&name, "select 1", &[]), bind(&name, &name, &[]), execute(&name, 0), sync()]);
    assert_eq!(client.ask(batch), "1 2 D C(SELECT 1) ZI");
}

#[test]
fn copy_streams_both_ways() {
    let server = fresh_database(Version::wanted(), "large_copy");
    server.session("large_copy").sql("create unlogged table t (v text)");
    let howdah = pooler_to(&server.connection("large_copy")).start();
    let mut client = howdah.session(USER, TRANSACTION);
    without_growing(&howdah, || {
        let line = [vec![b'z'; MB - 1], b"\n".to_vec()].concat();
        client.send(query("copy t from stdin"));
        for _ in 0..64 {
            client.send(copy_data(&line));
        }
        assert_eq!(client.ask(copy_done()), "G C(COPY 64) ZI");
        client.send(query("copy t to stdout"));
        assert_eq!(client.recv().letter(), "H");
        for _ in 0..64 {
            assert_eq!(client.skim(), (b'd', MB));
        }
        assert_eq!(client.answers(1), "c C(COPY 64) ZI");
    });
}

// P29

#[test]
fn clients_that_do_not_read_hold_up_only_themselves() {
    let server = fresh_database(Version::wanted(), "large_slow");
    let howdah = pooler_to(&server.connection("large_slow")).setting("default_pool_size", "21").start();
    let mut slow: Vec<Raw> = (0..20).map(|_| howdah.session(USER, TRANSACTION)).collect();
    without_growing(&howdah, || {
        for client in &mut slow {
            client.send(query("select repeat('s', 10000) from generate_series(1, 5000)"));
        }
        let blocked = "select count(*) from pg_stat_activity \
                       where datname = 'large_slow' and wait_event = 'ClientWrite'";
        let mut observer = server.session(USER);
        eventually(LIMIT, || observer.value(blocked) == "20");
        let mut quick = howdah.session(USER, TRANSACTION);
        for number in 0..200 {
            assert_eq!(quick.value(&format!("select {number}")), number.to_string());
        }
        // Half of them go on reading, and miss nothing.
        for mut client in slow.drain(..10) {
            assert_eq!(client.answers(1), "T D*5000 C(SELECT 5000) ZI");
        }
    });
    drop(slow);
    has_full_size(&howdah, TRANSACTION, 21);
    eventually(LIMIT, || server.sessions_in("large_slow") <= 21);
}

/// Sends `count` times a batch that returns a megabyte, on a thread of its own, and reads all answers.
fn both_ways(mut client: Raw, count: usize) {
    let value = "d".repeat(MB);
    let batch = message::all(&[
        parse("", "select $1::text", &[]),
        bind("", "", &[Some(&value)]),
        execute("", 0),
        sync(),
    ]);
    let socket = client.stream().tcp().expect("a TCP connection").try_clone().expect("an open socket");
    let writer = std::thread::spawn(move || (0..count).try_for_each(|_| (&socket).write_all(&batch)));
    for _ in 0..count {
        assert_eq!(rows(&client.until_ready()), [[Some(value.clone())]]);
    }
    writer.join().expect("the writer ends").expect("everything is sent");
}

#[test]
fn both_sides_may_write_much_at_once() {
    let howdah = pooler(Version::wanted()).setting("default_pool_size", "2").start();
    without_growing(&howdah, || {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| both_ways(howdah.session(USER, TRANSACTION), 40));
            }
        });
    });
    has_full_size(&howdah, TRANSACTION, 2);
}

// P30

#[test]
fn large_rows_pass_through_tls_on_both_sides() {
    let dir = TempDir::new();
    let _certificates = Certificates::write(dir.path());
    let file = |name| dir.join(name).to_string_lossy().into_owned();
    let howdah = pooler(Version::V15)
        .setting("client_tls_sslmode", "require")
        .setting("client_tls_cert_file", &file("server.crt"))
        .setting("client_tls_key_file", &file("server.key"))
        .setting("server_tls_sslmode", "require")
        .start();
    let login = Login::new(USER, TRANSACTION).tls(Tls::default());
    let mut client = howdah.login(&login);
    assert!(Postgres::shared(Version::V15).certificates().is_some());
    without_growing(&howdah, || {
        for size in [100, 8_000, 16_000, 16_384, 16_400, 70_000, 1_000_000] {
            let count = 20_000_000 / size;
            client.send(query(&format!("select repeat('t', {size}) from generate_series(1, {count})")));
            let messages = client.until_ready();
            let right = rows(&messages)
                .iter()
                .filter(|row| row[0].as_ref().is_some_and(|text| text.len() == size))
                .count();
            assert_eq!(right, count);
        }
        let value = "u".repeat(5 * MB);
        client.send(message::all(&[
            parse("", "select length($1)", &[]),
            bind("", "", &[Some(&value)]),
            execute("", 0),
            sync(),
        ]));
        assert_eq!(rows(&client.until_ready()), [[Some(value.len().to_string())]]);
    });
}

/// What a client may still hold of the 100 MB that it has moved, in KB.
const KEPT_KB_MAX: u64 = 1 << 10;

#[test]
fn clients_that_have_moved_much_give_the_memory_back() {
    let dir = TempDir::new();
    let _certificates = Certificates::write(dir.path());
    let file = |name| dir.join(name).to_string_lossy().into_owned();
    let howdah = pooler(Version::V15)
        .setting("client_tls_sslmode", "allow")
        .setting("client_tls_cert_file", &file("server.crt"))
        .setting("client_tls_key_file", &file("server.key"))
        .start();
    let plain = Login::new(USER, TRANSACTION);
    let tls = plain.clone().tls(Tls::default());
    // Whatever is made once for all is there before anything is measured.
    for login in [&plain, &tls] {
        assert_eq!(howdah.login(login).value("select repeat('w', 1000000)").len(), 1_000_000);
    }
    let mut clients: Vec<Raw> = [&plain, &tls, &plain, &tls].map(|login| howdah.login(login)).into();
    let before = howdah.rss_kb();
    let value = "m".repeat(10 * MB);
    for client in &mut clients {
        for _ in 0..5 {
            client.send(message::all(&[
                parse("", "select $1::text", &[]),
                bind("", "", &[Some(&value)]),
                execute("", 0),
                sync(),
            ]));
            assert_eq!(rows(&client.until_ready()), [[Some(value.clone())]]);
        }
    }
    // They stay, and are idle.
    let most = before + KEPT_KB_MAX * clients.len() as u64;
    eventually(LIMIT, || howdah.rss_kb() <= most);
    assert_eq!(clients[3].value("select 'here'"), "here");
}
