//! Claims about `real`, each as small as it can be.

use super::*;

fn threads(load: Load) -> usize {
    orders(load, 1).expect("pgbench knows it").threads
}

#[test]
fn prepared_transactions_have_a_thread_a_client() {
    let (clients, script) = (300, Script::TpcB);
    assert_eq!(threads(Load::Pgbench { clients, script, mode: Mode::Prepared }), 300);
    assert_eq!(threads(Load::Walled { clients, wall: 100 }), 300);
    assert!(threads(Load::Pgbench { clients, script, mode: Mode::Extended }) <= 4);
}

#[test]
fn as_many_log_in_at_once_as_there_are_threads() {
    let connect =
        |clients, script| Load::Connect { clients, script, mode: Mode::Simple, login: Login::Plain };
    assert_eq!(threads(connect(50, Script::Select)), 50);
    assert_eq!(threads(connect(50, Script::TpcB)), 1);
    assert_eq!(threads(Load::Burst { clients: 700, each: 10 }), 20);
}
