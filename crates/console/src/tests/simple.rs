//! Scripts of the simple protocol, and of messages that are none of the console's.

use super::client::{Client, obey, refuse};
use crate::{Ask, Command, Failure, MESSAGE_SIZE_MAX, Notice, Reply, Role, Session, is_console, welcome};

const READY: &str = "ReadyForQuery I";

fn admin() -> Client {
    Client::new(Role::Admin)
}

fn stats() -> Client {
    Client::new(Role::Stats)
}

#[test]
fn show_answers_a_table() {
    stats().query("SHOW VERSION;").check(&[
        "RowDescription version:25",
        "DataRow 'Howdah 1.2.3'",
        "CommandComplete SHOW",
        READY,
    ]);
}

#[test]
fn table_without_rows_still_has_columns() {
    stats().query("SHOW PEERS").check(&[
        "RowDescription peer_id:23 host:25 port:23 pool_size:23",
        "CommandComplete SHOW",
        READY,
    ]);
}

#[test]
fn actions_answer_their_tag() {
    for (text, tag) in [
        ("RELOAD", "RELOAD"),
        ("PAUSE", "PAUSE"),
        ("RESUME db", "RESUME"),
        ("DISABLE db", "DISABLE"),
        ("SET verbose = 2", "SET verbose=2"),
        ("KILL_CLIENT 3", "KILL_CLIENT"),
        ("SHUTDOWN WAIT_FOR_CLIENTS", "SHUTDOWN"),
    ] {
        admin().query(text).check(&[&format!("CommandComplete {tag}"), READY]);
    }
}

#[test]
fn stats_users_are_refused_before_anything_is_asked_for() {
    for text in ["RELOAD", "PAUSE db", "SET verbose = 1", "SHOW FDS", "SHUTDOWN", "SUSPEND"] {
        let lines = stats().query(text).run(refuse);
        assert_eq!(lines, ["ERROR 08P01 admin access needed", READY], "{text}");
    }
}

#[test]
fn what_is_not_built_says_so() {
    let mut client = admin().query("SUSPEND").query("SHOW FDS");
    assert_eq!(
        client.run(refuse),
        [
            "ERROR 0A000 SUSPEND is not supported, use PAUSE",
            READY,
            "ERROR 0A000 SHOW FDS is not supported: it exposes passwords and cancel keys",
            READY,
        ]
    );
}

#[test]
fn drivers_are_humoured_without_asking() {
    let mut client = stats()
        .query("SET extra_float_digits = 3")
        .query("SHOW client_encoding")
        .query("SHOW default_transaction_isolation")
        .query("SELECT 1")
        .query("DISCARD ALL");
    assert_eq!(
        client.run(refuse),
        [
            "NOTICE 00000 SET ignored",
            "CommandComplete SET",
            READY,
            "RowDescription client_encoding:25",
            "DataRow 'UTF-8'",
            "CommandComplete SHOW",
            READY,
            "RowDescription default_transaction_isolation:25",
            "DataRow 'read committed'",
            "CommandComplete SHOW",
            READY,
            "RowDescription ?column?:23",
            "DataRow '1'",
            "CommandComplete SELECT 1",
            READY,
            "CommandComplete DISCARD ALL",
            READY,
        ]
    );
}

#[test]
fn help_is_a_notice_that_names_the_commands() {
    stats().query("SHOW HELP").check(&["NOTICE 00000 Console usage", "CommandComplete SHOW", READY]);
    let usage = Notice::Usage.detail().expect("a detail");
    assert!(usage.contains("KILL_CLIENT <client_id>") && usage.contains("WAIT_CLOSE [<db>]"));
}

#[test]
fn empty_queries_are_answered_as_such() {
    stats().query("").query(";").query("-- ping").check(&[
        "EmptyQueryResponse",
        READY,
        "EmptyQueryResponse",
        READY,
        "EmptyQueryResponse",
        READY,
    ]);
}

#[test]
fn errors_leave_the_session_usable() {
    let mut client = admin().query("BEGIN").query("PAUSE nodb").message(b'Q', b"no zero").query("SELECT 1");
    let lines = client.run(|_| Reply::Failed(Failure::NoSuchDatabase("nodb".to_owned())));
    assert_eq!(
        lines[..6],
        [
            "ERROR 08P01 invalid command 'BEGIN', use SHOW HELP;",
            READY,
            "ERROR 08P01 no such database: nodb",
            READY,
            "ERROR 08P01 broken Query packet",
            READY,
        ]
    );
    assert_eq!(lines.last().map(String::as_str), Some(READY));
}

