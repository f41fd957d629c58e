//! Prepared statements, by SQL and by the protocol: one namespace.
//!
//! By SQL they pin.

use super::super::kind::{Kind, Protocol};

pub const KINDS: &[Kind] = &[
    Kind::pins("PREPARE", "prepare p as select 41 + 1", "execute p", "deallocate p"),
    Kind::pins(
        "PREPARE with parameters",
        "prepare p (int, text) as select $1 + 1, $2",
        "execute p(41, 'it''s')",
        "deallocate prepare p",
    ),
    Kind::pins(
        "PREPARE with a quoted name",
        r#"prepare "P p" as select 42"#,
        r#"execute "P p""#,
        r#"deallocate "P p""#,
    ),
    Kind::pins(
        "PREPARE as PostgreSQL lists it",
        "prepare p as select 42",
        "select name, statement, from_sql from pg_prepared_statements where from_sql order by 1",
        "deallocate p",
    ),
    Kind::pins("PREPARE of a name that is taken", "prepare p as select 1\nprepare p as select 2", RUN, DROP),
    Kind::pins("DEALLOCATE", "prepare p as select 1\ndeallocate p", RUN, DROP),
    Kind::pins(
        "DEALLOCATE ALL",
        "prepare p as select 1\nprepare q as select 2\ndeallocate all",
        "execute p\nexecute q",
        "deallocate all",
    ),
    Kind::pins("DISCARD PLANS", "prepare p as select 42\ndiscard plans", RUN, DROP),
    Kind::pins("EXPLAIN EXECUTE", "prepare p as select 42", "explain (costs off) execute p", DROP),
    Kind::pins(
        "PREPARE under a search_path",
        "set search_path = matrix\nprepare p as select count(*) from plain",
        "select count(*) >= 0 from plain\nexplain (costs off) execute p",
        "deallocate all\nreset search_path",
    ),
    Kind::carried("by the protocol", "\\parse p select $1::int + 1", "\\run p | 41", "\\close p")
        .by(EXTENDED),
    Kind::carried("by the protocol, run by SQL", "\\parse p select 42", RUN, DROP).by(EXTENDED),
    Kind::pins("by SQL, run by the protocol", "prepare p as select 42", "\\run p", "\\close p").by(EXTENDED),
    Kind::carried("by the protocol, and DEALLOCATE", "\\parse p select 42\ndeallocate p", "\\run p", "")
        .by(EXTENDED),
    Kind::carried(
        "by the protocol, and DEALLOCATE ALL",
        "\\parse p select 42\ndeallocate all",
        "\\run p",
        "\\parse p select 43\n\\run p\n\\close p",
    )
    .by(EXTENDED),
    Kind::carried(
        "by the protocol, and DISCARD ALL",
        "\\parse p select 42\ndiscard all",
        "\\run p",
        "discard all",
    )
    .by(EXTENDED)
    .alone(),
    Kind::pins(
        "by SQL, and the name by the protocol",
        "prepare p as select 42\n\\parse p select 43",
        RUN,
        DROP,
    )
    .by(EXTENDED),
    Kind::pins("by SQL, and closed by the protocol", "prepare p as select 42\n\\close p", RUN, "")
        .by(EXTENDED),
];

const EXTENDED: &[Protocol] = &[Protocol::Extended, Protocol::Pipelined];
const RUN: &str = "execute p";
const DROP: &str = "deallocate p";
