//! What a session remembers of sequences.

use super::super::kind::Kind;

pub const KINDS: &[Kind] = &[
    Kind::pins("nextval", "select nextval('matrix.counter')", COUNTER, "discard sequences"),
    Kind::pins(
        "nextval in an INSERT",
        "insert into matrix.bare values (nextval('matrix.counter'))",
        COUNTER,
        END,
    ),
    Kind::pins(
        "setval",
        "select nextval('matrix.counter')\nselect setval('matrix.counter', 70)",
        COUNTER,
        END,
    ),
    Kind::pins(
        "setval alone",
        "select setval('matrix.counter', 70)",
        "select currval('matrix.counter')",
        END,
    ),
    Kind::pins(
        "DISCARD SEQUENCES",
        "select nextval('matrix.counter')\ndiscard sequences",
        COUNTER,
        "discard sequences",
    ),
    Kind::pins(
        "serial",
        "insert into matrix.plain (v) values ('x')",
        "select lastval()\nselect currval('matrix.plain_id_seq')",
        END,
    ),
    Kind::pins(
        "serial in an EXECUTE",
        "prepare p as insert into matrix.plain (v) values ('x')\nexecute p",
        "select lastval()\nselect currval('matrix.plain_id_seq')",
        "deallocate p\ndiscard sequences",
    ),
    Kind::pins(
        "serial in DO",
        "do $$ begin insert into matrix.plain (v) values ('x'); end $$",
        "select lastval()",
        END,
    ),
    Kind::carried("INSERT without a sequence", "insert into matrix.bare values (1)", "select lastval()", ""),
    Kind::pins(
        "identity",
        "insert into matrix.modern (v) values ('x') returning id",
        "select lastval()",
        END,
    ),
];

const COUNTER: &str = "select currval('matrix.counter')\nselect lastval()";
const END: &str = "discard sequences";
