//! Settings that follow their transaction: SET LOCAL, savepoints, chains, several statements in one string.

use super::super::kind::{Kind, Protocol};

pub const KINDS: &[Kind] = &[
    Kind::carried("SET LOCAL", "set local work_mem = '5MB'\nshow work_mem", LOOK, "reset work_mem"),
    Kind::carried(
        "SET and then SET LOCAL",
        "set work_mem = '5MB'\nset local work_mem = '6MB'\nshow work_mem",
        LOOK,
        "reset work_mem",
    ),
    Kind::carried(
        "SET LOCAL and then SET",
        "set local work_mem = '6MB'\nset work_mem = '5MB'\nshow work_mem",
        LOOK,
        "reset work_mem",
    ),
    Kind::carried("SET LOCAL ROLE", "set local role matrix_role\nselect current_user", WHO, ""),
    Kind::carried("SET LOCAL and RESET", "set local work_mem = '5MB'\nreset work_mem", LOOK, "reset all"),
    Kind::carried(
        "SET TRANSACTION",
        "set transaction isolation level serializable, read only\nshow transaction_isolation",
        "show transaction_isolation\nshow transaction_read_only",
        "",
    ),
    Kind::carried("SET CONSTRAINTS", "set constraints all deferred", "select 1", ""),
    Kind::carried(
        "SET undone to a savepoint",
        "set geqo = off\nsavepoint s\nset work_mem = '5MB'\nrollback to s",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "SET in a savepoint released",
        "savepoint s\nset work_mem = '5MB'\nset geqo = off\nrelease s",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "SET in savepoints of savepoints",
        "set work_mem = '5MB'\nsavepoint s\nset work_mem = '6MB'\nsavepoint t\nset work_mem = '7MB'\n\
         set geqo = off\nrollback to t\nshow work_mem\nrelease s",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "savepoints of one name",
        "savepoint s\nset work_mem = '5MB'\nsavepoint s\nset work_mem = '6MB'\nrollback to s\nrelease s\n\
         set geqo = off\nrollback to savepoint s",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "savepoints with odd names",
        "savepoint \"S\"\nset work_mem = '5MB'\nsavepoint s\nset work_mem = '6MB'\nrollback to \"S\"\n\
         set geqo = off",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "rollback to a savepoint twice",
        "savepoint s\nset work_mem = '5MB'\nrollback to s\nset work_mem = '6MB'\nrollback to s\nset geqo = off",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "error in a savepoint",
        "set geqo = off\nsavepoint s\nset work_mem = '5MB'\nselect 1/0\nrollback to s\nset work_mem = '6MB'",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "SET LOCAL in a savepoint",
        "savepoint s\nset local work_mem = '5MB'\nset local geqo = off\nrelease s\nshow work_mem",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "set_config, local, in a savepoint",
        "set work_mem = '6MB'\nsavepoint s\nselect set_config('work_mem', '5MB', true)\nrollback to s",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "role in a savepoint",
        "savepoint s\nset role matrix_role\nrollback to s\nset local role matrix_group",
        WHO,
        "reset role",
    ),
    Kind::carried(
        "RESET in a savepoint",
        "set work_mem = '5MB'\nsavepoint s\nreset work_mem\nrollback to s\nset geqo = off\nreset geqo",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "COMMIT AND CHAIN",
        "set work_mem = '5MB'\nset local geqo = off\ncommit and chain\nset work_mem = '6MB'",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "ROLLBACK AND CHAIN",
        "set work_mem = '5MB'\nrollback and chain\nset geqo = off",
        BOTH,
        "reset all",
    ),
    Kind::carried(
        "END, ABORT and their kin",
        "set work_mem = '5MB'\nend transaction\nstart transaction\nset geqo = off\nabort work",
        BOTH,
        "reset all",
    ),
    // A string of several statements is one transaction, unless it says otherwise.
    Kind::carried(
        "string of statements",
        "set work_mem = '5MB'; select 1; set geqo = off",
        BOTH,
        "reset all",
    )
    .by(SIMPLE),
    Kind::carried("string that fails", "set work_mem = '5MB'; select 1/0; set geqo = off", BOTH, "reset all")
        .by(SIMPLE),
    Kind::carried(
        "string with a transaction in it",
        "begin; set work_mem = '5MB'; commit; set geqo = off; select 1/0",
        BOTH,
        "reset all",
    )
    .by(SIMPLE)
    .alone(),
    Kind::carried(
        "string that ends in an open transaction",
        "set work_mem = '5MB'; begin; set geqo = off\nrollback",
        BOTH,
        "reset all",
    )
    .by(SIMPLE)
    .alone(),
    Kind::carried("string that sets and resets", "set work_mem = '5MB'; reset all", BOTH, "reset all")
        .by(SIMPLE),
];

const SIMPLE: &[Protocol] = &[Protocol::Simple];
const LOOK: &str = "show work_mem";
const BOTH: &str = "show work_mem\nshow geqo";
const WHO: &str = "select current_user, session_user, current_setting('role')";
