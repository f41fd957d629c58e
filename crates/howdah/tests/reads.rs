//! What the classifier calls a read, on real servers: it fails on no standby and writes nothing.

use reads::{Case, Judged, Verdict, Why};
use testkit::{Postgres, PostgresOptions, Raw, Version};

/// One object of each kind that a verdict can turn on.
const SCHEMA: &str = "
create table users (id serial primary key, name text, email text, created timestamptz default now(), data jsonb,
    tags text[], active boolean default true);
create table orders (id bigint primary key, user_id int references users, total numeric, at date);
insert into users (name, email, data, tags) select 'n' || i, i || '@x', '{\"a\": {\"b\": 1}}', array['x', 'y']
    from generate_series(1, 20) i;
insert into orders select i, i, i * 1.5, '2020-01-01' from generate_series(1, 20) i;
create unlogged table scratch (id int);
create sequence seq;
create view young as select id, name from users where created > now() - interval '1 day';
create view nested as select name, upper(name) as loud from young;
create view risky as select id, nextval('seq') as n from users;
create view deep_risk as select * from (select * from risky) x;
create view unlogged_view as select * from scratch;
create materialized view totals as select user_id, sum(total) as total from orders group by 1;
create table parts (id int, at date) partition by range (at);
create table parts_2020 partition of parts for values from ('2020-01-01') to ('2021-01-01');
create table mixed (id int, at date) partition by range (at);
create unlogged table mixed_2020 partition of mixed for values from ('2020-01-01') to ('2021-01-01');
create function vol() returns int language sql volatile as 'select 1';
create function stab(int) returns int language sql stable as 'select $1';
create function overloaded(int) returns int language sql stable as 'select $1';
create schema other;
create function other.overloaded(text) returns int language sql volatile as 'select 1';
create function defaulted(a int default nextval('seq')) returns int language sql stable as 'select a';
create function shout(users) returns text language sql stable as 'select upper($1.name)';
create function nextid(users) returns bigint language sql volatile as 'select nextval(''seq'')';
create function vol_equal(int, int) returns bool language sql volatile as 'select $1 = $2';
create operator === (leftarg = int, rightarg = int, function = vol_equal);
create function vol_add(int, int) returns int language sql volatile as 'select $1 + $2';
create aggregate vol_sum(int) (sfunc = vol_add, stype = int);
create aggregate my_sum(int) (sfunc = int4pl, stype = int);
create domain checked as int check (value > 0);
create domain plain as int;
create type mood as enum ('sad', 'glad');
create foreign data wrapper nowhere;
create server far foreign data wrapper nowhere;
create foreign table elsewhere (a int) server far;
create table twice (a int);
create unlogged table other.twice (a int);
create table secured (id int, owner text);
alter table secured enable row level security;
create policy own on secured using (owner = current_setting('app.user', true));
create table guarded (id int);
alter table guarded enable row level security;
create policy risk on guarded for select using (vol() = 1);
create table columns (a int);
";

