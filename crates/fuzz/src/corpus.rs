//! Sound bytes to begin with.

use wire::encode::{self, Severity};
use wire::server::TransactionStatus;
use wire::startup::Version;

fn made(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

/// First packets: startup messages and the requests in their place.
pub(crate) fn first_packets() -> Vec<Vec<u8>> {
    let startup = |pairs: &[(&str, &str)], version| {
        made(|out| {
            let pairs = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            encode::startup(out, version, pairs);
        })
    };
    let long = "x".repeat(9_000);
    vec![
        startup(&[("user", "u"), ("database", "d")], Version::V3_0),
        startup(&[("user", "u"), ("database", "d"), ("_pq_.command_tag", "1")], Version::V3_2),
        startup(&[("user", "u"), ("options", "-c search_path=a,b --geqo=off")], Version::V3_0),
        startup(&[("user", "u"), ("replication", "database"), ("DateStyle", "ISO")], Version::V3_0),
        startup(&[("user", "u"), ("application_name", &long)], Version::V3_0),
        encode::SSL_REQUEST.to_vec(),
        vec![0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30],
        made(|out| encode::cancel_request(out, 7, b"abcd")),
        made(|out| encode::cancel_request(out, 7, &[7; 32])),
    ]
}

/// Answers of Patroni's.
pub(crate) fn members() -> Vec<Vec<u8>> {
    let one = r#"{"members": [{"name": "n1", "role": "leader", "state": "running", "host": "10.0.0.1",
        "port": 5432, "timeline": 1, "tags": {"nofailover": true, "failover_priority": 0}},
        {"name": "n2", "host": "db.example", "port": "5433", "lag": "unknown"}],
        "pause": true, "scheduled_switchover": {"at": "noon", "from": "n1", "to": "n2"}, "scope": "x"}"#;
    vec![one.as_bytes().to_vec(), br#"{"members": []}"#.to_vec(), b"{}".to_vec()]
}

