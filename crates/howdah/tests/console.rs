//! The console's tables: columns that tools know, in both protocols, and numbers that agree with what was done.
#![allow(clippy::disallowed_methods)] // programs are run, and waiting has a limit

mod stage;

use stage::{LIMIT, bare, holder, login, pooler, wait_for_pool};
use testkit::message::{self, query};
use testkit::{Howdah, Login, Message, Postgres, Raw, cell, eventually, eventually_shown};

/// Each table with its columns: `t` is text, `i` int4, `q` int8, `n` numeric.
const TABLES: [(&str, &str); 21] = [
    ("CLIENTS", SOCKET),
    ("SERVERS", SOCKET),
    ("SOCKETS", SOCKET_WITH_BUFFERS),
    ("ACTIVE_SOCKETS", SOCKET_WITH_BUFFERS),
    (
        "POOLS",
        "database t,user t,cl_active i,cl_waiting i,cl_active_cancel_req i,cl_waiting_cancel_req i,sv_active i,\
         sv_active_cancel i,sv_being_canceled i,sv_idle i,sv_used i,sv_tested i,sv_login i,maxwait i,\
         maxwait_us i,pool_mode t,load_balance_hosts t",
    ),
    ("PEER_POOLS", "peer_id i,cl_active_cancel_req i,cl_waiting_cancel_req i,sv_active_cancel i,sv_login i"),
    (
        "DATABASES",
        "name t,host t,port i,database t,force_user t,pool_size i,min_pool_size i,reserve_pool_size i,\
         server_lifetime i,pool_mode t,load_balance_hosts t,max_connections i,current_connections i,\
         max_client_connections i,current_client_connections i,paused i,disabled i",
    ),
    (
        "USERS",
        "name t,pool_size t,reserve_pool_size t,pool_mode t,max_user_connections i,current_connections i,\
         max_user_client_connections i,current_client_connections i",
    ),
    ("PEERS", "peer_id i,host t,port i,pool_size i"),
    ("LISTS", "list t,items i"),
    (
        "STATS",
        "database t,total_server_assignment_count n,total_xact_count n,total_query_count n,total_received n,\
         total_sent n,total_xact_time n,total_query_time n,total_wait_time n,total_client_parse_count n,\
         total_server_parse_count n,total_bind_count n,total_client_login_count n,\
         avg_server_assignment_count n,avg_xact_count n,avg_query_count n,avg_recv n,avg_sent n,\
         avg_xact_time n,avg_query_time n,avg_wait_time n,avg_client_parse_count n,avg_server_parse_count n,\
         avg_bind_count n,avg_client_login_count n",
    ),
    (
        "STATS_TOTALS",
        "database t,server_assignment_count n,xact_count n,query_count n,bytes_received n,bytes_sent n,\
         xact_time n,query_time n,wait_time n,client_parse_count n,server_parse_count n,bind_count n,\
         client_login_count n",
    ),
    (
        "STATS_AVERAGES",
        "database t,server_assignment_count n,xact_count n,query_count n,bytes_received n,bytes_sent n,\
         xact_time n,query_time n,wait_time n,avg_client_parse_count n,avg_server_parse_count n,\
         avg_bind_count n,avg_client_login_count n",
    ),
    ("TOTALS", "name t,value n"),
    ("PINS", "database t,user t,application_name t,reason t,statement t,current i,total n,hint t"),
    ("CONFIG", "key t,value t,default t,changeable t"),
    ("VERSION", "version t"),
    ("STATE", "key t,value t"),
    ("MEM", "name t,size i,used i,free i,memtotal i"),
    ("DNS_HOSTS", "hostname t,ttl q,addrs t"),
    ("DNS_ZONES", "zonename t,serial q,count i"),
];

