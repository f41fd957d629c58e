//! Prepared statements whose result changes: who prepared before is refused with PostgreSQL's own error and never
//! sent rows of another shape, who prepares after is served, and no server is lost by it.
//!
//! Row P45 of the table of cases that poolers got wrong.
#![allow(clippy::disallowed_methods)] // tests run threads

mod oracle;

use oracle::{Oracle, TRANSACTION, Talk, USER, fresh_database, pooler_to};
use testkit::message::{
    all, bind, close_statement, describe_portal, describe_statement, execute, parse, query, rows, sync,
};
use testkit::{Howdah, Postgres, Raw, Version};

const SQL: &str = "select * from t";

/// Bind and Execute of a named statement without parameters.
fn run(name: &str) -> Vec<u8> {
    all(&[bind("", name, &[]), execute("", 0)])
}

/// A database of the test's own with a table `t` of one row, `(1)`, and a pooler in front of it.
struct Scene {
    server: &'static Postgres,
    database: String,
    howdah: Howdah,
}

impl Scene {
    fn new(test: &str, pool_size: usize) -> Scene {
        let database = format!("stale_{test}_{pool_size}");
        let server = fresh_database(Version::wanted(), &database);
        let mut owner = server.session(&database);
        owner.sql("create table t (a int)");
        owner.sql("insert into t values (1)");
        let size = pool_size.to_string();
        let connection = server.connection(&database);
        let howdah = pooler_to(&connection).setting("default_pool_size", &size).start();
        Scene { server, database, howdah }
    }

    fn client(&self) -> Raw {
        self.howdah.session(USER, TRANSACTION)
    }

    /// A session of somebody else, past the pooler.
    fn owner(&self) -> Raw {
        self.server.session(&self.database)
    }

    /// Runs SQL through the pooler or behind its back.
    fn change(&self, sql: &str, through_pooler: bool) {
        let mut session = if through_pooler { self.client() } else { self.owner() };
        session.sql(sql);
        session.close();
    }

    /// Which servers there are: all of them in transactions at once.
    fn servers(&self, size: usize) -> Vec<String> {
        let mut clients: Vec<Raw> = (0..size).map(|_| self.client()).collect();
        let mut pids: Vec<String> = clients
            .iter_mut()
            .map(|client| {
                client.sql("begin");
                client.value("select pg_backend_pid()")
            })
            .collect();
        clients.iter_mut().for_each(|client| drop(client.sql("commit")));
        pids.sort();
        pids
    }

    /// `ask` of the client on every server of the pool, each time in a transaction block that holds the server
    /// until the end. Gives what was heard, the way in and out left off.
    fn everywhere(&self, size: usize, clients: &mut [Raw], ask: &[u8]) -> Vec<String> {
        assert_eq!(clients.len(), size);
        for client in clients.iter_mut() {
            client.sql("begin");
        }
        let heard = clients.iter_mut().map(|client| client.ask(ask)).collect();
        for client in clients.iter_mut() {
            client.sql("rollback");
        }
        heard
    }
}

#[track_caller]
fn prepare_told(client: &mut Raw, name: &str) {
    assert_eq!(client.ask(all(&[parse(name, SQL, &[]), describe_statement(name), sync()])), "1 t T ZI");
}

#[track_caller]
fn values(client: &mut Raw, ask: Vec<u8>) -> Vec<Option<String>> {
    client.send(ask);
    let messages = client.until_ready();
    let letters = testkit::letters(&messages);
    let mut rows = rows(&messages);
    assert_eq!(rows.len(), 1, "{letters}");
    rows.remove(0)
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|&value| Some(value.to_owned())).collect()
}

/// Changes of `t` after which `select * from t` has another shape, and its row then.
const CHANGES: [(&str, &str, &[&str]); 4] = [
    ("add", "alter table t add column b int default 2", &["1", "2"]),
    ("type", "alter table t alter column a type text", &["1"]),
    ("rename", "alter table t rename column a to c", &["1"]),
    ("anew", "drop table t; create table t (b text, a int); insert into t values ('x', 1)", &["x", "1"]),
];

