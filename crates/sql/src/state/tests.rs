//! Tables of statements with all their effects, and what holds for any text.

mod properties;

use super::{Argument, Class, Effect, Functions, Options, Reason, Set, SetConfig, Transaction, Value, scan};
use crate::name::Name;

/// One word or a few for each effect.
fn told(effect: &Effect<'_>) -> String {
    let name = |name: &Name<'_>| String::from_utf8_lossy(&name.to_vec()).into_owned();
    match effect {
        Effect::Set(Set { name: of, value, is_local }) => {
            let value = match value {
                Value::Written(text) => String::from_utf8_lossy(text).into_owned(),
                Value::TimeZone(text) => format!("zone {}", String::from_utf8_lossy(text)),
                Value::Unread => "?".to_owned(),
            };
            format!("set{} {}={value}", if *is_local { " local" } else { "" }, name(of))
        }
        Effect::SetConfig(SetConfig { name, value, is_local, is_certain }) => {
            let all = [name, value, is_local].map(argument).join(",");
            format!("config({all}){}", if *is_certain { "!" } else { "" })
        }
        Effect::Reset { name: of, is_local } => {
            format!("reset{} {}", if *is_local { " local" } else { "" }, name(of))
        }
        Effect::Prepare { name: of, body } => {
            format!("prepare {}={}", name(of), String::from_utf8_lossy(body))
        }
        Effect::Execute(of) => format!("execute {}", name(of)),
        Effect::Explain(of) => format!("explain {}", name(of)),
        Effect::Deallocate(of) => format!("deallocate {}", name(of)),
        Effect::Declare { name: of, hold } => {
            format!("declare {}{}", name(of), if *hold { " hold" } else { "" })
        }
        Effect::Close(of) => format!("close {}", name(of)),
        Effect::Listen(of) => format!("listen {}", name(of)),
        Effect::Unlisten(of) => format!("unlisten {}", name(of)),
        Effect::CreateTemp { name: of, on_commit_drop } => {
            format!("temp {}{}", name(of), if *on_commit_drop { " until commit" } else { "" })
        }
        Effect::Drop(of) => format!("drop {}", name(of)),
        Effect::Database(of) => format!("database {}", name(of)),
        Effect::Call { kind, .. } => format!("{kind:?}"),
        Effect::Transaction(transaction) => match transaction {
            Transaction::Savepoint(of) => format!("Savepoint {}", name(of)),
            Transaction::RollbackTo(of) => format!("RollbackTo {}", name(of)),
            Transaction::Release(of) => format!("Release {}", name(of)),
            Transaction::Commit { chain: true } => "Commit chain".to_owned(),
            Transaction::Commit { chain: false } => "Commit".to_owned(),
            Transaction::Rollback { chain: true } => "Rollback chain".to_owned(),
            Transaction::Rollback { chain: false } => "Rollback".to_owned(),
            other => format!("{other:?}"),
        },
        Effect::Discard(what) => format!("discard {what:?}"),
        Effect::Opaque(what) => format!("opaque {what:?}"),
        other => format!("{other:?}"),
    }
}

fn argument(argument: &Argument<'_>) -> String {
    match argument {
        Argument::Literal(literal) => String::from_utf8_lossy(literal.text).into_owned(),
        Argument::Boolean(value) => value.to_string(),
        Argument::Parameter(number) => format!("${number}"),
        Argument::Listed => "listed".to_owned(),
        Argument::Unread => "?".to_owned(),
    }
}

fn all_told(text: &str, options: Options<'_>) -> String {
    let effects = scan(text.as_bytes(), options);
    let list = effects.list();
    let is_stateless =
        list.iter().all(|(_, effect)| matches!(effect, Effect::Transaction(_) | Effect::SetTransaction));
    assert_eq!(effects.is_plain(), list.is_empty(), "{text}");
    assert_eq!(effects.is_stateless(), is_stateless, "{text}");
    let list: Vec<_> = list.iter().map(|(at, effect)| format!("{at}:{}", told(effect))).collect();
    list.join(" | ")
}

/// All effects of one statement.
fn check(text: &str, expect: &str) {
    let told = all_told(text, Options::default());
    let expect: Vec<_> =
        expect.split(" | ").filter(|part| !part.is_empty()).map(|part| format!("0:{part}")).collect();
    assert_eq!(told, expect.join(" | "), "{text}");
}