/// Statements as applications and their libraries write them.
const READS: &[&str] = &[
    "select 1",
    "SELECT abalance FROM pgbench_accounts WHERE aid = 1",
    // Django
    r#"SELECT "users"."id", "users"."name", "users"."email" FROM "users" WHERE "users"."id" = 1 LIMIT 21"#,
    r#"SELECT COUNT(*) AS "__count" FROM "users" WHERE ("users"."active" AND UPPER("users"."name"::text) LIKE UPPER('%n%'))"#,
    r#"SELECT (1) AS "a" FROM "users" WHERE "users"."email" = 'x' LIMIT 1"#,
    r#"SELECT "orders"."id", "users"."name" FROM "orders" INNER JOIN "users" ON ("orders"."user_id" = "users"."id") ORDER BY "orders"."at" DESC, "users"."name" ASC NULLS LAST LIMIT 10 OFFSET 20"#,
    // Rails
    r#"SELECT "users".* FROM "users" WHERE "users"."id" IN (1, 2, 3) ORDER BY "users"."id" ASC LIMIT 11 /*application:App,controller:users*/"#,
    r#"SELECT 1 AS one FROM "users" WHERE LOWER("users"."email") = LOWER('a@b') LIMIT 1"#,
    r#"SELECT DISTINCT "users"."id", "users"."created" AS alias_0 FROM "users" LEFT OUTER JOIN "orders" ON "orders"."user_id" = "users"."id" WHERE ("orders"."total" > 10.0) ORDER BY "users"."created" DESC"#,
    r#"SELECT SUM("orders"."total") AS sum_total, "orders"."user_id" AS orders_user_id FROM "orders" GROUP BY "orders"."user_id""#,
    // Hibernate
    "select u1_0.id,u1_0.email,u1_0.name from users u1_0 where u1_0.name like '%a%' escape '' order by u1_0.id offset 0 rows fetch first 5 rows only",
    "select o1_0.id,o1_0.total,u1_0.id,u1_0.name from orders o1_0 left join users u1_0 on u1_0.id=o1_0.user_id where o1_0.id=7",
    "select count(distinct u1_0.id) from users u1_0 where exists(select 1 from orders o1_0 where o1_0.user_id=u1_0.id)",
    // SQLAlchemy
    "SELECT users.id AS users_id, users.name AS users_name \nFROM users \nWHERE users.created >= '2020-01-01'::timestamp AND users.name ILIKE '%%x%%'",
    "SELECT anon_1.id, anon_1.n FROM (SELECT users.id AS id, row_number() OVER (PARTITION BY users.name ORDER BY users.id) AS n FROM users) AS anon_1 WHERE anon_1.n = 1",
    // Prisma, PostgREST, Ecto
    r#"SELECT "public"."users"."id", "public"."users"."name" FROM "public"."users" WHERE ("public"."users"."email" = 'x' AND 1=1) ORDER BY "public"."users"."id" ASC LIMIT 1 OFFSET 0"#,
    r#"WITH pgrst_source AS ( SELECT "public"."users"."id", "public"."users"."name" FROM "public"."users" LIMIT 10 OFFSET 0 ) SELECT null::bigint AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, coalesce(json_agg(_postgrest_t), '[]') AS body FROM ( SELECT * FROM pgrst_source ) _postgrest_t"#,
    r#"SELECT u0."id", u0."name", count(o1."id") FROM "users" AS u0 LEFT OUTER JOIN "orders" AS o1 ON o1."user_id" = u0."id" GROUP BY u0."id" HAVING (count(o1."id") > 0)"#,
    // By hand
    "select data->'a'->>'b', data #>> '{a,b}', data @> '{\"a\": 1}', data ? 'a' from users where tags && array['x']",
    "select date_trunc('month', at), sum(total), avg(total), string_agg(id::text, ',' order by id) from orders group by 1 order by 1",
    "select now(), current_date, current_user, localtimestamp, extract(epoch from now()), to_char(now(), 'YYYY')",
    "select * from users where created between now() - interval '7 days' and now() and name !~ '^x' and email is not null",
    "select name, rank() over (order by id desc), lag(id, 1) over w, ntile(4) over w from users window w as (order by id)",
    "with recursive t(n) as (values (1) union all select n + 1 from t where n < 10) select sum(n) from t",
    "with users as (select 1 as id) select * from users",
    "select * from generate_series(1, 3) with ordinality as g(n, i), unnest(array[1, 2]) u, lateral (select u + n) x",
    "select coalesce(name, 'x'), nullif(id, 0), greatest(1, id), case id when 1 then 'a' else 'b' end from users",
    "select jsonb_build_object('id', id, 'tags', to_jsonb(tags)) from users where id = any('{1,2}'::int[])",
    "select u.name, x.total from users u cross join lateral (select sum(total) as total from orders o where o.user_id = u.id) x",
    "select id from users union select user_id from orders except select 3 intersect select 4 order by 1",
    "select md5(name), length(email), substring(name from 1 for 2), regexp_replace(name, 'a', 'b'), format('%s', id) from users",
    "select ts_rank(to_tsvector('english', name), plainto_tsquery('english', 'n')) from users where to_tsvector('english', name) @@ to_tsquery('n')",
    "select percentile_cont(0.5) within group (order by total), mode() within group (order by at) from orders",
    "select pg_typeof(1), pg_column_size('x'::text), 'sad'::mood, 1::plain",
    "select 'users'::regclass::oid = 1, 'x'::char(3), b'101', x'1f', E'a\\nb', $$it's$$",
    "select stab(1), my_sum(id) from users",
    "select (users).name, users.shout, u.* from users, users u where users.id = u.id",
    "select * from young",
    "select * from nested where loud = 'N1'",
    "select * from totals",
    "select * from parts where at > '2020-06-01'",
    "select * from secured",
    "select a from columns",
    "select owner from secured where id in (select user_id from orders)",
    "table users",
    "values (1, 'a'), (2, 'b')",
    "(select id from users limit 1)",
    "explain (costs off) select * from users",
    "explain analyze select count(*) from orders",
    "select 1 where (1, 2) < (3, 4) and row(1, 2) = row(1, 2) and 1 is distinct from 2",
    "select not active, active is true, id % 2, id ^ 2, -id, |/ id, ~id, id << 1 from users",
    "select array_agg(id order by id) filter (where active), bool_and(active), count(*) from users",
    "select '2020-01-01'::date + 1, timestamp '2020-01-01' at time zone 'utc', (date '2020-01-01', date '2020-01-02') overlaps (date '2020-01-01', date '2020-01-03')",
];