/// Clients that prepared before hear 0A000 wherever they go and whenever they try, those that prepare after get
/// the new result everywhere, and the old ones too once they prepare again.
fn check_change(name: &str, ddl: &str, row: &[&str], size: usize) {
    let scene = Scene::new(name, size);
    let servers = scene.servers(size);
    // One server has the statement; the others are yet to be given it.
    let mut old: Vec<Raw> = (0..size).map(|_| scene.client()).collect();
    old.iter_mut().for_each(|client| prepare_told(client, "s"));
    assert_eq!(values(&mut old[0], all(&[run("s"), sync()])), some(&["1"]));
    scene.change(ddl, true);
    for _ in 0..2 {
        for heard in scene.everywhere(size, &mut old, &all(&[run("s"), sync()])) {
            assert_eq!(heard, "E(0A000) ZE", "{name}");
        }
        assert_eq!(old[0].ask(all(&[run("s"), sync()])), "E(0A000) ZI", "{name}");
    }
    let mut new: Vec<Raw> = (0..size).map(|_| scene.client()).collect();
    let ask = all(&[parse("s", SQL, &[]), describe_statement("s"), run("s"), close_statement("s"), sync()]);
    for heard in scene.everywhere(size, &mut new, &ask) {
        assert_eq!(heard, "1 t T 2 D C(SELECT 1) 3 ZT", "{name}");
    }
    assert_eq!(values(&mut new[0], ask.clone()), some(row), "{name}");
    let again = all(&[close_statement("s"), ask]);
    assert_eq!(values(&mut old[0], again), some(row), "{name}");
    assert_eq!(scene.servers(size), servers, "a server was lost, {name}");
}

#[test]
fn change_through_the_pooler_is_known_at_once_with_one_server() {
    for (name, ddl, row) in CHANGES {
        check_change(name, ddl, row, 1);
    }
}

#[test]
fn change_through_the_pooler_is_known_at_once_with_three_servers() {
    for (name, ddl, row) in CHANGES {
        check_change(name, ddl, row, 3);
    }
}

#[test]
fn change_behind_the_poolers_back_is_known_after_the_first_refusal() {
    for size in [1, 3] {
        let scene = Scene::new("back", size);
        let servers = scene.servers(size);
        let mut old: Vec<Raw> = (0..size).map(|_| scene.client()).collect();
        old.iter_mut().for_each(|client| prepare_told(client, "s"));
        scene.everywhere(size, &mut old, &all(&[run("s"), sync()]));
        scene.change("alter table t add column b int default 2", false);
        for _ in 0..2 {
            for heard in scene.everywhere(size, &mut old, &all(&[run("s"), sync()])) {
                assert_eq!(heard, "E(0A000) ZE");
            }
        }
        let mut new: Vec<Raw> = (0..size).map(|_| scene.client()).collect();
        let ask = all(&[parse("s", SQL, &[]), describe_statement("s"), run("s"), sync()]);
        for heard in scene.everywhere(size, &mut new, &ask) {
            assert_eq!(heard, "1 t T 2 D C(SELECT 1) ZT");
        }
        assert_eq!(scene.servers(size), servers, "a server was lost");
    }
}

#[test]
fn rows_of_another_shape_reach_nobody_even_where_nobody_knows_of_the_change() {
    let scene = Scene::new("silent", 2);
    let mut old = scene.client();
    prepare_told(&mut old, "s");
    scene.change("alter table t add column b int default 2", false);
    // The server that has the statement is kept busy, so that the other is given it.
    let mut busy = [scene.client(), scene.client()];
    busy[0].sql("begin");
    busy[1].sql("begin");
    let has = |client: &mut Raw| client.value("select count(*) from pg_prepared_statements") == "1";
    let (first, second) = (has(&mut busy[0]), has(&mut busy[1]));
    assert!(first != second, "one of two servers has the statement");
    busy[usize::from(first)].sql("commit");
    old.send(all(&[run("s"), sync()]));
    let end = old.expect_closed();
    assert!(!end.contains('D'), "{end}");
    // From then on it is known.
    let mut new = scene.client();
    let ask = all(&[parse("s", SQL, &[]), describe_statement("s"), run("s"), sync()]);
    assert_eq!(values(&mut new, ask), some(&["1", "2"]));
}