/// All effects of several statements, each with the statement's number.
fn check_many(text: &str, expect: &str) {
    assert_eq!(all_told(text, Options::default()), expect, "{text}");
}

#[test]
fn ordinary_statements_have_no_effects() {
    for text in [
        "",
        " ; ;; -- nothing\n",
        "SELECT abalance FROM pgbench_accounts WHERE aid = 12345;",
        "(select 1) union (select 2)",
        "with a as (insert into t values (1) returning x) select * from a",
        "insert into t (set_config, b) values ('set_config(''a'',''b'',false)', 2)",
        "update t set nextval = nextval + 1",
        "select 'x;' || $$set a=b;$$ || E'\\';set a=b'",
        "select temp, temporary from weather where temp > 3",
        "select temp from t",
        "insert into temp (a) values (1)",
        "insert into temp select 1",
        "merge into temp t using s on t.a = s.a when matched then do nothing",
        "select 1 into temp from x",
        "select a into b from c",
        "select * from pg_temp.t",
        "select * from pg_settings where name = 'a' for update",
        "select pg_advisory_xact_lock(1), pg_try_advisory_xact_lock_shared(1)",
        "select \"NEXTVAL\"('a')",
        "select nextval from t /* nextval('x') */ -- nextval('y')",
        "values (1), (2)",
        "table t",
        "copy t from stdin with (format csv)",
        "explain analyze select 1",
        "explain (select 1)",
        "explain create temp table t as select 1",
        "show search_path",
        "lock table t in share mode",
        "alter role r set search_path = a",
        "alter system set work_mem = '1MB'",
        "alter table t alter column a set default nextval('s')",
        "alter table t alter a set default pg_catalog.nextval('s')",
        "create table t (a int default nextval('s'), b text)",
        "create table t as select 1",
        "create view v as select set_config('a', 'b', false)",
        "create function f() returns int language sql as $$ select set_config('a','b',false) $$",
        "create function f() returns int begin atomic select 1; select case when a then b end; end",
        "create or replace procedure p() begin atomic select x.end, 1 as end; select lastval(); end",
        "create rule r as on insert to t do (select 1; select nextval('s'))",
        "create index on t (temp)",
        "vacuum t",
        "comment on table t is 'set a=b'",
        "grant select on t to x",
        "drop index i",
    ] {
        check(text, "");
    }
}

#[test]
fn settings_are_named_with_their_values() {
    check("SET search_path TO a, \"B\" ;", "set search_path=a, \"B\"");
    check("set session work_mem = '4MB'", "set work_mem='4MB'");
    check("SET LOCAL work_mem='4MB' -- end", "set local work_mem='4MB'");
    check("/*x*/set/*y*/my.\"Own\"/*z*/=/**/-1", "set my.Own=-1");
    check("set x to default", "reset x");
    check("set local x = default", "reset local x");
    check("set x from current", "set x=?");
    check("set time zone 'UTC'", "set timezone=zone 'UTC'");
    check("set time zone interval '1' hour to minute", "set timezone=zone interval '1' hour to minute");
    check("set local time zone -7", "set local timezone=zone -7");
    check("set time zone local", "reset timezone");
    check("set timezone = local", "set timezone=local");
    check("set role bob", "set role=bob");
    check("set local role none", "set local role=none");
    check("set role to 'bob'", "set role='bob'");
    check("set session role bob", "set role=bob");
    check("set session authorization \"Bob\"", "set session_authorization=\"Bob\"");
    check("set session session authorization bob", "set session_authorization=bob");
    check("set local session authorization bob", "set local session_authorization=bob");
    check("set session authorization default", "reset session_authorization");
    check("set names 'utf8'", "set client_encoding='utf8'");
    check("set names", "reset client_encoding");
    check("set schema 'a'", "set search_path='a'");
    check("set schema = 'a'", "set schema='a'");
    check("set xml option document", "set xmloption=document");
    check("set seed to 0.5", "set seed=0.5");
    check("reset all", "ResetAll");
    check("reset My.x", "reset my.x");
    check("reset time zone", "reset timezone");
    check("reset session authorization", "reset session_authorization");
    check("reset role", "reset role");
    check("set transaction isolation level serializable", "SetTransaction");
    check("set local transaction read only", "SetTransaction");
    check("set constraints all deferred", "SetTransaction");
    check(
        "set session characteristics as transaction isolation level repeatable read, read only not deferrable",
        "set default_transaction_isolation='repeatable read' | set default_transaction_read_only=on \
         | set default_transaction_deferrable=off",
    );
}

