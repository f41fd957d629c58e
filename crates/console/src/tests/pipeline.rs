//! Scripts of the extended protocol.

use super::client::{Client, obey, refuse};
use crate::{ConfigRow, Reply, Role, Show, Snapshot, show};

const READY: &str = "ReadyForQuery I";
const VERSION: &str = "DataRow 'Howdah 1.2.3'";

fn admin() -> Client {
    Client::new(Role::Admin)
}

fn stats() -> Client {
    Client::new(Role::Stats)
}

#[test]
fn unnamed_statement_and_portal_run_once() {
    stats().parse("", "SHOW VERSION").bind("", "", &[]).describe('P', "").execute("", 0).sync().check(&[
        "ParseComplete",
        "BindComplete",
        "RowDescription version:25",
        VERSION,
        "CommandComplete SHOW",
        READY,
    ]);
}

#[test]
fn columns_are_described_before_anything_is_carried_out() {
    let mut client = admin()
        .parse("peers", "SHOW PEERS")
        .describe('S', "peers")
        .parse("reload", "RELOAD")
        .describe('S', "reload")
        .parse("help", "SHOW HELP")
        .describe('S', "help")
        .parse("nothing", "")
        .describe('S', "nothing")
        .sync();
    assert_eq!(
        client.run(refuse),
        [
            "ParseComplete",
            "ParameterDescription [0, 0]",
            "RowDescription peer_id:23 host:25 port:23 pool_size:23",
            "ParseComplete",
            "ParameterDescription [0, 0]",
            "NoData",
            "ParseComplete",
            "ParameterDescription [0, 0]",
            "NoData",
            "ParseComplete",
            "ParameterDescription [0, 0]",
            "NoData",
            READY,
        ]
    );
}

#[test]
fn described_columns_are_those_of_the_answer() {
    for table in Show::ALL {
        let text = format!("SHOW {}", table.name());
        let described = stats().parse("", &text).describe('S', "").sync().run(obey);
        let answered = stats().query(&text).run(obey);
        assert_eq!(described[2], answered[0]);
    }
}

#[test]
fn named_statements_outlive_sync_and_portals_do_not() {
    let mut client = stats().parse("s", "SHOW VERSION").bind("p", "s", &[]).sync();
    assert_eq!(client.run(refuse), ["ParseComplete", "BindComplete", READY]);
    client = client.execute("p", 0).sync();
    assert_eq!(client.run(refuse), ["ERROR 34000 portal \"p\" does not exist", READY]);
    client.bind("p", "s", &[]).execute("p", 0).sync().check(&[
        "BindComplete",
        VERSION,
        "CommandComplete SHOW",
        READY,
    ]);
}

#[test]
fn pipeline_of_several_commands_is_answered_in_order() {
    admin()
        .parse("", "PAUSE")
        .bind("", "", &[])
        .execute("", 0)
        .parse("", "SET timezone = 'UTC'")
        .bind("", "", &[])
        .execute("", 0)
        .sync()
        .parse("", "RESUME")
        .bind("", "", &[])
        .execute("", 0)
        .message(b'H', b"")
        .sync()
        .query("SELECT 1")
        .check(&[
            "ParseComplete",
            "BindComplete",
            "CommandComplete PAUSE",
            "ParseComplete",
            "BindComplete",
            "NOTICE 00000 SET ignored",
            "CommandComplete SET",
            READY,
            "ParseComplete",
            "BindComplete",
            "CommandComplete RESUME",
            READY,
            "RowDescription ?column?:23",
            "DataRow '1'",
            "CommandComplete SELECT 1",
            READY,
        ]);
}

#[test]
fn error_skips_to_sync_and_the_session_lives() {
    stats()
        .parse("", "SHOW VERSION")
        .bind("", "nope", &[])
        .execute("", 0)
        .query("SELECT 1")
        .message(b'F', b"")
        .message(b'd', b"")
        .parse("", "SHOW VERSION")
        .sync()
        .parse("", "SHOW VERSION")
        .sync()
        .check(&[
            "ParseComplete",
            "ERROR 26000 prepared statement \"nope\" does not exist",
            READY,
            "ParseComplete",
            READY,
        ]);
}