/// Columns of our own, behind those that tools know.
const OURS: &[(&str, &str)] = &[
    ("CLIENTS", "pinned_since t,pin_reason t"),
    ("SERVERS", "pinned i"),
    ("POOLS", "sv_pinned i,standby t"),
    ("STATS", "total_pin_count n,avg_pin_count n"),
    ("STATS_TOTALS", "pin_count n"),
    ("STATS_AVERAGES", "avg_pin_count n"),
];

/// All columns of a table.
fn columns_of(table: &str, known: &str) -> String {
    let ours = OURS.iter().find(|(name, _)| *name == table);
    ours.map_or_else(|| known.to_owned(), |(_, ours)| format!("{known},{ours}"))
}

const SOCKET: &str = "type t,user t,database t,replication t,state t,addr t,port i,local_addr t,local_port i,\
    connect_time t,request_time t,wait i,wait_us i,close_needed i,ptr t,link t,remote_pid i,tls t,\
    application_name t,prepared_statements i,id i";

const SOCKET_WITH_BUFFERS: &str = "type t,user t,database t,replication t,state t,addr t,port i,local_addr t,\
    local_port i,connect_time t,request_time t,wait i,wait_us i,close_needed i,ptr t,link t,remote_pid i,tls t,\
    application_name t,prepared_statements i,id i,recv_pos i,pkt_pos i,pkt_remain i,send_pos i,send_remain i,\
    pkt_avail i,send_avail i";

fn described(messages: &[Message]) -> String {
    let description = messages.iter().find(|message| message.tag == b'T').expect("a row description");
    let letter = |oid: u32| match oid {
        25 => 't',
        23 => 'i',
        20 => 'q',
        1700 => 'n',
        _ => '?',
    };
    let columns: Vec<String> =
        description.column_types().iter().map(|(name, oid)| format!("{name} {}", letter(*oid))).collect();
    columns.join(",")
}

fn extended(sql: &str) -> Vec<u8> {
    message::all(&[
        message::parse("", sql, &[]),
        message::bind("", "", &[]),
        message::describe_portal(""),
        message::execute("", 0),
        message::sync(),
    ])
}

#[test]
fn every_table_has_its_columns_in_both_protocols_and_under_both_names() {
    let name = "console_tables";
    let howdah = pooler(name).start();
    let _busy = holder(&howdah, name);
    for database in ["pgbouncer", "howdah"] {
        let login = Login::new("admin", database).password(testkit::howdah::ADMIN_PASSWORD);
        let mut console = howdah.login(&login);
        for (table, known) in TABLES {
            let columns = columns_of(table, known);
            for sql in [format!("SHOW {table}"), format!("show {};", table.to_lowercase())] {
                console.send(query(&sql));
                assert_eq!(described(&console.until_ready()), columns, "{sql}");
                console.send(extended(&sql));
                let messages = console.until_ready();
                assert_eq!(described(&messages), columns, "{sql}");
                let letters = message::letters(&messages);
                assert!(letters.starts_with("1 2 T ") && letters.ends_with("C(SHOW) ZI"), "{letters}");
            }
        }
        console.send(message::all(&[
            message::parse("s", "SHOW VERSION", &[]),
            message::describe_statement("s"),
            message::sync(),
        ]));
        assert_eq!(described(&console.until_ready()), "version t");
    }
}

#[test]
fn psql_shows_tables_and_help() {
    let howdah = bare().start();
    let psql = |command: &str| {
        let mut psql = std::process::Command::new(Postgres::shared_wanted().program("psql"));
        psql.args(["-X", "-h", "127.0.0.1", "-p", &howdah.port().to_string(), "-U", "admin", "pgbouncer"]);
        let output = psql.args(["-c", command]).output().expect("psql runs");
        assert!(output.status.success(), "{command}: {output:?}");
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        out + &err
    };
    assert!(psql("SHOW VERSION").contains("PgBouncer 1."), "{}", psql("SHOW VERSION"));
    let help = psql("SHOW HELP");
    assert!(help.contains("Console usage") && help.contains("SHOW"), "{help}");
    for (table, columns) in TABLES {
        let shown = psql(&format!("SHOW {table}"));
        let first = columns.split(' ').next().expect("a name");
        assert!(shown.contains(first), "{table}: {shown}");
    }
}