#[test]
fn set_config_is_read_where_its_arguments_are_constants_or_parameters() {
    check("select set_config('a.b', 'c', false)", "config('a.b','c',false)!");
    check("select pg_catalog.set_config('search_path', '', false)", "config('search_path','',false)!");
    check("SELECT \"set_config\"('a', $1::text, TRUE) AS x", "config('a',$1,true)!");
    check("select set_config($1, $2, $3)", "config($1,$2,$3)!");
    check(
        "select set_config('a', '1', false), set_config('b', '2', false)",
        "config('a','1',false)! | config('b','2',false)!",
    );
    check("select set_config('a', 'b', false) where false", "config('a','b',false)");
    check("select coalesce(set_config('a', 'b', false))", "config('a','b',false)");
    check("select case when x then set_config('a', 'b', false) end", "config('a','b',false)");
    check("select set_config('a' || 'b', 'c', false)", "config(?,?,?)!");
    check("select set_config('a', lower('C'), false)", "config('a',?,?)!");
    check("select set_config(E'a', 'c', 'f')", "config(?,'c',?)!");
    check("select set_config('a', 'c'::char(1), false)", "config('a',?,?)!");
    check("select set_config /* x */ ( 'a', 'b', true )", "config('a','b',true)!");
    check("update pg_settings set setting = 'x' where name = 'a'", "HiddenSet");
    check("update only pg_catalog.pg_settings set setting = 'x'", "HiddenSet");
    check("select set_limit(0.5)", "HiddenSet");
}

#[test]
fn functions_are_found_anywhere() {
    check("select pg_advisory_lock(1, 2)", "LockTake");
    check("select a from t where pg_try_advisory_lock(t.id) limit 1", "LockTake");
    check("select PG_Advisory_Unlock(1)", "LockRelease");
    check("select \"pg_catalog\".\"pg_advisory_unlock_all\"()", "LockReleaseAll");
    check("insert into t values (nextval('s'))", "SequenceAdvance");
    check("insert into t values (default, nextval('s'))", "SequenceAdvance");
    check("alter table t add column a int default nextval('s')", "SequenceAdvance");
    check("select setval('s', 1)", "SequenceAdvance");
    check("select currval('s'), lastval()", "SequenceRead | SequenceRead");
    check("select lo_open(1, 2)", "LargeObject");
    check("select dblink_connect('c', 'dbname=x')", "ConnectionOpen");
    check("select dblink_disconnect('c')", "ConnectionClose");
    check("select pg_create_logical_replication_slot('s', 'p', true)", "SlotCreate");
    check("select pg_backup_start('l')", "BackupStart");
    check("select pg_replication_origin_session_setup('o')", "OriginSetup");
    check("select setseed(0.1)", "Seed");
    check("select pg_notify('a', 'b')", "Notify");
    check("select query_to_xml('select 1', true, true, '')", "opaque RunsText");
    check("copy (select nextval('s')) to stdout", "SequenceAdvance");
    check("explain analyze select nextval('s')", "SequenceAdvance");
    check("create table t as select nextval('s')", "SequenceAdvance");
    check("select nextval\n--x\n('s')", "SequenceAdvance");
    check("create materialized view v as select lastval()", "SequenceRead");
}

#[test]
fn names_of_statements_cursors_and_channels_are_told() {
    check(
        "prepare P (int, text) as select set_config('a', $1, false)",
        "prepare p=select set_config('a', $1, false)",
    );
    check("prepare \"P q\" as select 1;", "prepare P q=select 1");
    check("execute p(1)", "execute p");
    check("execute p(nextval('s'))", "execute p | SequenceAdvance");
    check("explain analyze execute p", "execute p");
    check("explain (costs off, analyze) execute p", "execute p");
    check("create table t as execute p(1)", "execute p");
    check("create temp table t as execute p", "temp t | execute p");
    check("deallocate p", "deallocate p");
    check("deallocate prepare p", "deallocate p");
    check("deallocate prepare", "deallocate prepare");
    check("deallocate prepare all", "DeallocateAll");
    check("deallocate \"all\"", "deallocate all");
    check("declare c cursor with hold for select 1", "declare c hold");
    check("declare c binary insensitive no scroll cursor without hold for select 1", "declare c");
    check("close C", "close c");
    check("close all", "CloseAll");
    check("listen \"Ch\"", "listen Ch");
    check("unlisten ch", "unlisten ch");
    check("unlisten *", "UnlistenAll");
    check("notify ch, 'x'", "Notify");
    check("load 'lib'", "Load");
    check("discard all", "discard All");
    check("discard temporary", "discard Temp");
    check("discard sequences", "discard Sequences");
    check("do $$begin set x = 1; end$$", "opaque Do");
    check("call p(nextval('s'))", "opaque Call | SequenceAdvance");
}