#[test]
fn refused_execute_skips_to_sync() {
    stats().parse("", "RELOAD").bind("", "", &[]).execute("", 0).execute("", 0).sync().check(&[
        "ParseComplete",
        "BindComplete",
        "ERROR 08P01 admin access needed",
        READY,
    ]);
}

#[test]
fn terminate_and_unknown_messages_are_not_skipped() {
    stats()
        .bind("", "", &[])
        .message(b'X', b"")
        .check(&["ERROR 26000 unnamed prepared statement does not exist", "closed"]);
    stats().bind("", "x", &[]).message(b'?', b"").check(&[
        "ERROR 26000 prepared statement \"x\" does not exist",
        "FATAL 08P01 unknown pkt: invalid message type",
        "closed",
    ]);
}

fn check_error(client: Client, expected: &str) {
    let lines = client.sync().run(obey);
    assert_eq!(lines[lines.len() - 2..], [expected, READY]);
}

#[test]
fn each_mistake_has_its_error() {
    check_error(stats().parse("", "BEGIN"), "ERROR 08P01 invalid command 'BEGIN', use SHOW HELP;");
    check_error(stats().execute("", 0), "ERROR 34000 portal \"\" does not exist");
    check_error(stats().describe('S', "x"), "ERROR 26000 prepared statement \"x\" does not exist");
    check_error(stats().describe('P', "x"), "ERROR 34000 portal \"x\" does not exist");
    check_error(stats().describe('X', "x"), "ERROR 08P01 broken Describe packet");
    check_error(stats().close('X', "x"), "ERROR 08P01 broken Close packet");
    check_error(stats().message(b'P', b"a\0b"), "ERROR 08P01 broken Parse packet");
    check_error(stats().message(b'E', b"\0\0"), "ERROR 08P01 broken Execute packet");
    let prepared = || stats().parse("s", "SHOW VERSION");
    check_error(prepared().parse("s", "SHOW VERSION"), "ERROR 42P05 prepared statement \"s\" already exists");
    check_error(
        prepared().bind("p", "s", &[]).bind("p", "s", &[]),
        "ERROR 42P03 cursor \"p\" already exists",
    );
    check_error(prepared().message(b'B', b"\0s\0"), "ERROR 08P01 broken Bind packet");
    check_error(prepared().message(b'B', b"\0s\0\0\0\0\0\0\0?"), "ERROR 08P01 broken Bind packet");
    check_error(prepared().bind("", "s", &[2]), "ERROR 08P01 invalid result format codes");
    check_error(prepared().bind("", "s", &[0, 0]), "ERROR 08P01 invalid result format codes");
}

#[test]
fn parameters_are_refused() {
    let refused = "ERROR 0A000 statement parameters are not supported by admin console";
    check_error(stats().message(b'P', b"\0SHOW POOLS\0\0\x01\0\0\0\x17"), refused);
    let bind = b"\0\0\0\0\0\x01\0\0\0\x01x\0\0";
    check_error(stats().parse("", "SHOW POOLS").message(b'B', bind), refused);
    check_error(
        stats().parse("", "KILL_CLIENT $1"),
        "ERROR 08P01 invalid command 'KILL_CLIENT $1', use SHOW HELP;",
    );
}

// Npgsql, asyncpg, pgx and tokio-postgres ask for binary values wherever they know the type.
#[test]
fn binary_values_are_given_to_who_asks_for_them() {
    stats().parse("", "SELECT 1").bind("", "", &[1]).describe('P', "").execute("", 0).sync().check(&[
        "ParseComplete",
        "BindComplete",
        "RowDescription ?column?:23b",
        "DataRow [0, 0, 0, 1]",
        "CommandComplete SELECT 1",
        READY,
    ]);
    let lines = stats().parse("", "SHOW LISTS").bind("", "", &[0, 1]).execute("", 0).sync().run(obey);
    assert_eq!(lines[2], "DataRow 'databases' [0, 0, 0, 0]");
    let lines = stats().parse("", "SHOW TOTALS").bind("", "", &[1]).execute("", 0).sync().run(|_| {
        let mut snapshot = Snapshot::default();
        snapshot.totals.0.server_assignment_count = 1_2345_6789;
        snapshot.totals.0.xact_count = 1_0000;
        Reply::Table(show::table(Show::Totals, &snapshot))
    });
    let numeric = |digits: &[u8], weight: u8| {
        let head = [0, digits.len() as u8 / 2, 0, weight, 0, 0, 0, 0];
        format!("{:?}", [head.as_slice(), digits].concat())
    };
    let nine = numeric(&[0, 1, 9, 41, 26, 133], 2);
    assert_eq!(lines[2], format!("DataRow 'total_server_assignment_count' {nine}"));
    let five = numeric(&[0, 1, 0, 0], 1);
    assert_eq!(lines[3], format!("DataRow 'total_xact_count' {five}"));
    assert_eq!(lines[4], format!("DataRow 'total_query_count' {}", numeric(&[], 0)));
}