#[test]
fn table_made_anew_in_the_same_shape_goes_on() {
    for size in [1, 3] {
        let scene = Scene::new("same", size);
        let mut old: Vec<Raw> = (0..size).map(|_| scene.client()).collect();
        old.iter_mut().for_each(|client| prepare_told(client, "s"));
        scene.change("drop table t", true);
        scene.change("create table t (a int)", true);
        scene.change("insert into t values (7)", true);
        for _ in 0..2 {
            for heard in scene.everywhere(size, &mut old, &all(&[run("s"), sync()])) {
                assert_eq!(heard, "2 D C(SELECT 1) ZT");
            }
        }
        assert_eq!(values(&mut old[0], all(&[run("s"), sync()])), some(&["7"]));
    }
}

#[test]
fn view_that_is_replaced_is_a_change() {
    let scene = Scene::new("view", 1);
    scene.change("create view v as select a from t", true);
    let sql = "select * from v";
    let mut old = scene.client();
    assert_eq!(old.ask(all(&[parse("s", sql, &[]), describe_statement("s"), sync()])), "1 t T ZI");
    scene.change("create or replace view v as select a, 5 as b from t", true);
    let mut new = scene.client();
    let ask = all(&[parse("s", sql, &[]), run("s"), sync()]);
    assert_eq!(values(&mut new, ask), some(&["1", "5"]));
    assert_eq!(old.ask(all(&[run("s"), sync()])), "E(0A000) ZI");
}

#[test]
fn description_after_a_change_is_new_or_refused() {
    let scene = Scene::new("describe", 1);
    let mut old = scene.client();
    prepare_told(&mut old, "s");
    scene.change("alter table t add column b int", true);
    assert_eq!(old.ask(all(&[describe_statement("s"), sync()])), "t E(0A000) ZI");
    let mut new = scene.client();
    new.send(all(&[parse("s", SQL, &[]), describe_statement("s"), sync()]));
    let messages = new.until_ready();
    let columns: Vec<_> = messages.iter().filter(|m| m.tag == b'T').flat_map(|m| m.columns()).collect();
    assert_eq!(columns, ["a", "b"]);
}

#[test]
fn description_of_a_portal_is_kept_to() {
    let scene = Scene::new("portal", 2);
    let mut old = [scene.client(), scene.client()];
    for client in &mut old {
        let ask =
            all(&[parse("s", SQL, &[]), bind("", "s", &[]), describe_portal(""), execute("", 0), sync()]);
        assert_eq!(client.ask(ask), "1 2 T D C(SELECT 1) ZI");
    }
    scene.change("alter table t add column b int", true);
    for heard in scene.everywhere(2, &mut old, &all(&[run("s"), sync()])) {
        assert_eq!(heard, "E(0A000) ZE");
    }
}

#[test]
fn change_that_is_rolled_back_changes_nothing() {
    for size in [1, 3] {
        let scene = Scene::new("rollback", size);
        let mut clients: Vec<Raw> = (0..size).map(|_| scene.client()).collect();
        clients.iter_mut().for_each(|client| prepare_told(client, "s"));
        let mut changer = scene.client();
        prepare_told(&mut changer, "s");
        changer.sql("begin; alter table t add column b int default 2");
        assert_eq!(changer.ask(all(&[run("s"), sync()])), "E(0A000) ZE");
        changer.sql("rollback");
        assert_eq!(values(&mut changer, all(&[run("s"), sync()])), some(&["1"]));
        for heard in scene.everywhere(size, &mut clients, &all(&[run("s"), sync()])) {
            assert_eq!(heard, "2 D C(SELECT 1) ZT");
        }
        // What was prepared in between has seen what never came to be.
        changer.sql("begin; alter table t add column b int default 2");
        prepare_in_transaction(&mut changer, "between");
        changer.sql("rollback");
        for heard in scene.everywhere(size, &mut clients, &all(&[run("s"), sync()])) {
            assert_eq!(heard, "2 D C(SELECT 1) ZT");
        }
        assert_eq!(changer.ask(all(&[run("between"), sync()])), "E(0A000) ZI");
        prepare_told(&mut scene.client(), "s");
    }
}