/// What a client says after its startup message: passwords and SASL.
pub(crate) fn proofs() -> Vec<Vec<u8>> {
    let scram = b"n,,n=,r=rOprNGfwEbeRWgbNEkqO";
    vec![
        made(|out| {
            encode::password(out, b"secret");
        }),
        made(|out| {
            encode::password(out, b"md5a3556571e93b0d20722ba62be61e8c2d");
        }),
        made(|out| {
            encode::sasl_initial(out, "SCRAM-SHA-256", scram);
        }),
        made(|out| {
            encode::sasl_response(out, b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        }),
        encode::TERMINATE.to_vec(),
    ]
}

/// What a logged-in client says.
pub(crate) fn client_messages() -> Vec<Vec<u8>> {
    vec![
        made(|out| {
            encode::query(out, b"select 1; select 2");
        }),
        made(|out| {
            encode::query(out, b"DEALLOCATE ALL");
        }),
        made(|out| {
            encode::query(out, b"deallocate prepare \"s1\"");
        }),
        batch("", "select $1"),
        batch("s1", "select 1"),
        batch("s2", "select $1::int, 'text'"),
        made(|out| {
            encode::target(out, b'C', b'S', b"s1");
            encode::target(out, b'C', b'P', b"");
            encode::target(out, b'D', b'S', b"s2");
            encode::sync(out);
        }),
        made(|out| {
            encode::message(out, b'd', |out| out.extend_from_slice(b"row"));
            encode::message(out, b'c', |_| {});
            encode::message(out, b'f', |out| out.extend_from_slice(b"no\0"));
            encode::message(out, b'H', |_| {});
        }),
        made(|out| {
            encode::message(out, b'F', |out| out.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
        }),
        made(|out| {
            encode::query(out, &b"x".repeat(20_000));
        }),
        batch("", &"y".repeat(20_000)),
        encode::TERMINATE.to_vec(),
    ]
}

fn batch(name: &str, text: &str) -> Vec<u8> {
    made(|out| {
        encode::parse(out, name.as_bytes(), &[text.as_bytes(), &[0, 0, 1, 0, 0, 0, 23]].concat());
        encode::bind_text(out, b"", name.as_bytes(), &[Some(b"5"), None]);
        encode::target(out, b'D', b'P', b"");
        encode::execute(out, b"");
        encode::sync(out);
    })
}

/// What a server says in a session.
pub(crate) fn server_messages() -> Vec<Vec<u8>> {
    let rows = |out: &mut Vec<u8>, count: usize| {
        let field = encode::Field { name: "a", oid: 23, width: 4 };
        encode::row_description(out, std::iter::once(field));
        for _ in 0..count {
            encode::data_row(out, [Some(&b"value"[..]), None].into_iter());
        }
        encode::command_complete(out, b"SELECT 1");
    };
    let ready = encode::ready_for_query;
    vec![
        made(|out| {
            rows(out, 3);
            ready(out, TransactionStatus::Idle);
        }),
        made(|out| {
            out.extend_from_slice(&encode::PARSE_COMPLETE);
            out.extend_from_slice(&encode::BIND_COMPLETE);
            rows(out, 1);
            ready(out, TransactionStatus::Idle);
        }),
        made(|out| {
            encode::report(out, Severity::Error, "42601", "syntax error", Some("at \"x\""));
            ready(out, TransactionStatus::Failed);
        }),
        made(|out| {
            encode::report(out, Severity::Notice, "00000", "hear", None);
            encode::parameter_status(out, b"TimeZone", b"UTC");
            encode::message(out, b'A', |out| out.extend_from_slice(b"\0\0\0\x07ch\0hello\0"));
            encode::command_complete(out, b"SET");
            ready(out, TransactionStatus::InTransaction);
        }),
        made(|out| {
            encode::message(out, b'G', |out| out.extend_from_slice(&[0, 0, 1, 0, 0]));
            encode::command_complete(out, b"COPY 1");
            ready(out, TransactionStatus::Idle);
        }),
        made(|out| {
            encode::message(out, b'H', |out| out.extend_from_slice(&[0, 0, 1, 0, 0]));
            encode::message(out, b'd', |out| out.extend_from_slice(b"row"));
            encode::message(out, b'c', |_| {});
            encode::command_complete(out, b"DISCARD ALL");
            ready(out, TransactionStatus::Idle);
        }),
        made(|out| {
            encode::message(out, b't', |out| out.extend_from_slice(&[0, 1, 0, 0, 0, 23]));
            out.extend_from_slice(&encode::NO_DATA);
            out.extend_from_slice(&encode::CLOSE_COMPLETE);
            encode::message(out, b's', |_| {});
            out.extend_from_slice(&encode::EMPTY_QUERY);
        }),
        made(|out| encode::report(out, Severity::Fatal, "57P01", "terminating", None)),
    ]
}

/// What a server says at our login, and to an auth_query.
pub(crate) fn greetings() -> Vec<Vec<u8>> {
    let end = |out: &mut Vec<u8>| {
        encode::auth_ok(out);
        encode::parameter_status(out, b"server_version", b"17.0");
        encode::parameter_status(out, b"client_encoding", b"UTF8");
        encode::backend_key(out, 77, b"keyk");
        encode::ready_for_query(out, TransactionStatus::Idle);
    };
    let row = |out: &mut Vec<u8>| {
        out.extend_from_slice(&encode::PARSE_COMPLETE);
        out.extend_from_slice(&encode::BIND_COMPLETE);
        let field = |name| encode::Field { name, oid: 25, width: -1 };
        encode::row_description(out, [field("usename"), field("passwd")].into_iter());
        encode::data_row(out, [Some(&b"user"[..]), Some(b"md5a3556571e93b0d20722ba62be61e8c2d")].into_iter());
        encode::command_complete(out, b"SELECT 1");
        encode::ready_for_query(out, TransactionStatus::Idle);
    };
    vec![
        made(end),
        made(row),
        made(|out| {
            encode::auth_cleartext(out);
            end(out);
        }),
        made(|out| {
            encode::auth_md5(out, *b"salt");
            end(out);
        }),
        made(|out| {
            let none: [&[u8]; 1] = [b"_pq_.x"];
            encode::negotiate_protocol_version(out, 0, none.into_iter());
            encode::auth_sasl(out, &["SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"]);
            encode::auth_sasl_continue(out, b"r=AAAAAAAAAAAAAAAAAAAAAAAAserver,s=c2FsdA==,i=16");
            encode::auth_sasl_final(out, b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=");
            end(out);
        }),
        made(|out| encode::report(out, Severity::Fatal, "28P01", "password authentication failed", None)),
        made(|out| {
            end(out);
            encode::report(out, Severity::Error, "42601", "in connect_query", None);
            encode::ready_for_query(out, TransactionStatus::Idle);
        }),
    ]
}

fn texts(list: &[&str]) -> Vec<Vec<u8>> {
    list.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Files of settings.
pub(crate) fn settings() -> Vec<Vec<u8>> {
    texts(&[
        "[databases]\napp = host=db1,db2 port=5432 dbname='my app' pool_size=3 connect_query='select 1'\n* = host=/tmp\n\
         [pgbouncer]\nlisten_port = 6432\nlisten_addr = *\nauth_type = md5\nauth_file = users.txt\npool_mode = transaction\n\
         default_pool_size = 20\nserver_lifetime = 3600\nquery_wait_timeout = 1.5\n",
        "%include other.ini\n; comment\n# another\n[users]\nbob = pool_mode=session max_user_connections=5\n[peers]\n1 = host=a\n",
        "[pgbouncer]\nserver_tls_sslmode = verify-full\nclient_tls_protocols = secure\nignore_startup_parameters = a, b,c\n\
         max_client_conn = 100\ntrack_extra_parameters = search_path\nstats_period=60\nlog_connections = 0\n",
    ])
}

/// Addresses as one line.
pub(crate) fn urls() -> Vec<Vec<u8>> {
    texts(&[
        "postgresql://user:secret@host1:5432,host2/db?sslmode=require&application_name=x",
        "postgres:///db?host=/var/run/postgresql",
        "postgres://%75ser@[::1]:5433/d%20b",
    ])
}

/// Files of users and secrets.
pub(crate) fn userlists() -> Vec<Vec<u8>> {
    texts(&[
        "\"bob\" \"md5a3556571e93b0d20722ba62be61e8c2d\"\n\"ann\" \"sec\"\"ret\"\n; comment\n",
        "\"s\" \"SCRAM-SHA-256$4096:c2FsdHNhbHQ=$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n",
        "\"\" \"\"\n\"x\" \"y\" trailing\n",
    ])
}

/// Host-based rules.
pub(crate) fn hbas() -> Vec<Vec<u8>> {
    texts(&[
        "local all all peer map=m\nhost all all 127.0.0.1/32 trust\nhostssl db1,db2 \"bob\" 10.0.0.0 255.0.0.0 scram-sha-256\n",
        "host all +group ::1/128 md5\nhostnossl replication rep samenet reject # no\n",
        "host @dbs @users 0.0.0.0/0 cert map=\"my map\" clientname=CN\nhost all all all ldap ldapserver=x ldapport=1\n",
    ])
}

/// Maps of names.
pub(crate) fn idents() -> Vec<Vec<u8>> {
    texts(&["m root postgres\nm /^(.*)@example\\.com$ \\1\nother \"a b\" all # end\n", "x y z\n\nx y\n"])
}

/// Statements.
pub(crate) fn statements() -> Vec<Vec<u8>> {
    texts(&[
        "DEALLOCATE prepare \"my \"\"name\"\"\" ;",
        "/* a /* nested */ b */ deallocate s1 -- end\n;",
        "deallocate all",
        "select 'x''y', $tag$ body $tag$, E'\\''; begin",
    ])
}

/// Strings of statements that make session state.
pub(crate) fn states() -> Vec<Vec<u8>> {
    texts(&[
        "set search_path to a, \"B\"; set local time zone 'UTC'; reset all; set role none; set x = default",
        "select pg_catalog.set_config('a.b', $1::text, false), \"set_config\"($2, E'\\'', true) as x; discard all",
        "create temp table t on commit drop as execute p(1); select 1 into temp u; drop table if exists t, pg_temp.u",
        "create function f() returns int begin atomic select case when a then nextval('s') end; end; listen c",
        "begin; savepoint s; declare c cursor with hold for select 1; rollback to s; commit and chain; close all",
        "prepare p (int) as select currval('s'); explain (analyze) execute p(1); deallocate prepare all",
        "update only pg_catalog.pg_settings set setting = $$a$$; do $x$ begin end $x$; unlisten *; select U&\"a\"()",
    ])
}

/// Queries of which some may go to a standby.
pub(crate) fn queries() -> Vec<Vec<u8>> {
    texts(&[
        "SELECT abalance FROM pgbench_accounts WHERE aid = 4711;",
        "with recursive w(n) as (values (1) union all select n + 1 from w) select n, \"A\".b from w for update of w",
        "select count(*) filter (where a in (1, 2, 3)) over (partition by b order by c::numeric(10,2) desc) from s.t",
        "select f(a => $1, variadic b), (c).d[1:2], e.*, e'\\n' || $$x$$ from lateral g(1) as h(i int) with ordinality",
        "explain (analyze) table t; -- end",
        "(select case when not a then 1.5e3 else .5 end) except values (x'1f', b'01', interval '1' day)",
        "select * from a left join (b natural join c) on exists (select 1 from d tablesample system (1)) limit all",
        "with a as (delete from b returning *) select date '2001-01-01' at time zone 'utc', a is json from a",
    ])
}

/// Commands of the console.
pub(crate) fn commands() -> Vec<Vec<u8>> {
    texts(&[
        "SHOW POOLS;",
        "show clients",
        "PAUSE \"my db\"",
        "SET default_pool_size = '20'",
        "KILL_CLIENT 17",
        "SHUTDOWN WAIT_FOR_CLIENTS",
        "RELOAD; ",
        "select 1",
        "WAIT_CLOSE db",
        "SHOW CONFIG -- all of it",
        "ENABLE x",
    ])
}

/// Words that decoders look for.
pub(crate) const WORDS: [&[u8]; 34] = [
    b"user\0",
    b"database\0",
    b"replication\0",
    b"options\0",
    b"-c ",
    b"SCRAM-SHA-256",
    b"SCRAM-SHA-256-PLUS",
    b"md5",
    b"p=tls-server-end-point,,",
    b",r=",
    b",i=1000000",
    b"howdah_1",
    b"s1\0",
    b"DISCARD ALL\0",
    b"DEALLOCATE ALL\0",
    b"RESET\0",
    b"SFATAL\0",
    b"VERROR\0C26000\0",
    b"$1",
    b"/*",
    b"*/",
    b"--",
    b"''",
    b"\"\"",
    b"%include ",
    b"[pgbouncer]\n",
    b"[databases]\n",
    b" = host=",
    b"@file",
    b"255.255.255.256",
    b"::ffff:1.2.3.4/129",
    b"/^(",
    b"99999999999999999999",
    b"\xf0\x9f\x92\xa9",
];
