//! Prepared statements, by SQL and by the protocol: one namespace.

use super::super::kind::{Kind, Protocol};

pub const KINDS: &[Kind] = &[
    Kind::carried("PREPARE", "prepare p as select 41 + 1", "execute p", "deallocate p"),
    Kind::carried(
        "PREPARE with parameters",
        "prepare p (int, text) as select $1 + 1, $2",
        "execute p(41, 'it''s')",
        "deallocate prepare p",
    ),
    Kind::carried(
        "PREPARE with a quoted name",
        r#"prepare "P p" as select 42"#,
        r#"execute "P p""#,
        r#"deallocate "P p""#,
    ),
    Kind::carried(
        "PREPARE of a name that is taken",
        "prepare p as select 1\nprepare p as select 2",
        RUN,
        DROP,
    ),
    Kind::carried(
        "PREPARE within a string",
        "select 1; prepare p as select 42; execute p",
        "execute p; select 2",
        "deallocate p; select 3",
    )
    .by(&[Protocol::Simple]),
    Kind::carried(
        "PREPARE of an INSERT",
        "prepare p (int) as insert into matrix.bare values ($1)",
        "begin\nexecute p(42)\nexplain (costs off) execute p(43)\nrollback",
        "deallocate p",
    ),
    Kind::carried(
        "PREPARE, and a table of it",
        "prepare p as select 42 as n",
        "begin\ncreate temp table t on commit drop as execute p\ntable t\nexecute p(1)\ncommit",
        "deallocate p",
    ),
    Kind::carried("PREPARE in a savepoint", "savepoint s\nprepare p as select 42\nrollback to s", RUN, DROP),
    Kind::carried("PREPARE that fails", "prepare p as select no_such_column", RUN, DROP),
    Kind::carried(
        "by the protocol, of an EXECUTE",
        "prepare p as select 42\n\\parse n execute p",
        "\\run n",
        "\\close n\ndeallocate p",
    )
    .by(EXTENDED),
    Kind::carried("DEALLOCATE", "prepare p as select 1\ndeallocate p", RUN, DROP),
    Kind::carried(
        "DEALLOCATE ALL",
        "prepare p as select 1\nprepare q as select 2\ndeallocate all",
        "execute p\nexecute q",
        "deallocate all",
    ),
    Kind::carried("DISCARD PLANS", "prepare p as select 42\ndiscard plans", RUN, DROP),
    Kind::carried("EXPLAIN EXECUTE", "prepare p as select 42", "explain (costs off) execute p", DROP),
    Kind::carried(
        "PREPARE under a search_path",
        "set search_path = matrix\nprepare p as select count(*) from plain",
        "select count(*) >= 0 from plain\nexplain (costs off) execute p",
        "deallocate all\nreset search_path",
    ),
    Kind::carried("by the protocol", "\\parse p select $1::int + 1", "\\run p | 41", "\\close p")
        .by(EXTENDED),
    Kind::carried("by the protocol, run by SQL", "\\parse p select 42", RUN, DROP).by(EXTENDED),
    Kind::carried("by SQL, run by the protocol", "prepare p as select 42", "\\run p", "\\close p")
        .by(EXTENDED),
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
    Kind::carried(
        "by SQL, and the name by the protocol",
        "prepare p as select 42\n\\parse p select 43",
        RUN,
        DROP,
    )
    .by(EXTENDED),
    Kind::carried("by SQL, and closed by the protocol", "prepare p as select 42\n\\close p", RUN, "")
        .by(EXTENDED),
];

const EXTENDED: &[Protocol] = &[Protocol::Extended, Protocol::Pipelined];
const RUN: &str = "execute p";
const DROP: &str = "deallocate p";