const PRIMARIES: &[(&str, Why)] = &[
    ("insert into users (name) values ('x')", Why::Write),
    ("select * from users for update", Why::Lock),
    ("select nextval('seq')", Why::Sequence),
    ("select * from seq", Why::Sequence),
    ("select random()", Why::Volatile),
    ("select clock_timestamp()", Why::Volatile),
    ("select gen_random_uuid()", Why::Volatile),
    ("select vol()", Why::Volatile),
    ("select public.vol() from users", Why::Volatile),
    ("select overloaded(1)", Why::Volatile),
    ("select defaulted()", Why::UnknownFunction),
    ("select missing(1)", Why::UnknownFunction),
    ("select u.nextid from users u", Why::Volatile),
    ("select (u).nextid from users u", Why::Volatile),
    ("select 1 === 2", Why::Operator),
    ("select 1 ==== 2", Why::Operator),
    ("select vol_sum(id) from users", Why::Volatile),
    ("select 1::checked", Why::Type),
    ("select null::users", Why::Type),
    ("select '1'::missing", Why::Type),
    ("select * from missing", Why::UnknownRelation),
    ("select * from scratch", Why::Unlogged),
    ("select * from twice", Why::Unlogged),
    ("select * from mixed", Why::Unlogged),
    ("select * from elsewhere", Why::Foreign),
    ("select id from risky", Why::Sequence),
    ("select id from deep_risk", Why::Sequence),
    ("select * from unlogged_view", Why::Unlogged),
    ("select * from guarded", Why::Volatile),
    ("select relname from pg_class", Why::Catalog),
    ("select * from pg_stat_activity", Why::Catalog),
    ("select * from information_schema.tables", Why::Catalog),
    ("select txid_current()", Why::System),
    ("select pg_is_in_recovery()", Why::System),
    ("with x as (delete from users returning id) select * from x", Why::WriteWithin),
];

fn judge(catalog: &mut Raw, text: &str) -> Verdict {
    let masked = match sql::fingerprint::masked(text.as_bytes()) {
        Ok(masked) => masked,
        Err(unfit) => return Verdict::Primary(reads::unfit(text.as_bytes(), unfit)),
    };
    let mut case = match Case::open(&masked) {
        Ok(case) => case,
        Err(why) => return Verdict::Primary(why),
    };
    loop {
        let rows = catalog.sql(&case.question());
        let row: Vec<_> =
            rows[0].iter().map(|value| value.as_ref().map(|value| value.as_bytes().into())).collect();
        match case.answer(&row).unwrap_or_else(|_| panic!("{text}: {row:?}")) {
            Judged::Done(verdict) => return verdict,
            Judged::More => {}
        }
    }
}

fn primary() -> Postgres {
    let server = PostgresOptions::new(Version::wanted()).setting("wal_keep_size", "128MB").start();
    server.sql(SCHEMA);
    server.sql("create table pgbench_accounts (aid int primary key, abalance int)");
    server
}

fn catalog(server: &Postgres) -> Raw {
    let mut session = server.session("postgres");
    session.sql("set search_path to pg_catalog, pg_temp");
    session
}

#[test]
fn a_read_fails_on_no_standby_and_writes_nothing() {
    let primary = primary();
    let standby = primary.standby();
    primary.wait_for_standbys(1);
    let mut catalog = catalog(&primary);
    let position = primary.session("postgres").value("select pg_current_wal_lsn()");
    let mut there = standby.session("postgres");
    testkit::eventually(std::time::Duration::from_secs(30), || {
        there.value(&format!("select pg_last_wal_replay_lsn() >= '{position}'")) == "t"
    });
    let mut here = primary.session("postgres");
    for text in READS {
        assert_eq!(judge(&mut catalog, text), Verdict::Read, "{text}");
        here.sql("begin read only");
        here.try_sql(text)
            .unwrap_or_else(|refusal| panic!("in a READ ONLY transaction: {text}: {refusal:?}"));
        assert_eq!(here.value("select pg_current_xact_id_if_assigned() is null"), "t", "{text}");
        here.sql("rollback");
        there.try_sql(text).unwrap_or_else(|refusal| panic!("on a standby: {text}: {refusal:?}"));
    }
}

#[test]
fn what_is_no_read_is_called_what_it_is() {
    let primary = primary();
    let mut catalog = catalog(&primary);
    for (text, why) in PRIMARIES {
        assert_eq!(judge(&mut catalog, text), Verdict::Primary(*why), "{text}");
    }
    // A temporary table of any session hides a table of that name for it.
    let mut other = primary.session("postgres");
    other.sql("create temp table users (id int)");
    assert_eq!(judge(&mut catalog, "select id from users"), Verdict::Primary(Why::Temporary));
    other.close();
    // A cast that need not be written can be volatile: then nothing is safe.
    assert_eq!(judge(&mut catalog, "select 1"), Verdict::Read);
    primary.sql("create function cast_it(users) returns int language sql volatile as 'select 1'");
    primary.sql("create cast (users as int) with function cast_it(users) as implicit");
    assert_eq!(judge(&mut catalog, "select 1"), Verdict::Primary(Why::Implicit));
}