#[test]
fn temporary_objects_are_told_by_name() {
    check("create temp table t (a int)", "temp t");
    check("CREATE LOCAL TEMPORARY TABLE IF NOT EXISTS \"T\" (a int) ON COMMIT DROP", "temp T until commit");
    check("create temp table t on commit drop as select 1", "temp t until commit");
    check("create temp table t on commit delete rows", "temp t");
    check("create or replace temp view v as select 1", "temp v");
    check("create temp recursive view v (a) as select 1", "temp v");
    check("create temporary sequence s", "temp s");
    check("create table pg_temp.t (a int)", "temp pg_temp.t");
    check("create function \"pg_temp\".f() returns int language sql as 'select 1'", "temp pg_temp.f");
    check("create view v as select * from pg_temp.t", "temp pg_temp.t");
    check("select 1 as a into temp t from x", "temp t");
    check("select 1 into temporary table t", "temp t");
    check("select 1 into local temp t", "temp t");
    check("select 1 into pg_temp.t", "temp pg_temp.t");
    check("with x as (select 1) select * into temp y from x", "temp y");
    check("explain analyze create temp table t as select 1", "temp t");
    check("drop table if exists t, s.u cascade", "drop t | drop s.u");
    check("drop function pg_temp.f(int, text), g", "drop pg_temp.f | drop g");
}

#[test]
fn transactions_are_told() {
    check("begin isolation level serializable", "Begin");
    check("start transaction read only", "Begin");
    check("commit work", "Commit");
    check("end and chain", "Commit chain");
    check("abort transaction and no chain", "Rollback");
    check("rollback and chain", "Rollback chain");
    check("savepoint S", "Savepoint s");
    check("rollback to s", "RollbackTo s");
    check("rollback work to savepoint \"S\"", "RollbackTo S");
    check("release savepoint savepoint", "Release savepoint");
    check("release savepoint", "Release savepoint");
    check("prepare transaction 'x'", "Prepare");
    check("commit prepared 'x'", "FinishPrepared");
}

#[test]
fn statements_are_numbered_as_their_answers_are() {
    check_many("select 1; set a = 1; ; select 2; reset a", "1:set a=1 | 3:reset a");
    check_many("begin; set local a = 1; commit;", "0:Begin | 1:set local a=1 | 2:Commit");
    check_many("select ';'; set a = ';'", "1:set a=';'");
    check_many("create rule r as on insert to t do (select 1; select 2); set a = 1", "1:set a=1");
    check_many(
        "create function f() returns int begin atomic select case a when 1 then 2 end; end; set a = 1",
        "1:set a=1",
    );
    check_many("create function begin() returns int as $$;$$ language sql; set a = 1", "1:set a=1");
    check_many("create procedure p() begin atomic end; begin", "1:Begin");
    check_many("begin; select 1; end; listen a", "0:Begin | 2:Commit | 3:listen a");
}

#[test]
fn what_is_not_read_counts_as_state() {
    for text in [
        "select 'open",
        "select 1 /* open",
        "select \"open",
        "select $a$ open",
        "select U&\"\\0061\"('a')",
        "frobnicate x",
        "(((",
        "select 1; (;",
        "'x'",
        "set",
        "set x",
        "discard",
        "create temp thing x",
        "select 1; listen",
    ] {
        assert!(all_told(text, Options::default()).ends_with("Unread"), "{text}");
    }
}

