//! Pause, resume, kill, disable, reconnect, shutdown.

use console::{Failure, Shutdown};

use super::*;

const TWO: &str = "[databases]\none = host=h\ntwo = host=h\n";

#[test]
fn pause_is_done_when_the_last_server_is_closed() {
    let mut bench = Bench::new(TWO);
    let (_, cell) = bench.member("one", "ann");
    let slot = bench.lend(&cell);
    assert!(bench.hub.pause(bench.now, &database("one")).unwrap().is_empty());
    assert!(!bench.hub.is_drained(&database("one")));
    assert!(bench.hub.is_drained(&database("two")));
    assert_eq!(bench.release(&cell, slot), After::Close);
    bench.close(&cell, slot);
    assert!(bench.hub.is_drained(&database("one")));
}

#[test]
fn resume_opens_for_who_waits() {
    let mut bench = Bench::new(TWO);
    let (_, cell) = bench.member("one", "ann");
    assert!(bench.hub.pause(bench.now, &Scope::All).unwrap().is_empty());
    assert!(bench.wait(&cell).is_empty());
    let (_, late) = bench.member("two", "ann");
    assert!(bench.wait(&late).is_empty(), "a pool made during a pause is paused");
    let work = bench.hub.resume(bench.now, &Scope::All).unwrap();
    assert_eq!(work.open.len(), 2);
}

#[test]
fn pause_of_all_and_of_one_are_undone_apart() {
    let mut bench = Bench::new(TWO);
    let (_, cell) = bench.member("one", "ann");
    let _ = bench.hub.pause(bench.now, &database("one")).unwrap();
    let _ = bench.hub.pause(bench.now, &Scope::All).unwrap();
    let _ = bench.hub.resume(bench.now, &Scope::All).unwrap();
    assert!(cell.lock().is_paused());
    let _ = bench.hub.resume(bench.now, &database("one")).unwrap();
    assert!(!cell.lock().is_paused());
}

#[test]
fn misuse_is_answered_as_pgbouncer_does() {
    let mut bench = Bench::new(TWO);
    let now = bench.now;
    assert_eq!(bench.hub.resume(now, &Scope::All).unwrap_err(), Failure::NotPaused);
    assert_eq!(
        bench.hub.resume(now, &database("one")).unwrap_err(),
        Failure::DatabaseNotPaused("one".into())
    );
    let unknown = Failure::NoSuchDatabase("x".into());
    assert_eq!(bench.hub.pause(now, &database("x")).unwrap_err(), unknown);
    assert_eq!(bench.hub.kill(now, &database("x")).unwrap_err(), unknown);
    assert_eq!(bench.hub.disable(now, "x").unwrap_err(), unknown);
    assert_eq!(bench.hub.reconnect(&database("x")).unwrap_err(), unknown);
    let _ = bench.hub.pause(now, &Scope::All).unwrap();
    assert_eq!(bench.hub.pause(now, &Scope::All).unwrap_err(), Failure::AlreadyPaused);
    assert_eq!(bench.hub.kill(now, &database("one")).unwrap_err(), Failure::AlreadyPaused);
    assert_eq!(bench.hub.kill_client(ClientId(99)).unwrap_err(), Failure::ClientNotFound);
}

#[test]
fn kill_ends_the_clients_and_servers_of_one_database() {
    let mut bench = Bench::new(TWO);
    let (victim, cell) = bench.member("one", "ann");
    let (_, other) = bench.member("two", "ann");
    let slot = bench.lend(&cell);
    bench.lend(&other);
    let work = bench.hub.kill(bench.now, &database("one")).unwrap();
    assert_eq!(work.disconnect, [(victim.0, Refusal::DatabaseRemoved)]);
    assert_eq!((work.close.len(), work.close[0].1.slot), (1, slot));
    bench.close_all(work);
    assert!(bench.hub.is_drained(&database("one")));
    assert_eq!(bench.hub.servers(), 1);
    assert!(cell.lock().is_paused(), "until RESUME");
}

#[test]
fn disabled_database_takes_no_new_client() {
    let mut bench = Bench::new(TWO);
    bench.hub.disable(bench.now, "one").unwrap();
    assert_eq!(bench.refused("one", "ann"), Refusal::DatabaseDisabled("one".into()));
    bench.hub.enable(bench.now, "one").unwrap();
    let _ = bench.member("one", "ann");
}

#[test]
fn reconnect_is_done_when_no_old_server_is_left() {
    let mut bench = Bench::new(TWO);
    let (_, cell) = bench.member("one", "ann");
    let slot = bench.lend(&cell);
    assert!(bench.hub.is_renewed(&Scope::All));
    assert!(bench.hub.reconnect(&Scope::All).unwrap().is_empty());
    assert!(!bench.hub.is_renewed(&database("one")));
    assert_eq!(bench.release(&cell, slot), After::Close);
    bench.close(&cell, slot);
    assert!(bench.hub.is_renewed(&Scope::All));
}

#[test]
fn waiting_for_clients_refuses_newcomers_and_ends_with_the_last() {
    let mut bench = Bench::new(&format!("admin_users = ann\n{TWO}"));
    let (id, _) = bench.member("one", "ann");
    assert!(bench.hub.shutdown(Shutdown::WaitForClients).is_empty());
    assert_eq!(bench.refused("one", "ann"), Refusal::ShuttingDown);
    let (_, console) = bench.enter("pgbouncer", "ann").expect("the console stays open");
    assert!(matches!(console, Entered::Console(_)));
    assert_eq!(bench.hub.resume(bench.now, &Scope::All).unwrap_err(), Failure::ShuttingDown);
    assert!(!bench.hub.is_over());
    bench.hub.leave(bench.now, id);
    assert!(bench.hub.is_over());
}

#[test]
fn waiting_for_servers_refuses_who_waits_now_and_later() {
    let mut bench = Bench::new(TWO);
    let (_, cell) = bench.member("one", "ann");
    let slot = bench.lend(&cell);
    assert_eq!(bench.wait(&cell).len(), 1);
    let work = bench.hub.shutdown(Shutdown::WaitForServers);
    assert_eq!(work.disconnect.len(), 1);
    assert!(bench.wait(&cell).is_empty());
    bench.now = bench.hub.next_tick(bench.now);
    let work = bench.hub.tick(bench.now);
    assert_eq!(work.disconnect[0].1, Refusal::ServerShuttingDown);
    assert!(!bench.hub.is_over());
    assert_eq!(bench.release(&cell, slot), After::Close);
    bench.close(&cell, slot);
    assert!(!bench.hub.is_over(), "one was being opened");
}