#[test]
fn row_limit_suspends_a_portal_and_the_next_execute_goes_on() {
    let rows = |keys: &[&str]| {
        let row =
            |key: &&str| ConfigRow { key: (*key).to_owned(), value: None, default: None, changeable: true };
        let snapshot = Snapshot { config: keys.iter().map(row).collect(), ..Snapshot::default() };
        Reply::Table(show::table(Show::Config, &snapshot))
    };
    let mut asked = 0;
    let lines = stats()
        .parse("", "SHOW CONFIG")
        .bind("", "", &[])
        .execute("", 2)
        .execute("", 1)
        .execute("", 5)
        .execute("", 5)
        .sync()
        .run(|_| {
            asked += 1;
            rows(&["a", "b", "c"])
        });
    assert_eq!(asked, 1);
    assert_eq!(
        lines[2..],
        [
            "DataRow 'a' NULL NULL 'yes'",
            "DataRow 'b' NULL NULL 'yes'",
            "PortalSuspended",
            "DataRow 'c' NULL NULL 'yes'",
            "PortalSuspended",
            "CommandComplete SHOW",
            "CommandComplete SHOW",
            READY,
        ]
    );
}

#[test]
fn action_runs_once_a_portal() {
    admin().parse("", "RELOAD").bind("p", "", &[]).execute("p", 0).execute("p", 0).sync().check(&[
        "ParseComplete",
        "BindComplete",
        "CommandComplete RELOAD",
        "ERROR 55000 portal \"p\" cannot be run",
        READY,
    ]);
}

#[test]
fn empty_statement_executes_to_an_empty_query_response() {
    stats().parse("", ";").bind("", "", &[1]).describe('P', "").execute("", 0).sync().check(&[
        "ParseComplete",
        "BindComplete",
        "NoData",
        "EmptyQueryResponse",
        READY,
    ]);
}

#[test]
fn closing_what_is_not_there_is_no_error() {
    stats()
        .close('S', "x")
        .close('P', "x")
        .parse("x", "SELECT 1")
        .close('S', "x")
        .parse("x", "SELECT 1")
        .bind("p", "x", &[])
        .close('P', "p")
        .execute("p", 0)
        .sync()
        .check(&[
            "CloseComplete",
            "CloseComplete",
            "ParseComplete",
            "CloseComplete",
            "ParseComplete",
            "BindComplete",
            "CloseComplete",
            "ERROR 34000 portal \"p\" does not exist",
            READY,
        ]);
}

#[test]
fn query_ends_the_unnamed_statement() {
    stats().parse("", "SELECT 1").query("").bind("", "", &[]).sync().check(&[
        "ParseComplete",
        "EmptyQueryResponse",
        READY,
        "ERROR 26000 unnamed prepared statement does not exist",
        READY,
    ]);
}

#[test]
fn discard_all_forgets_named_statements() {
    stats().parse("s", "SELECT 1").sync().query("DISCARD ALL").bind("", "s", &[]).sync().check(&[
        "ParseComplete",
        READY,
        "CommandComplete DISCARD ALL",
        READY,
        "ERROR 26000 prepared statement \"s\" does not exist",
        READY,
    ]);
}

#[test]
fn objects_of_a_session_are_limited() {
    let mut client = stats();
    for name in 0..=1_000 {
        client = client.parse(&name.to_string(), "SELECT 1");
    }
    let lines = client.sync().run(refuse);
    assert_eq!(
        lines[1_000..],
        ["ERROR 54000 too many prepared statements or portals in one admin console session", READY]
    );
}
