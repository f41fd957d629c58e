//! What lives in one server process: temporary objects, advisory locks, cursors, channels, libraries.

use super::super::kind::Kind;

pub const KINDS: &[Kind] = &[
    Kind::pins("temporary table", "create temp table t (n int)\ninsert into t values (1), (2)", TABLE, DROP),
    Kind::pins(
        "temporary table, ON COMMIT PRESERVE ROWS",
        "create temporary table t (n int) on commit preserve rows\ninsert into t values (1), (2)",
        TABLE,
        DROP,
    ),
    Kind::pins(
        "temporary table, ON COMMIT DELETE ROWS",
        "create local temporary table t (n int) on commit delete rows\ninsert into t values (1), (2)",
        TABLE,
        DROP,
    ),
    Kind::carried("temporary table, ON COMMIT DROP", "create temp table t (n int) on commit drop", TABLE, ""),
    Kind::pins("temporary table, if not exists", "create temp table if not exists t (n int)", TABLE, DROP),
    Kind::pins("CREATE TEMP TABLE AS", "create temp table t as select 1 as n", TABLE, DROP),
    Kind::pins("SELECT INTO TEMP", "select 1 as n into temp t", TABLE, DROP),
    Kind::pins("table in pg_temp", "create table pg_temp.t (n int)", TABLE, "discard temp"),
    Kind::pins(
        "table in a search_path with pg_temp",
        "set search_path = pg_temp, public\ncreate table t (n int)",
        TABLE,
        "drop table t\nreset search_path",
    ),
    Kind::pins("temporary view", "create temp view t as select 42 as n", TABLE, "drop view t"),
    Kind::pins(
        "temporary sequence",
        "create temp sequence t",
        "select last_value from t\nselect relname, relkind from pg_class where relnamespace = pg_my_temp_schema()",
        "drop sequence t",
    ),
    Kind::pins(
        "type in pg_temp",
        "create type pg_temp.kind as enum ('a', 'b')",
        "select to_regtype('pg_temp.kind')",
        "discard temp",
    ),
    Kind::pins(
        "function in pg_temp",
        "create function pg_temp.f() returns int language sql as 'select 42'",
        "select to_regprocedure('pg_temp.f()')",
        "discard temp",
    ),
    Kind::pins(
        "temporary table in a savepoint",
        "savepoint s\ncreate temp table t (n int)\nrollback to s\ncreate temp table u (n int)",
        "select relname from pg_class where relnamespace = pg_my_temp_schema() order by 1",
        "drop table u\ndrop table if exists t",
    ),
    Kind::pins("two temporary tables", "create temp table t (n int)\ncreate temp table u (n int)\ndrop table t", U, "drop table u"),
    Kind::pins("DISCARD TEMP", "create temp table t (n int)\ndiscard temp", TABLE, "discard temp"),
    Kind::pins("temporary table in DO", "do $$ begin create temp table t (n int); end $$", TABLE, DROP),
    Kind::pins("temporary table in CALL", "call matrix.makes()", TABLE, "discard temp"),
    // Advisory locks.
    Kind::pins("advisory lock", "select pg_advisory_lock(1)", LOCKS, "select pg_advisory_unlock(1)"),
    Kind::pins("advisory lock of two keys", "select pg_advisory_lock(1, 2)", LOCKS, "select pg_advisory_unlock(1, 2)"),
    Kind::pins("advisory lock, shared", "select pg_advisory_lock_shared(1)", LOCKS, "select pg_advisory_unlock_shared(1)"),
    Kind::pins("advisory lock, tried", "select pg_try_advisory_lock(1)", LOCKS, "select pg_advisory_unlock(1)"),
    Kind::pins(
        "advisory lock of a parameter",
        "select pg_advisory_lock($1::bigint) | 7",
        LOCKS,
        "select pg_advisory_unlock($1::bigint) | 7",
    ),
    Kind::pins(
        "advisory lock, nested",
        "select pg_advisory_lock(1)\nselect pg_advisory_lock(1)\nselect pg_advisory_unlock(1)",
        LOCKS,
        "select pg_advisory_unlock(1)\nselect pg_advisory_unlock(1)",
    ),
    Kind::pins(
        "advisory locks of rows",
        "select pg_advisory_lock(n) from generate_series(1, 3) n",
        LOCKS,
        "select pg_advisory_unlock_all()",
    ),
    Kind::pins(
        "advisory locks of both kinds",
        "select pg_advisory_lock(1), pg_advisory_xact_lock(2)\nselect pg_advisory_lock_shared(1)",
        LOCKS,
        "select pg_advisory_unlock(1)\nselect pg_advisory_unlock_shared(1)",
    ),
    Kind::pins(
        "advisory lock given back",
        "select pg_advisory_lock(1)\nselect pg_advisory_unlock(1)",
        LOCKS,
        "select pg_advisory_unlock_all()",
    ),
    Kind::pins(
        "advisory lock, unlock_all",
        "select pg_advisory_lock(1)\nselect pg_advisory_lock(2)\nselect pg_advisory_unlock_all()",
        LOCKS,
        "select pg_advisory_unlock_all()",
    ),
    Kind::pins(
        "advisory lock in a CASE",
        "select case when pg_try_advisory_lock(hashtext('matrix')) then 'got it' end",
        LOCKS,
        "select pg_advisory_unlock(hashtext('matrix'))",
    ),
    Kind::pins(
        "advisory lock in DO",
        "do $$ begin perform pg_advisory_lock(1); end $$",
        LOCKS,
        "select pg_advisory_unlock(1)",
    ),
    Kind::carried("advisory lock of a transaction", "select pg_advisory_xact_lock(1)", LOCKS, ""),
    // Cursors.
    Kind::pins(
        "cursor WITH HOLD",
        "declare c cursor with hold for select n from generate_series(1, 9) n",
        CURSOR,
        "close c",
    ),
    Kind::pins(
        "cursors WITH HOLD, CLOSE ALL",
        "declare c scroll cursor with hold for select n from generate_series(1, 9) n\n\
         declare d binary insensitive cursor with hold for select 1",
        CURSOR,
        "close all",
    ),
    Kind::carried("cursor", "declare c cursor for select 1\nfetch c", CURSOR, ""),
    Kind::carried("cursor WITHOUT HOLD", "declare c no scroll cursor without hold for select 1", CURSOR, ""),
    // Channels: another connection hears for the client, so that they are heard and not listed.
    Kind::carried("LISTEN", "listen matrix", HEARD, "unlisten matrix").private(),
    Kind::carried(
        "LISTEN to several",
        "listen a\nlisten \"B\"\nlisten matrix\nunlisten a",
        "notify a, 'a'\nnotify \"B\", 'b'\nnotify matrix, 'm'",
        "unlisten *",
    )
    .private(),
    Kind::carried("UNLISTEN", "listen matrix\nlisten a\nunlisten *", HEARD, "unlisten *").private(),
    // Libraries and the seed.
    Kind::pins("LOAD", "load 'auto_explain'", "show auto_explain.log_min_duration", ""),
    Kind::pins(
        "LOAD and SET",
        "load 'auto_explain'\nset auto_explain.log_min_duration = '17s'",
        "show auto_explain.log_min_duration",
        "",
    ),
    Kind::pins("setseed", "select setseed(0.5)", "select random()", "").private(),
    Kind::pins("SET seed", "set seed = 0.5", "select random()", "").private(),
    // Large objects.
    Kind::carried(
        "large-object descriptor",
        "select lo_open(424242, 262144)\nselect loread(0, 2)",
        "select loread(0, 3)",
        "",
    ),
    // All at once.
    Kind::pins(
        "DISCARD ALL",
        "set work_mem = '5MB'\nprepare p as select 1\ncreate temp table t (n int)\nlisten a\n\
         select pg_advisory_lock(1)\ndeclare c cursor with hold for select 1\nset role matrix_role\ndiscard all",
        "show work_mem\nexecute p\nselect count(*) from t\nselect current_user\nfetch c\nselect pg_listening_channels()",
        "discard all",
    )
    .alone(),
    Kind::pins(
        "all at once",
        "set work_mem = '5MB'\nprepare p as select 42\ncreate temp table t (n int)\n\
         select pg_advisory_lock(1)\ndeclare c cursor with hold for select 1\nset role matrix_role",
        "show work_mem\nexecute p\nselect count(*) from t\nselect current_user\nfetch c\n\
         select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
        "reset role\ndiscard all",
    ),
];

const TABLE: &str = "select count(*) from t\n\
     select relname, relkind from pg_class where relnamespace = pg_my_temp_schema() order by 1";
const U: &str = "select count(*) from u";
const DROP: &str = "drop table t";
const LOCKS: &str = "select mode, classid, objid, objsubid from pg_locks \
     where locktype = 'advisory' and pid = pg_backend_pid() order by 1, 2, 3, 4";
const CURSOR: &str = "select name, is_holdable from pg_cursors where is_holdable order by 1\nfetch 2 from c";
const HEARD: &str = "notify matrix, 'heard'";