#[track_caller]
fn prepare_in_transaction(client: &mut Raw, name: &str) {
    assert_eq!(client.ask(all(&[parse(name, SQL, &[]), describe_statement(name), sync()])), "1 t T ZT");
}

#[test]
fn one_client_alone_hears_what_postgresql_says() {
    let oracle = Oracle::new();
    let script = |talk: &mut Talk| {
        let set_up =
            "set client_min_messages = error; drop table if exists stale_t; create table stale_t (a int)";
        talk.ask(&[query(set_up)]);
        // The description of a union names no table, and so is the same for a table made anew.
        let sql = "select * from stale_t union all select * from stale_t";
        talk.ask(&[parse("s", sql, &[]), describe_statement("s"), run("s"), sync()]);
        talk.ask(&[query("alter table stale_t add column b int")]);
        talk.ask(&[run("s"), sync()]);
        talk.ask(&[describe_statement("s"), sync()]);
        talk.ask(&[query("begin")]);
        talk.ask(&[run("s"), sync()]);
        talk.ask(&[query("rollback")]);
        talk.ask(&[close_statement("s"), parse("s", sql, &[]), describe_statement("s"), run("s"), sync()]);
        talk.ask(&[query("begin; alter table stale_t drop column b")]);
        talk.ask(&[run("s"), sync()]);
        talk.ask(&[query("rollback")]);
        talk.ask(&[run("s"), close_statement("s"), sync()]);
        talk.ask(&[query("drop table stale_t; reset client_min_messages")]);
    };
    let expected = "C(SET) C(DROP TABLE) C(CREATE TABLE) ZI 1 t T 2 C(SELECT 0) ZI C(ALTER TABLE) ZI E(0A000) ZI \
                    t E(0A000) ZI C(BEGIN) ZT E(0A000) ZE C(ROLLBACK) ZI 3 1 t T 2 C(SELECT 0) ZI C(BEGIN) \
                    C(ALTER TABLE) ZT E(0A000) ZE C(ROLLBACK) ZI 2 C(SELECT 0) 3 ZI C(DROP TABLE) C(RESET) ZI";
    oracle.agree(script, expected);
}

#[test]
fn tables_of_one_name_in_two_databases_have_nothing_to_do_with_each_other() {
    let version = Version::wanted();
    let first = fresh_database(version, "stale_one");
    let second = fresh_database(version, "stale_two");
    first.session("stale_one").sql("create table t as select 1 as a");
    second.session("stale_two").sql("create table t as select 2 as a, 3 as b");
    let howdah = pooler_to(&first.connection("stale_one"))
        .database("other", &second.connection("stale_two"))
        .setting("default_pool_size", "2")
        .start();
    let mut clients = [(TRANSACTION, &["1"][..]), ("other", &["2", "3"][..])].map(|(entry, row)| {
        let clients = [howdah.session(USER, entry), howdah.session(USER, entry)];
        (clients, row)
    });
    for (clients, row) in &mut clients {
        clients.iter_mut().for_each(|client| prepare_told(client, "s"));
        for client in clients.iter_mut() {
            client.sql("begin");
        }
        for client in clients.iter_mut() {
            assert_eq!(values(client, all(&[run("s"), sync()])), some(row));
        }
        clients.iter_mut().for_each(|client| drop(client.sql("commit")));
    }
}