#[test]
fn welcome_tells_what_drivers_ask_for() {
    let howdah = bare().start();
    let console = howdah.console();
    let told = |name: &str| console.parameters.get(name).map(String::as_str);
    assert!(told("server_version").is_some_and(|version| version.ends_with("/bouncer")));
    for (name, value) in [
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
        ("DateStyle", "ISO"),
        ("TimeZone", "GMT"),
        ("standard_conforming_strings", "on"),
        ("is_superuser", "on"),
    ] {
        assert_eq!(told(name), Some(value), "{name}");
    }
}

#[test]
fn drivers_may_set_and_show_their_parameters() {
    let howdah = bare().start();
    let mut console = howdah.console();
    for (name, value) in [
        ("client_encoding", "UTF-8"),
        ("default_transaction_isolation", "read committed"),
        ("standard_conforming_strings", "on"),
        ("datestyle", "ISO"),
        ("timezone", "GMT"),
    ] {
        assert_eq!(console.value(&format!("SHOW {name}")), value);
        assert_eq!(console.ask(query(&format!("SET {name} = 'x'"))), "N(00000) C(SET) ZI", "{name}");
    }
}

#[test]
fn misuse_is_answered_and_the_session_goes_on() {
    let name = "console_misuse";
    let howdah = pooler(name).start();
    let mut console = howdah.console();
    for (command, text) in [
        ("NONSENSE", "invalid command 'NONSENSE', use SHOW HELP;"),
        ("SHOW NONSENSE", "invalid command 'SHOW NONSENSE', use SHOW HELP;"),
        ("SHOW POOLS; SHOW POOLS", "invalid command 'SHOW POOLS; SHOW POOLS', use SHOW HELP;"),
        ("PAUSE nowhere", "no such database: nowhere"),
        ("KILL nowhere", "no such database: nowhere"),
        ("RESUME", "pooler is not paused/suspended"),
        (&format!("RESUME {name}"), &format!("database {name} is not paused")),
        ("DISABLE", "a database is required"),
        ("ENABLE", "a database is required"),
        ("DISABLE nowhere", "no such database: nowhere"),
        ("PAUSE pgbouncer", "cannot pause admin db: pgbouncer"),
        ("KILL pgbouncer", "cannot kill admin db: pgbouncer"),
        ("DISABLE pgbouncer", "cannot disable admin db: pgbouncer"),
        ("ENABLE pgbouncer", "cannot enable admin db: pgbouncer"),
        ("KILL_CLIENT me", "invalid client pointer supplied"),
        ("KILL_CLIENT 999999999", "client not found"),
        ("SET no_such_key = 1", "SET failed"),
        ("SET pool_mode = 'nonsense'", "SET failed"),
        ("SHUTDOWN NONSENSE", "invalid command 'SHUTDOWN NONSENSE', use SHOW HELP;"),
    ] {
        let refusal = console.try_sql(command).expect_err(command);
        let seen = (refusal.severity.as_str(), refusal.sqlstate.as_str(), refusal.text.as_str());
        assert_eq!(seen, ("ERROR", "08P01", text), "{command}");
    }
    assert_eq!(console.ask(query("")), "I ZI");
    // Three in a row are answered in order.
    console.send([query("SHOW STATE"), query("NONSENSE"), query("SHOW VERSION")].concat());
    assert_eq!(console.answers(3), "T D D D C(SHOW) ZI E(08P01) ZI T D C(SHOW) ZI");
    console.send(message::all(&[
        message::parse("", "NONSENSE", &[]),
        message::sync(),
        query("SHOW VERSION"),
    ]));
    assert_eq!(console.answers(2), "E(08P01) ZI T D C(SHOW) ZI");
}

