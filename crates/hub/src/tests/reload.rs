//! What a reload does to databases, pools, clients.

use super::*;

fn reload(bench: &mut Bench, ini: &str) -> Work<u64, u64> {
    bench.hub.reload(bench.now, inputs(ini, USERS)).work
}

#[test]
fn same_settings_change_nothing() {
    let ini = "[databases]\napp = host=h\n";
    let mut bench = Bench::new(ini);
    let (_, cell) = bench.member("app", "ann");
    bench.lend(&cell);
    assert!(reload(&mut bench, ini).is_empty());
    assert_eq!(cell.lock().close_needed_left(), 0);
}

#[test]
fn removed_database_ends_with_its_clients() {
    let mut bench = Bench::new("[databases]\napp = host=h\nold = host=h\n");
    let (id, cell) = bench.member("old", "ann");
    bench.lend(&cell);
    let work = reload(&mut bench, "[databases]\napp = host=h\n");
    assert_eq!(work.disconnect, [(id.0, Refusal::DatabaseRemoved)]);
    bench.close_all(work);
    bench.hub.leave(bench.now, id);
    assert_eq!(bench.hub.pools().count(), 0);
    assert_eq!(bench.refused("old", "ann"), Refusal::NoSuchDatabase("old".into()));
    assert!(matches!(bench.hub.open_server(bench.now, cell.id), Err(OpenRefusal::Gone)));
}

#[test]
fn counts_survive_a_database_that_comes_back_at_once() {
    let (with, without) = ("[databases]\na = host=h\nb = host=h\n", "[databases]\nb = host=h\n");
    let mut bench = Bench::new(with);
    let (id, cell) = bench.member("a", "ann");
    bench.lend(&cell);
    let work = reload(&mut bench, without);
    assert!(reload(&mut bench, with).is_empty());
    let (_, fresh) = bench.member("a", "ann");
    assert!(!Arc::ptr_eq(&cell, &fresh));
    bench.lend(&fresh);
    bench.close_all(work);
    bench.hub.leave(bench.now, id);
    let rows = bench.hub.database_rows();
    assert_eq!((rows[0].clients, rows[0].servers), (1, 1), "the old ones are no longer counted");
    assert_eq!(bench.hub.user_rows()[0].clients, 1);
}

#[test]
fn changed_host_replaces_servers_when_they_are_free() {
    let mut bench = Bench::new("[databases]\napp = host=h\nother = host=h\n");
    let (_, cell) = bench.member("app", "ann");
    let (_, other) = bench.member("other", "ann");
    let slot = bench.lend(&cell);
    let kept = bench.lend(&other);
    let work = reload(&mut bench, "[databases]\napp = host=i\nother = host=h\n");
    assert!(work.is_empty());
    assert_eq!(bench.release(&cell, slot), After::Close);
    assert_eq!(bench.release(&other, kept), After::Idle);
}

#[test]
fn changed_template_replaces_servers_of_databases_made_from_it() {
    let mut bench = Bench::new("[databases]\n* = host=h\n");
    let (_, cell) = bench.member("some", "ann");
    let slot = bench.lend(&cell);
    assert!(reload(&mut bench, "[databases]\n* = host=i\n").is_empty());
    assert_eq!(bench.release(&cell, slot), After::Close);
}

#[test]
fn removed_template_ends_databases_made_from_it() {
    let mut bench = Bench::new("[databases]\n* = host=h\n");
    let (id, _) = bench.member("some", "ann");
    let work = reload(&mut bench, "[databases]\napp = host=h\n");
    assert_eq!(work.disconnect, [(id.0, Refusal::DatabaseRemoved)]);
}

#[test]
fn database_made_on_demand_can_become_configured() {
    let mut bench = Bench::new("autodb_idle_timeout = 9\n[databases]\n* = host=h\n");
    let (id, _) = bench.member("some", "ann");
    assert!(reload(&mut bench, "autodb_idle_timeout = 9\n[databases]\nsome = host=h\n").is_empty());
    bench.hub.leave(bench.now, id);
    bench.pass(10);
    assert!(bench.hub.tick(bench.now).is_empty());
    assert_eq!(bench.hub.database_rows().len(), 1);
}

#[test]
fn changed_forced_user_sends_clients_away() {
    let mut bench = Bench::new("[databases]\napp = host=h user=x\n");
    let (id, cell) = bench.member("app", "ann");
    bench.lend(&cell);
    let work = reload(&mut bench, "[databases]\napp = host=h user=y\n");
    assert_eq!(work.disconnect, [(id.0, Refusal::DatabaseChanged)]);
    assert_eq!(work.close.len(), 1);
    assert_eq!(bench.member("app", "ann").1.key.user, "y");
}

#[test]
fn new_limits_reach_every_pool() {
    let mut bench = Bench::new("[databases]\napp = host=h pool_size=2\n");
    let (_, cell) = bench.member("app", "ann");
    let slots = [bench.lend(&cell), bench.lend(&cell)];
    for slot in slots {
        assert_eq!(bench.release(&cell, slot), After::Idle);
    }
    let work = reload(&mut bench, "[databases]\napp = host=h pool_size=1\n");
    assert_eq!(work.close.len(), 1);
    bench.close_all(work);
    assert_eq!(bench.hub.servers(), 1);
}

#[test]
fn policy_is_another_one_after_a_reload() {
    let mut bench = Bench::new("[databases]\napp = host=h\n");
    let (_, cell) = bench.member("app", "ann");
    assert!(reload(&mut bench, "query_timeout = 3\n[databases]\napp = host=h\n").is_empty());
    assert_eq!(bench.hub.policy(cell.id, "ann").unwrap().query_timeout, Duration::from_secs(3));
}

#[test]
fn set_changes_settings_until_the_next_reload() {
    let ini = "[databases]\napp = host=h\n";
    let mut bench = Bench::new(ini);
    let changed = bench.hub.settings().with("max_client_conn", "0").expect("a good value");
    assert_eq!(bench.hub.set(bench.now, changed).changes.keys, ["max_client_conn"]);
    assert_eq!(bench.refused("app", "ann"), Refusal::MaxClientConn);
    assert!(reload(&mut bench, ini).is_empty());
    let _ = bench.member("app", "ann");
}

#[test]
fn pause_survives_a_reload() {
    let ini = "[databases]\napp = host=h\n";
    let mut bench = Bench::new(ini);
    let (_, cell) = bench.member("app", "ann");
    let _ = bench.hub.pause(bench.now, &database("app")).unwrap();
    assert!(reload(&mut bench, ini).is_empty());
    assert!(cell.lock().is_paused());
}