#[test]
fn failed_reload_tells_why_in_its_detail() {
    let mut session = Session::new(Role::Admin);
    let mut out = Vec::new();
    let ask = session.on_message(b'Q', b"RELOAD\0", &mut out);
    assert_eq!(ask, Some(Ask::Execute(Command::Reload)));
    assert_eq!(out, b"");
    session.answer(Reply::Failed(Failure::ReloadFailed(Some("line 3".to_owned()))), &mut out);
    let text = String::from_utf8_lossy(&out);
    assert!(text.contains("CF0000\0MRELOAD failed, see logs for additional details\0Dline 3\0"), "{text}");
}

#[test]
fn tls_notice_comes_before_the_tag() {
    let mut client = admin().query("SET client_tls_key_file = 'x'");
    let lines = client.run(|_| Reply::Noticed(Notice::TlsNotApplied));
    assert_eq!(
        lines,
        [
            "NOTICE 00000 TLS settings could not be applied, still using old configuration",
            "CommandComplete SET client_tls_key_file=x",
            READY,
        ]
    );
}

#[test]
fn nothing_is_read_before_the_answer() {
    let mut bytes = Vec::new();
    wire::encode::query(&mut bytes, b"PAUSE");
    wire::encode::query(&mut bytes, b"SELECT 1");
    let mut session = Session::new(Role::Admin);
    let mut out = Vec::new();
    let progress = session.on_bytes(&bytes, &mut out);
    assert_eq!((progress.consumed, out.len()), (11, 0));
    assert_eq!(session.on_bytes(&bytes[11..], &mut out).consumed, 0);
    session.answer(Reply::Failed(Failure::Canceled), &mut out);
    assert!(String::from_utf8_lossy(&out).contains("57014"));
    assert_eq!(session.on_bytes(&bytes[11..], &mut out).consumed, bytes.len() - 11);
}

#[test]
fn half_messages_are_left_for_later() {
    let mut bytes = Vec::new();
    wire::encode::query(&mut bytes, b"SELECT 1");
    for end in 0..bytes.len() {
        let mut out = Vec::new();
        let progress = Session::new(Role::Stats).on_bytes(&bytes[..end], &mut out);
        assert_eq!((progress.consumed, progress.ask, out.len()), (0, None, 0));
    }
}

#[test]
fn terminate_closes_in_silence() {
    stats().message(b'X', b"").query("SELECT 1").check(&["closed"]);
}

#[test]
fn function_calls_are_refused_and_the_session_lives() {
    stats().message(b'F', &[0; 8]).query("").check(&[
        "ERROR 0A000 function calls are not supported by admin console",
        READY,
        "EmptyQueryResponse",
        READY,
    ]);
}

#[test]
fn copy_messages_outside_of_copy_are_ignored() {
    stats()
        .message(b'd', b"x")
        .message(b'c', b"")
        .message(b'f', b"x\0")
        .query("")
        .check(&["EmptyQueryResponse", READY]);
}

#[test]
fn unknown_messages_end_the_session() {
    for tag in [b'?', b'z', 0, b'p'] {
        let lines = stats().message(tag, b"").query("").run(obey);
        assert_eq!(lines, ["FATAL 08P01 unknown pkt: invalid message type", "closed"]);
    }
}

#[test]
fn declared_lengths_are_refused_before_they_are_waited_for() {
    let check = |length: u32, words: &str| {
        let mut out = Vec::new();
        let header = [b"Q", length.to_be_bytes().as_slice()].concat();
        let progress = Session::new(Role::Stats).on_bytes(&header, &mut out);
        assert_eq!(progress.ask, Some(Ask::Close));
        assert!(String::from_utf8_lossy(&out).contains(words), "{words}");
    };
    check(3, "invalid message length");
    check(u32::MAX, "invalid message length");
    check(MESSAGE_SIZE_MAX + 5, "longer than the 16384 bytes");
}

#[test]
fn welcome_has_the_parameters_that_tools_read() {
    let parameters = welcome("1.2.3");
    let text: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        text.join(" "),
        "server_version=1.2.3/bouncer client_encoding=UTF8 server_encoding=UTF8 DateStyle=ISO TimeZone=GMT \
         standard_conforming_strings=on is_superuser=on"
    );
    assert!(is_console("pgbouncer") && is_console("howdah") && !is_console("postgres"));
}