#[test]
fn options_change_what_is_read() {
    let off = Options { standard_conforming_strings: false, ..Options::default() };
    assert_eq!(all_told(r"select '\'; set a = 1; --'", Options::default()), "1:set a=1");
    assert_eq!(all_told(r"select '\'; set a = 1; --'", off), "");
    let unsafe_one = Options { is_ascii_safe: false, ..Options::default() };
    assert_eq!(all_told("select 'a'", unsafe_one), "");
    assert_eq!(all_told("select 'ä'; select 1", unsafe_one), "0:Unread");
    let functions = Functions::with(["my_state", "f", "dbms_output_enable"]);
    let named = Options { functions: &functions, ..Options::default() };
    assert_eq!(all_told("select s.My_State(), \"f\"(1), g(1), f", named), "0:Named | 0:Named");
    assert_eq!(all_told("select my_state()", Options::default()), "");
}

fn check_class(text: &str, expect: Class) {
    let effects = scan(text.as_bytes(), Options::default()).list();
    assert_eq!(effects.first().map(|(_, effect)| effect.class()), Some(expect), "{text}");
}

#[test]
fn each_effect_has_its_class() {
    check_class("set a = 1", Class::Carried);
    check_class("set local a = 1", Class::None);
    check_class("set search_path = PG_TEMP, public", Class::Pins(Reason::TempSearchPath));
    check_class("select set_config('search_path', 'pg_temp', false)", Class::Pins(Reason::TempSearchPath));
    check_class("select set_config('a', $1, false)", Class::Carried);
    check_class("select set_config('a', b, false) from t", Class::Pins(Reason::UnreadSetting));
    // As pg_dump begins.
    let dumps = "SELECT set_config(name, 'view, foreign-table', false) FROM pg_settings WHERE name = 'x'";
    check_class(dumps, Class::Carried);
    check_class("select set_config(name, 'a', false) from pg_catalog.pg_settings", Class::Carried);
    for not_alone in [
        "select set_config(name, 'a', false) from pg_settings, t",
        "select set_config(name, 'a', false) from pg_settings s join t using (a)",
        "select set_config(name, 'a', false) from (select 'a.b' as name from pg_settings) x",
        "select set_config(name, 'a', false) from other.pg_settings",
        "select set_config(name || 'x', 'a', false) from pg_settings",
        "select set_config(name, 'a', false) from t",
        "with pg_settings as (select 'a.b' as name) select set_config(name, 'a', false) from pg_settings",
    ] {
        check_class(not_alone, Class::Pins(Reason::UnreadSetting));
    }
    check_class("select set_config('a', b, true) from t", Class::Pins(Reason::UnreadSetting));
    check_class("select set_config('a', 'b', true) from t", Class::None);
    check_class("set seed = 0.5", Class::Pins(Reason::Seed));
    check_class("create temp table t (a int) on commit drop", Class::None);
    check_class("declare c cursor with hold for select 1", Class::Pins(Reason::HoldCursor));
    check_class("select pg_advisory_unlock(1)", Class::Ends);
    check_class("do 'x'", Class::Unseen);
    check_class("x", Class::Pins(Reason::Unread));
}

#[test]
fn written_set_can_be_set_again() {
    for (text, expect) in [
        ("set local a . b = 'c' ; ", "SET a . b\nTO 'c'"),
        ("set session time zone 'UTC'", "SET TIME ZONE 'UTC'"),
        ("set role bob", "SET role\nTO bob"),
    ] {
        let list = scan(text.as_bytes(), Options::default()).list();
        let [(0, Effect::Set(set))] = &list[..] else { panic!("{text}") };
        let mut out = Vec::new();
        assert!(set.write(&mut out));
        assert_eq!(String::from_utf8_lossy(&out), expect, "{text}");
    }
}

#[test]
fn whole_databases_are_named_where_nobody_may_be_in_them() {
    check("drop database a", "database a");
    check("DROP DATABASE IF EXISTS \"A b\" WITH (FORCE)", "database A b");
    check("create database a", "database a | database template1");
    check("create database a template b", "database a | database b");
    check("create database a with owner = template template = \"B\"", "database a | database B");
    check("create database a connection limit -1 template b", "database a | database b");
    check("create database a encoding 'UTF8' template = default", "database a | database template1");
    check("create database a template 'b'", "database a | database template1");
    check("alter database a rename to b", "database a | database b");
    check("alter database a set tablespace t", "database a");
    for text in [
        "alter database a set work_mem = 1",
        "alter database a owner to b",
        "alter table database rename to b",
        "create table database (n int)",
        "drop owned by database",
        "create database",
        "alter database",
        "drop database",
    ] {
        check(text, "");
    }
}
