//! Random clients that prepare, run and drop statements by SQL and by the protocol, under the same few names: each must
//! see what a PostgreSQL of its own would have told it, whichever server it has.

use model::StateMode;
use proptest::prelude::*;

use crate::Policy;

use super::random::run_with;

const TEXTS: &[&str] = &[
    "prepare a as select 1",
    "prepare a as select 2",
    "prepare b as select 1",
    "prepare b as rows 3",
    "prepare c as fail",
    "prepare a as wrong",
    "prepare c as select 3",
    "execute a",
    "execute a",
    "execute b",
    "execute c",
    "explain execute a",
    "explain execute b",
    "deallocate a",
    "deallocate b",
    "deallocate c",
    "deallocate all",
    "select 7",
    "begin",
    "commit",
    "rollback",
    "fail",
];

const OPERATIONS: &[&str] = &[
    "P(a,select 4) B(a) E",
    "P(b,select 1)",
    "P(c,rows 3)",
    "B(a) E",
    "B(b) E",
    "B(c,p) Dp(p) E(p,1) E(p,2)",
    "D(a)",
    "D(b)",
    "C(a)",
    "C(b)",
    "C(c)",
    "P(,select 5) B E",
    "H",
];

fn text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(TEXTS)
}

fn batch() -> impl Strategy<Value = Vec<String>> {
    let alone = text().prop_map(|text| vec![format!("Q({text})")]);
    // What runs behind the end of a transaction that has failed cannot be prepared first: a limit that is known.
    let is_whole = |texts: &Vec<&str>| {
        let end = texts.iter().position(|text| matches!(*text, "commit" | "rollback"));
        end.is_none_or(|end| !texts[end..].iter().any(|text| text.contains("execute")))
    };
    let several = prop::collection::vec(text(), 2..5)
        .prop_filter("no end before", is_whole)
        .prop_map(|texts| vec![format!("Q({})", texts.join(";"))]);
    let operation = prop_oneof![
        4 => text().prop_map(|text| format!("P(,{text}) B E")),
        1 => text().prop_map(|text| format!("P(,{text}) D B Dp E")),
        1 => text().prop_map(|text| format!("C(n) P(n,{text}) D(n) B(n) E B(n) E")),
        1 => text().prop_map(|text| format!("P(,{text}) B(,q) E(q) Cp(q)")),
        5 => prop::sample::select(OPERATIONS).prop_map(str::to_owned),
    ];
    let pipeline =
        prop::collection::vec(operation, 1..5).prop_map(|parts| vec![format!("{} S", parts.join(" "))]);
    // A statement that is prepared in one batch and run in another, perhaps by another server.
    let later = text().prop_map(|text| vec![format!("C(n) P(n,{text}) D(n) S"), "B(n) E S".to_owned()]);
    let unnamed = text().prop_map(|text| vec![format!("P(,{text}) D S"), "B E S".to_owned()]);
    prop_oneof![
        6 => alone,
        2 => several,
        4 => pipeline,
        1 => later,
        1 => unnamed,
        1 => Just(vec!["Q(discard all)".to_owned()]),
    ]
}

fn script() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(batch(), 1..14).prop_map(|batches| {
        let mut script: Vec<String> = batches.into_iter().flatten().collect();
        script.push("Q(rollback)".to_owned());
        script
    })
}

fn policy(prepared_max: usize) -> Policy {
    Policy { state: StateMode::Carry, ..super::random::policy(prepared_max) }
}

proptest! {
    #[test]
    fn a_client_alone_has_its_statements(script in script(), prepared_max in 1..5_usize, seed: u64) {
        run_with(policy(prepared_max), &[script], 1, true, seed);
    }

    #[test]
    fn a_client_on_changing_servers_has_its_statements(script in script(), prepared_max in 1..5_usize, seed: u64) {
        run_with(policy(prepared_max), &[script], 3, true, seed);
    }

    #[test]
    fn clients_that_share_servers_have_their_own_statements(
        scripts in prop::collection::vec(script(), 2..5),
        places in 1..4_usize,
        prepared_max in 1..5_usize,
        seed: u64,
    ) {
        run_with(policy(prepared_max), &scripts, places, true, seed);
    }

    #[test]
    fn clients_that_wait_for_nothing_have_their_own_statements(
        scripts in prop::collection::vec(script(), 1..4),
        places in 1..4_usize,
        prepared_max in 1..5_usize,
        seed: u64,
    ) {
        // What is left behind DISCARD ALL and DEALLOCATE ALL, and what a Parse comes to in a transaction block that has
        // failed, the link knows only once these are answered.
        let calm = |batch: &String| match batch.as_str() {
            "Q(discard all)" => "Q(deallocate c)".to_owned(),
            _ => batch.replace("begin", "select 8").replace("deallocate all", "deallocate c"),
        };
        let scripts: Vec<Vec<String>> = scripts.iter().map(|script| script.iter().map(calm).collect()).collect();
        run_with(policy(prepared_max), &scripts, places, false, seed);
    }
}
