//! What the grammar alone says of statements: the names that are left to the catalog, or why it need not be asked.

use crate::{Needs, STACK_BYTES, Why, read, unfit};

fn of(text: &str) -> Result<Needs, Why> {
    let masked = sql::fingerprint::masked(text.as_bytes()).map_err(|why| unfit(text.as_bytes(), why))?;
    read(&masked)
}

#[track_caller]
fn primary(text: &str, why: Why) {
    assert_eq!(of(text), Err(why), "{text}");
}

/// Relations as they are, functions with f:, operators with o:, types with t:, fields with a point, WITH with w:.
#[track_caller]
fn needs(text: &str, wanted: &str) {
    let needs = of(text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
    let mut list: Vec<String> = Vec::new();
    for (kind, names) in
        [("", &needs.relations), ("f:", &needs.functions), ("o:", &needs.operators), ("t:", &needs.types)]
    {
        list.extend(names.iter().map(|name| match &name.schema {
            Some(schema) => format!("{kind}{schema}.{}", name.name),
            None => format!("{kind}{}", name.name),
        }));
    }
    list.extend(needs.fields.iter().map(|field| format!(".{field}")));
    list.extend(needs.ctes.iter().map(|cte| format!("w:{cte}")));
    let mut wanted: Vec<&str> = wanted.split_whitespace().collect();
    wanted.sort_unstable();
    list.sort_unstable();
    assert_eq!(list, wanted, "{text}");
}

#[test]
fn every_name_of_a_query_is_collected() {
    needs("select 1", "");
    needs("SELECT abalance FROM pgbench_accounts WHERE aid = 42", "pgbench_accounts o:=");
    needs("select * from a, s.b join c using (x) natural join d", "a c d s.b");
    needs(
        "select count(*), s.f(a), max(b) filter (where g(c)) over (partition by h(d) order by i(e)) from t",
        "t f:count f:g f:h f:i f:max f:s.f",
    );
    needs("select a + b, a operator(s.@@) b, -c, d between 1 and 2", "o:+ o:- o:< o:<= o:> o:>= o:s.@@");
    needs(
        "select a like 'x', b ilike 'y', c similar to 'z', d is distinct from e, f in (1, 2), nullif(g, 1)",
        "f:pg_catalog.similar_to_escape o:= o:~ o:~~ o:~~*",
    );
    needs(
        "select a::int, cast(b as s.t), date '2001-01-01', c::text[], numeric(10,2) '1', interval '1' day",
        "t:date t:pg_catalog.int4 t:pg_catalog.interval t:pg_catalog.numeric t:s.t t:text",
    );
    needs("select t.a, (t).b, (f(x)).c, d[1:2], t.*", "f:f .a .b .c");
    needs("with w as (select f() from t) select * from w", "t w f:f w:w");
    needs("with recursive w(n) as (values (1) union all select n + 1 from w) select n from w", "w o:+ w:w");
    needs(
        "select * from f(1) as x(a int, b s.t), rows from (g(1), h(2)) with ordinality",
        "f:f f:g f:h t:pg_catalog.int4 t:s.t",
    );
    needs(
        "select extract(year from a), position('b' in c), trim(d), overlay(e placing 'f' from 1), substring(g from 2)",
        "f:pg_catalog.btrim f:pg_catalog.date_part f:pg_catalog.overlay f:pg_catalog.position f:pg_catalog.substring",
    );
    needs("select a at time zone 'utc', current_timestamp, current_user, localtime", "f:pg_catalog.timezone");
    needs(
        "select exists (select 1 from a), b = any (select c from d), array(select e from f), array[g(1)]",
        "a d f f:g o:=",
    );
    needs(
        "select case a when 1 then f() else g() end, coalesce(h(), 1), greatest(i(), 2)",
        "f:f f:g f:h f:i",
    );
    needs("(select a from b) union (select c from d) order by f() limit g() offset h()", "b d f:f f:g f:h");
    needs("values (1, f()), (2, g())", "f:f f:g");
    needs("table t", "t");
    needs("select * from a left join lateral (select f(a.x) from b) c on g(c.y)", "a b f:f f:g .x .y");
    needs(
        "select a from t group by grouping sets ((a), rollup (f(b))) having g(c) window w as (order by h(d))",
        "t f:f f:g f:h",
    );
    needs(
        "select f(a => g(1), variadic b), percentile_cont(0.5) within group (order by h(c))",
        "f:f f:g f:h f:percentile_cont",
    );
    needs("select a collate \"C\", $1, row(f(1), 2), a order by b using operator(s.<)", "f:f o:s.<");
    needs("explain (analyze, buffers) select f() from t", "t f:f");
    needs("select \"F\"(), \"T\".\"A\" from \"S\".\"T\"", "S.T f:F .A");
}

#[test]
fn what_writes_or_locks_goes_to_the_primary() {
    primary("insert into t values (1)", Why::Write);
    primary("select a into b from c", Why::Write);
    primary("create table a as select 1", Why::Write);
    primary("explain analyze delete from t", Why::Write);
    primary("explain create table a as select 1", Why::Write);
    primary("with a as (insert into b values (1) returning *) select * from a", Why::WriteWithin);
    primary("with a as (update b set c = 1) select 1", Why::WriteWithin);
    primary("select * from (with a as (delete from b returning *) select * from a) x", Why::WriteWithin);
    primary("with a as (select 1) insert into b select * from a", Why::Write);
    primary("with a as (select 1) delete from b", Why::Write);
    for strength in ["update", "no key update", "share", "key share"] {
        primary(&format!("select * from a for {strength}"), Why::Lock);
        primary(&format!("select * from (select * from a for {strength} of a skip locked) b"), Why::Lock);
    }
    primary("select 1 where exists (select 1 from a for update)", Why::Lock);
}

#[test]
fn commands_are_called_what_they_are() {
    primary("begin", Why::Transaction);
    primary("rollback to a", Why::Transaction);
    primary("set a = 1", Why::Session);
    primary("show a", Why::Session);
    primary("execute a", Why::Session);
    primary("fetch 1 from a", Why::Session);
    primary("copy a to stdout", Why::Copy);
    primary("do $$ begin end $$", Why::Code);
    primary("call a()", Why::Code);
    primary("vacuum", Why::Write);
    primary("", Why::Write);
    primary("select 1; select 2", Why::Several);
    primary("select (", Why::Unreadable);
    primary("select 'a\\'", Why::Unreadable);
    primary("table", Why::Unreadable);
}

#[test]
fn functions_that_are_known_need_no_catalog() {
    for name in ["nextval('a')", "currval('a')", "lastval()", "setval('a', 1)", "pg_catalog.nextval('a')"] {
        primary(&format!("select {name}"), Why::Sequence);
    }
    primary("select pg_advisory_lock(1)", Why::AdvisoryLock);
    primary("select pg_try_advisory_xact_lock_shared(1, 2)", Why::AdvisoryLock);
    primary("select set_config('a.b', 'c', false)", Why::Session);
    for name in [
        "txid_current",
        "pg_current_xact_id",
        "pg_export_snapshot",
        "pg_is_in_recovery",
        "pg_backend_pid",
        "inet_server_addr",
        "current_setting",
        "pg_sleep",
        "pg_notify",
        "lo_get",
        "table_to_xml",
        "pg_stat_get_numscans",
    ] {
        primary(&format!("select {name}('x')"), Why::System);
        primary(&format!("select 1 from t where a = (select {name}(1) limit 1)"), Why::System);
    }
    primary("select * from pg_temp.t", Why::Temporary);
    primary("select pg_temp.f()", Why::Temporary);
    primary("select 'a'::pg_temp_3.t", Why::Temporary);
}

#[test]
fn what_is_not_followed_goes_to_the_primary() {
    for text in [
        "select * from xmltable('a' passing b columns c int)",
        "select * from t tablesample system (1)",
        "select xmlelement(name a)",
        "select * from db.s.t",
        "select * from json_table('{}', '$' columns (a int))",
        "select json_object('a': f())",
        "with recursive a as (select 1) cycle b set c using d select 1 from a",
        "select a::setof int",
    ] {
        assert!(matches!(of(text), Err(Why::Syntax | Why::Unreadable)), "{text}: {:?}", of(text));
    }
}

#[test]
fn literals_make_no_difference() {
    let one = of("select nextid, 'x' || $1 from t where a in (1, 2, 3) and b > 1.5 limit 10");
    let two = of("select nextid, 'nextval(''s'')' || $7 from t where a in (4) and b > 2e7 limit 99;");
    assert_eq!(one, two);
    assert!(one.is_ok());
}

/// The deepest that the limits of `sql::fingerprint` let through, each in another part of the grammar.
#[test]
#[allow(clippy::disallowed_methods, reason = "the caller has the stack")]
fn nothing_that_is_let_through_is_too_deep_for_the_stack() {
    let many = sql::fingerprint::TOKENS_MAX;
    let chain = |head: &str, part: &str, tail: &str, tokens: usize| {
        format!("select {head}{}{tail}", part.repeat((many - 8) / tokens))
    };
    let texts = [
        chain("a", "+a", "", 2),
        chain("", "- ", "a", 1),
        chain("", "not ", "a", 1),
        chain("a", "::b", "", 2),
        chain("a", " is null", "", 2),
        chain("a", " and a", "", 2),
        chain("a", " collate b", "", 2),
        chain("a", ".b", "", 2),
        chain("a", " union select a", "", 3),
        chain("a from t", " join t on a", "", 4),
        chain("", "case when a then ", "1", 4),
        format!("select {}1{}", "(".repeat(60), ")".repeat(60)),
        format!("select {}1{}", "(select ".repeat(60), ")".repeat(60)),
        format!("select {}1{}", "f(".repeat(60), ")".repeat(60)),
    ];
    let work = move || {
        for text in texts {
            let shown: String = text.chars().take(30).collect();
            if let Ok(masked) = sql::fingerprint::masked(text.as_bytes()) {
                let _ = read(&masked);
            } else {
                panic!("{shown}: not let through");
            }
        }
    };
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap().join().unwrap();
}