#[test]
fn config_names_every_key_with_its_default() {
    let howdah = bare().setting("max_client_conn", "77").start();
    let rows = howdah.admin("SHOW CONFIG");
    let keys: Vec<&str> = rows.iter().filter_map(|row| cell(row, "key")).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    for (key, value, default, changeable) in [
        ("max_client_conn", "77", "100", "yes"),
        ("server_lifetime", "3600", "3600", "yes"),
        ("pool_mode", "transaction", "session", "yes"),
        ("server_reset_query", "DISCARD ALL", "DISCARD ALL", "yes"),
        ("listen_backlog", "128", "128", "no"),
        ("unix_socket_mode", "511", "0777", "no"),
    ] {
        let row = rows.iter().find(|row| cell(row, "key") == Some(key)).unwrap_or_else(|| panic!("no {key}"));
        let seen = ["value", "default", "changeable"].map(|column| cell(row, column).expect("a column"));
        assert_eq!(seen, [value, default, changeable], "{key}");
    }
}

#[test]
fn pools_agree_with_what_clients_do() {
    let name = "console_pools";
    let howdah = pooler(name).setting("default_pool_size", "2").start();
    let (first, _second) = (holder(&howdah, name), holder(&howdah, name));
    let mut waiting = howdah.session(name, name);
    let _idle = howdah.session(name, name);
    waiting.send(query("select 1"));
    let pool = [("cl_active", "3"), ("cl_waiting", "1"), ("sv_active", "2"), ("sv_idle", "0")];
    wait_for_pool(&howdah, name, &pool);
    wait_for_pool(&howdah, name, &[("pool_mode", "transaction"), ("user", name), ("sv_login", "0")]);
    wait_for_pool(&howdah, name, &[("maxwait", "1")]);
    let database = |column: &str| howdah.admin_value("SHOW DATABASES", &[("name", name)], column);
    assert_eq!(database("current_connections"), "2");
    assert_eq!(database("pool_size"), "2");
    assert_eq!(database("database"), name);
    drop(first);
    assert_eq!(waiting.answers(1), "T D C(SELECT 1) ZI");
    let pool = [("cl_active", "3"), ("cl_waiting", "0"), ("sv_active", "1"), ("maxwait", "0")];
    wait_for_pool(&howdah, name, &pool);
}

#[test]
fn clients_and_servers_show_who_is_linked_to_whom() {
    let name = "console_links";
    let howdah = pooler(name).start();
    let mut held = howdah.login(&login(name).parameter("application_name", "the elephant"));
    held.sql("begin");
    let pid = held.value("select pg_backend_pid()");
    let idle = howdah.session(name, name);
    let clients = howdah.admin("SHOW CLIENTS");
    let client = |raw: &Raw| {
        let port = raw.local_port().to_string();
        let found = clients.iter().find(|row| cell(row, "port") == Some(&port));
        found.unwrap_or_else(|| panic!("no client on port {port} in {clients:?}")).clone()
    };
    let server = howdah.admin("SHOW SERVERS").into_iter().next().expect("a server");
    let active = client(&held);
    for (row, column, value) in [
        (&active, "type", "C"),
        (&active, "user", name),
        (&active, "database", name),
        (&active, "state", "active"),
        (&active, "replication", "none"),
        (&active, "addr", "127.0.0.1"),
        (&active, "application_name", "the elephant"),
        (&active, "link", cell(&server, "ptr").expect("a column")),
        (&server, "link", cell(&active, "ptr").expect("a column")),
        (&server, "type", "S"),
        (&server, "state", "active"),
        (&server, "remote_pid", &pid),
        (&server, "port", &Postgres::shared_wanted().port().to_string()),
        (&server, "user", name),
        (&client(&idle), "state", "idle"),
        (&client(&idle), "link", ""),
    ] {
        assert_eq!(cell(row, column), Some(value), "{column} in {row:?}");
    }
    let time = cell(&active, "connect_time").expect("a column");
    assert!(time.starts_with("20") && time.split(' ').count() == 3, "{time}");
}

