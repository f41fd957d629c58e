//! Real programs on libpq, through the pooler and without it: what they print must be the same.
//!
//! psql of two versions (the newer one can pipeline and prepare by the protocol) and pg_dump.
#![allow(clippy::disallowed_methods)] // tests run programs

mod oracle;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use oracle::{SESSION, TRANSACTION, USER, fresh_database, pooler_to};
use testkit::{Howdah, Postgres, Signal, Version, os};

/// Runs a program to its end, with `input` on its standard input.
fn run(program: &Path, arguments: &[&str], port: u16, database: &str, input: &str) -> Output {
    let mut command = Command::new(program);
    command.args(["--host=127.0.0.1", &format!("--port={port}"), "--username", USER]).args(arguments);
    command
        .arg(database)
        .env("PGAPPNAME", "drivers")
        .env("PSQLRC", "/dev/null")
        .env("PGOPTIONS", "-c geqo=off");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = os::spawn(command, Signal::Kill).expect("the program can be started");
    let mut stdin = child.stdin.take().expect("piped above");
    let text = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("own process");
    // The program may end before it has read everything.
    let _ = writer.join().expect("the writer ends");
    output
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), b"--- and to its standard error ---\n", &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// The same script must print the same in all ways; returns what that is.
#[track_caller]
fn check_psql(tools: Version, version: Version, name: &str, script: &str) -> String {
    let server = fresh_database(version, name);
    // psql shows what it was notified of when it has an answer: it must have come before that.
    let howdah = pooler_to(&server.connection(name)).setting("listen_fanout", "0").start();
    let psql = Postgres::shared(tools).program("psql");
    let arguments = ["--no-psqlrc", "--echo-all", "--set=VERBOSITY=verbose", "--set=SHOW_CONTEXT=always"];
    let direct = text(&run(&psql, &arguments, server.port(), name, script));
    for entry in [TRANSACTION, SESSION] {
        let pooled = text(&run(&psql, &arguments, howdah.port(), entry, script));
        let differs = comparable(&pooled).zip(comparable(&direct)).find(|(pooled, direct)| pooled != direct);
        assert_eq!(differs, None, "in mode {entry}, the pooler's line first");
        assert_eq!(comparable(&pooled).count(), comparable(&direct).count(), "in mode {entry}");
    }
    direct
}

/// All lines but those that name a line of PostgreSQL's sources: where the pooler has chosen an error's words, there
/// is none. Who has sent a notification has another number behind a pooler.
fn comparable(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| !line.starts_with("LOCATION:"));
    lines.map(|line| line.split(" received from server process with PID").next().unwrap_or(line))
}

const CLASSIC: &str = r#"
create table a (n int primary key, v text);
insert into a select n, 'v' || n from generate_series(1, 50) n;
select n, v from a where n < 4 order by n;
select 1/0;
select * from nothing_of_that_name;
begin;
insert into a values (1, 'again');
select 1;
rollback;
\set ON_ERROR_ROLLBACK on
begin;
insert into a values (1, 'again');
select count(*) from a;
commit;
\set FETCH_COUNT 7
select n from a order by n;
\unset FETCH_COUNT
copy a to stdout;
copy a from stdin;
100	hundred
101	x	y
\.
copy a from stdin;
100	hundred
101	hundred and one
\.
select max(n) from a;
select 'select ' || n from a where n < 4 order by n \gexec
select 7 as seven \gset
\echo :seven
select n, v from a where n = :seven \gdesc
select n, v from a where n = :seven \gx
\bind_is_unknown
do $$ begin raise notice 'a notice'; end $$;
listen drivers; notify drivers, 'payload'; unlisten *;
prepare p as select $1::int + 1; execute p(41); deallocate p;
show application_name;
set timezone = 'Asia/Tokyo'; show timezone;
show geqo;
;
select 'two' as statements\; select 'in one';
\d a
drop table a;
"#;

#[test]
fn psql_15_prints_the_same() {
    let printed = check_psql(Version::V15, Version::V15, "drivers_psql_15", CLASSIC);
    assert!(printed.contains("hundred and one") || printed.contains("22012"), "{printed}");
}

#[test]
fn psql_18_prints_the_same() {
    check_psql(Version::V18, Version::V18, "drivers_psql_18", CLASSIC);
}

/// What psql can do since 18: statements by the protocol, pipelines, flushes.
const PIPELINES: &str = r#"
select $1 as first, $2 as second \bind one two \g
select $1::int + 1 \parse named
\bind_named named 41 \g
\bind_named named 42 \g
\bind_named named x \g
select 1 \parse named
\close_prepared named
\bind_named named 1 \g
\close_prepared named
\startpipeline
select $1 \bind 1 \sendpipeline
select $1 \bind 2 \sendpipeline
\flushrequest
\getresults
\syncpipeline
select $1 \bind 3 \sendpipeline
select $1::int \bind x \sendpipeline
select $1 \bind 4 \sendpipeline
\syncpipeline
select $1 \bind 5 \sendpipeline
\endpipeline
\startpipeline
begin \bind \sendpipeline
select $1::int as piped \parse piped
\bind_named piped 6 \sendpipeline
\syncpipeline
\bind_named piped 7 \sendpipeline
commit \bind \sendpipeline
\endpipeline
\bind_named piped 8 \g
select 'simple again';
"#;

#[test]
fn psql_18_pipelines_print_the_same() {
    for version in oracle::VERSIONS {
        let name = format!("drivers_pipelines_{}", version.number());
        let printed = check_psql(Version::V18, version, &name, PIPELINES);
        assert!(printed.contains("piped") && printed.contains("simple again"), "{printed}");
    }
}

#[test]
fn variables_of_libpq_reach_the_session() {
    let server = fresh_database(Version::wanted(), "drivers_options");
    let howdah = pooler_to(&server.connection("drivers_options")).start();
    let psql = server.program("psql");
    let script = "show geqo; show application_name; show client_encoding;";
    let output =
        run(&psql, &["--no-psqlrc", "--tuples-only", "--no-align"], howdah.port(), TRANSACTION, script);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "off\ndrivers\nUTF8\n", "{}", text(&output));
}

/// What pg_dump prints, without the random key that it guards its output with since 2025.
fn dump(server: &Postgres, howdah: Option<&Howdah>, database: &str) -> String {
    let port = howdah.map_or(server.port(), Howdah::port);
    let output = run(&server.program("pg_dump"), &["--no-owner"], port, database, "");
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    printed
        .lines()
        .filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn pg_dump_dumps_the_same_and_leaves_nothing_set() {
    for version in oracle::VERSIONS {
        let name = format!("drivers_dump_{}", version.number());
        let server = fresh_database(version, &name);
        let mut owner = server.session(&name);
        owner.sql("create table a (n int primary key, v text); create view b as select * from a");
        owner.sql("insert into a select n, repeat('v', n) from generate_series(1, 300) n");
        owner.sql("create function f() returns int language sql as 'select 1'");
        let howdah = pooler_to(&server.connection(&name)).start();
        let direct = dump(server, None, &name);
        for entry in [SESSION, TRANSACTION] {
            assert_eq!(dump(server, Some(&howdah), entry), direct, "in mode {entry}");
            // Below 18 no server tells of search_path, so that in transaction mode nobody could know.
            if entry == SESSION || version == Version::V18 {
                let mut next = howdah.session(USER, entry);
                assert_eq!(next.value("show search_path"), "\"$user\", public", "in mode {entry}");
                assert_eq!(next.value("show default_transaction_isolation"), "read committed");
            }
        }
    }
}
