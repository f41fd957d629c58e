//! Applications that were not written for poolers, unmodified, in transaction mode: 50 connections over 5 servers, and
//! they find what they find without a pooler.
//!
//! `cargo xtask apps` runs all of them; without it, those that are quick.
#![allow(clippy::disallowed_methods)] // tests run programs

mod apps;
mod oracle;

use std::collections::BTreeSet;
use std::process::Command;

use apps::tools::{
    go, go_program, go_sources, java_project, node_packages, python, python_packages, python_sources, ruby,
};
use apps::{Stand, Way, files, is_asked_for};

const DJANGO: &str = "5.2.19";
const DJANGO_PACKAGES: [&str; 2] = ["django==5.2.19", "psycopg[binary]==3.3.9"];
const DJANGO_TEST_PACKAGES: [&str; 2] = ["django==5.2.19", "psycopg[binary,pool]==3.3.9"];
const NODE_PACKAGES: [&str; 5] =
    ["pg@8.13.1", "pg-cursor@2.12.1", "pg-copy-streams@6.0.6", "node-pg-migrate@7.9.0", "postgres@3.4.5"];
const QUEUE_PACKAGES: [&str; 2] = ["procrastinate==3.10.0", "psycopg[binary]==3.3.9"];

fn python_program(name: &str, packages: &[&str]) -> Command {
    let mut command = Command::new(python());
    command.arg(files(name).join("main.py")).env("PYTHONPATH", python_packages(packages));
    command
}

#[test]
fn a_django_application_migrates_and_serves() {
    let found = Stand::new("django").compare(|way| way.run(python_program("django", &DJANGO_PACKAGES)));
    assert!(found.contains("counted 300\n") && !found.contains("Error"), "{found}");
}

#[test]
fn a_queue_of_jobs_wakes_its_workers_by_notify() {
    let found = Stand::new("queue").compare(|way| {
        let mut command = python_program("queue", &QUEUE_PACKAGES);
        command.env("APP_WORKERS", "5");
        way.run(command)
    });
    assert!(found.contains("succeeded 300\n"), "{found}");
}

#[test]
fn a_dump_and_its_restore_are_the_same() {
    let stand = Stand::new("dump");
    for database in ["dump", "dump_direct"] {
        stand.server.session(database).sql(DUMPED);
    }
    let program = |name: &str| Command::new(stand.server.program(name));
    let found = stand.compare(|way| {
        let archive = testkit::TempDir::new();
        let path = archive.join("archive");
        let mut dump = program("pg_dump");
        dump.args(["--format=directory", "--jobs=3", "--file"]).arg(&path);
        way.run(dump);
        let restored = format!("{}_restored", way.database);
        let mut create = program("createdb");
        create.arg(&restored);
        way.run(create);
        let mut restore = program("pg_restore");
        restore.args(["--jobs=4", "--exit-on-error", "--dbname", &restored]).arg(&path);
        way.run(restore);
        let mut again = program("pg_dump");
        again.args(["--no-owner", "--dbname", &restored]);
        let text = Way { database: &restored, ..way }.run(again);
        // The key that guards the output is another each time.
        text.lines().filter(|line| !line.contains("restrict ")).collect::<Vec<_>>().join("\n")
    });
    assert!(found.contains("CREATE INDEX"), "{found}");
}

#[test]
fn migrations_of_many_processes_at_once_run_once() {
    if !is_asked_for("golang-migrate") {
        return;
    }
    let found = Stand::new("migrate").compare(|way| way.run(Command::new(go_program("migrate"))));
    assert_eq!(found.matches("up at 2 false").count(), 1, "{found}");
}

#[test]
fn a_store_of_hibernate_and_flyway_over_hikari_keeps_its_books() {
    if !is_asked_for("hibernate") {
        return;
    }
    let classpath = java_project("hibernate");
    let found = Stand::new("hibernate").compare(|way| {
        let mut command = Command::new("java");
        command.args(["-cp", &classpath, "store.Main"]);
        way.run(command)
    });
    assert!(found.contains("3000 orders, 3000 different") && !found.contains("Exception"), "{found}");
}

#[test]
fn a_library_of_activerecord_lends_its_books() {
    if !is_asked_for("rails") {
        return;
    }
    ruby();
    let found = Stand::new("rails").compare(|way| {
        let mut command = ruby();
        command.arg(files("rails").join("main.rb"));
        way.run(command)
    });
    assert!(found.contains("heard 300 twice 0") && found.contains("done"), "{found}");
}

#[test]
fn a_shop_of_node_takes_its_orders() {
    if !is_asked_for("node") {
        return;
    }
    let packages = node_packages(&NODE_PACKAGES);
    let found = Stand::new("node").compare(|way| {
        let mut command = Command::new("node");
        command.arg(files("node").join("main.js")).env("NODE_PATH", &packages);
        way.run(command)
    });
    assert!(found.contains("heard 294 twice 0"), "{found}");
}