fn totals(howdah: &Howdah, database: &str) -> Vec<u64> {
    let columns = ["query_count", "xact_count", "client_login_count", "client_parse_count", "bind_count"];
    let table = howdah.admin("SHOW STATS_TOTALS");
    let row = table.iter().find(|row| cell(row, "database") == Some(database)).expect("a row");
    columns
        .iter()
        .map(|column| cell(row, column).and_then(|text| text.parse().ok()).expect("a number"))
        .collect()
}

#[test]
fn statistics_agree_with_what_was_done() {
    let name = "console_stats";
    let howdah = pooler(name).start();
    let mut raw = howdah.session(name, name);
    assert_eq!(totals(&howdah, name), [0, 0, 1, 0, 0]);
    for _ in 0..5 {
        raw.sql("select 1");
    }
    eventually(LIMIT, || totals(&howdah, name) == [5, 5, 1, 0, 0]);
    for sql in ["begin", "select pg_sleep(0.05)", "commit"] {
        raw.sql(sql);
    }
    eventually(LIMIT, || totals(&howdah, name) == [8, 6, 1, 0, 0]);
    let _second = howdah.session(name, name);
    let prepare = [message::parse("s", "select 7", &[]), message::sync()].concat();
    assert_eq!(raw.ask(prepare), "1 ZI");
    let run = [message::bind("", "s", &[]), message::execute("", 0), message::sync()].concat();
    assert_eq!(raw.ask(run), "2 D C(SELECT 1) ZI");
    eventually(LIMIT, || totals(&howdah, name)[2..] == [2, 1, 1]);
    let of = |column: &str| -> u64 {
        let text = howdah.admin_value("SHOW STATS_TOTALS", &[("database", name)], column);
        text.parse().expect("a number")
    };
    assert!(of("xact_time") >= 50_000 && of("query_time") >= 50_000, "microseconds");
    assert!(of("bytes_received") > 100 && of("bytes_sent") > 300);
    let sent = of("bytes_sent");
    raw.sql("select repeat('x', 100000)");
    eventually(LIMIT, || of("bytes_sent") >= sent + 100_000);
    let all = howdah.admin_value("SHOW TOTALS", &[("name", "total_query_count")], "value");
    assert!(all.parse::<u64>().expect("a number") >= 10, "{all}");
}

#[test]
fn lists_and_users_count_what_is_there() {
    let name = "console_lists";
    let howdah = pooler(name).line("users", name, "pool_size=3 max_user_connections=9").start();
    let _sessions: Vec<Raw> = (0..3).map(|_| holder(&howdah, name)).collect();
    let list = |list: &str| howdah.admin_value("SHOW LISTS", &[("list", list)], "items");
    assert_eq!(list("used_servers"), "3");
    // The console that asks may be counted as well.
    assert!(["3", "4"].contains(&list("used_clients").as_str()));
    let user = |column: &str| howdah.admin_value("SHOW USERS", &[("name", name)], column);
    assert_eq!(user("pool_size").trim(), "3");
    assert_eq!(user("max_user_connections"), "9");
    assert_eq!(user("current_connections"), "3");
    assert_eq!(user("current_client_connections"), "3");
}

#[test]
fn states_of_the_whole_are_shown_while_they_last() {
    let howdah = bare().start();
    eventually_shown(&howdah, "SHOW STATE", |rows| {
        let value = |key: &str| {
            let row = rows.iter().find(|row| cell(row, "key") == Some(key));
            row.and_then(|row| cell(row, "value")).map(str::to_owned)
        };
        [value("active"), value("paused"), value("suspended")]
            == [Some("yes".into()), Some("no".into()), Some("no".into())]
    });
}