#[test]
fn the_tests_of_django_for_postgresql_fail_no_more_than_without() {
    if !is_asked_for("django's own tests") {
        return;
    }
    let sources = python_sources("django", DJANGO);
    let packages = python_packages(&DJANGO_TEST_PACKAGES);
    let settings = files("django_tests");
    let found = Stand::new("django_tests").compare(|way| {
        let mut command = Command::new(python());
        command.arg("runtests.py").current_dir(sources.join("tests"));
        command.env("PYTHONPATH", format!("{}:{}", settings.display(), packages.display()));
        command.args(["--settings=against", "--parallel=1", "--noinput", "-v1"]).args(DJANGO_TESTS);
        // It ends with a failure where there is one; which is what is compared.
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$@\" 2>&1 | grep -E '^(FAIL|ERROR|Ran|OK|FAILED)'", "sh"]);
        shell.arg(command.get_program()).args(command.get_args()).current_dir(sources.join("tests"));
        command.get_envs().for_each(|(name, value)| {
            if let Some(value) = value {
                shell.env(name, value);
            }
        });
        let text = way.run(shell);
        println!("{text}");
        text.lines().map(|line| line.split(" in ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
    });
    assert!(found.contains("Ran "), "{found}");
}

#[test]
fn the_tests_of_pgx_fail_no_more_than_without() {
    if !is_asked_for("pgx") {
        return;
    }
    let sources = go_sources("github.com/jackc/pgx/v5", "v5.12.0");
    // Some of its tests leave connections open that keep their servers for temporary tables.
    let stand = Stand::with_servers("pgx", 20);
    let run = |port: u16, database: &str| {
        let mut command = go(&sources);
        command.args(["test", "-count=1", "-p=1", "-json", "-timeout=200s", "-skip", PGX_SKIPPED]);
        let place = format!("host=127.0.0.1 port={port} user=postgres dbname={database}");
        command.arg("./...").env("PGX_TEST_DATABASE", &place).env("PGX_TEST_TCP_CONN_STRING", &place);
        let output = command.output().expect("go runs");
        verdicts(&String::from_utf8_lossy(&output.stdout))
    };
    let direct = run(stand.server.port(), "pgx_direct");
    let pooled = run(stand.howdah.port(), "pgx");
    let packages: BTreeSet<&str> = direct.0.iter().filter_map(|name| name.split(' ').next()).collect();
    for package in packages {
        let of = |names: &BTreeSet<String>| {
            names.iter().filter(|name| name.split(' ').next() == Some(package)).count()
        };
        let counts = [&direct.0, &direct.1, &pooled.0, &pooled.1].map(of);
        println!(
            "{package}: pass and fail straight {} {}, through {} {}",
            counts[0], counts[1], counts[2], counts[3]
        );
    }
    let only: BTreeSet<_> = pooled.1.difference(&direct.1).collect();
    println!("pgx: {} fail only through: {only:#?}", only.len());
    assert!(direct.0.len() > 500, "the tests run at all");
}

/// Names of tests that passed and that failed.
fn verdicts(json: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut found = (BTreeSet::new(), BTreeSet::new());
    for line in json.lines() {
        let field = |name: &str| {
            let rest = line.split_once(&format!("\"{name}\":\""))?.1;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let Some(test) = field("Test") else { continue };
        let name = format!("{} {test}", field("Package").unwrap_or_default());
        match field("Action").as_deref() {
            Some("pass") => found.0.insert(name),
            Some("fail") => found.1.insert(name),
            _ => false,
        };
    }
    found
}

/// It ends its server by the process id that it was told, which is nobody's behind a pooler, and waits for that.
const PGX_SKIPPED: &str = "TestConnCopyFromConnectionTerminated";

const DUMPED: &str = "create table a (n int primary key, v text); create view b as select * from a;
insert into a select n, repeat('v', n % 50) from generate_series(1, 3000) n;
create index by_v on a (v); create table c (id serial primary key, n int references a);
insert into c (n) select n from a; create function f() returns int language sql as 'select 1';
create table d (v jsonb); insert into d select jsonb_build_object('n', n) from a;
create sequence s start 7; create schema other; create table other.e (n int default nextval('s'));
create materialized view m as select count(*) from a; select lo_from_bytea(777, 'large');
create type mood as enum ('good', 'bad'); create domain even as int check (value % 2 = 0);
comment on table a is 'it''s a table'; create rule r as on insert to b do instead nothing;
create trigger t before update on a for each row execute function suppress_redundant_updates_trigger()";

/// What of Django's tests has to do with PostgreSQL's sessions.
const DJANGO_TESTS: [&str; 14] = [
    "postgres_tests",
    "backends",
    "transactions",
    "transaction_hooks",
    "handlers",
    "select_for_update",
    "async.test_async_queryset",
    "db_functions",
    "bulk_create",
    "get_or_create",
    "force_insert_update",
    "timezones",
    "migrations",
    "servers",
];
