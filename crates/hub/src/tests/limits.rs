//! Limits on clients and servers, and who is served when one has room again.

use super::*;

#[test]
fn logins_are_bounded() {
    let mut bench = Bench::new("login_connections_max = 1\n[databases]\napp = host=h\n");
    assert_eq!(bench.hub.admit(), Ok(()));
    assert_eq!(bench.hub.admit(), Err(LoginsFull));
    bench.hub.login_over();
    assert_eq!(bench.hub.admit(), Ok(()));
}

#[test]
fn clients_are_bounded_and_the_console_is_not() {
    let mut bench = Bench::new("max_client_conn = 1\nadmin_users = ann\n[databases]\napp = host=h\n");
    let (id, _) = bench.member("app", "ann");
    assert_eq!(bench.refused("app", "bob"), Refusal::MaxClientConn);
    let plan = bench.identify(&facts("app", "bob"));
    assert!(matches!(plan.challenge, Challenge::Refuse(Refusal::MaxClientConn)), "it is told at once");
    assert!(matches!(bench.enter("pgbouncer", "ann"), Ok((_, Entered::Console(_)))));
    bench.hub.leave(bench.now, id);
    let _ = bench.member("app", "bob");
}

#[test]
fn clients_of_a_database_are_bounded_except_administrators() {
    let mut bench = Bench::new("admin_users = ann\n[databases]\napp = host=h max_db_client_connections=1\n");
    let (id, _) = bench.member("app", "bob");
    assert_eq!(bench.refused("app", "bob"), Refusal::MaxDbClientConnections);
    let _ = bench.member("app", "ann");
    bench.hub.leave(bench.now, id);
    assert_eq!(bench.refused("app", "bob"), Refusal::MaxDbClientConnections, "ann still counts");
}

#[test]
fn clients_of_a_user_are_bounded_over_all_databases() {
    let mut bench = Bench::new("max_user_client_connections = 1\n[databases]\none = host=h\ntwo = host=h\n");
    let (id, _) = bench.member("one", "ann");
    assert_eq!(bench.refused("two", "ann"), Refusal::MaxUserClientConnections);
    let _ = bench.member("two", "bob");
    bench.hub.leave(bench.now, id);
    let _ = bench.member("two", "ann");
}

#[test]
fn client_that_leaves_twice_is_counted_once() {
    let mut bench = Bench::new("[databases]\napp = host=h\n");
    let (id, _) = bench.member("app", "ann");
    let _ = bench.member("app", "ann");
    bench.hub.leave(bench.now, id);
    bench.hub.leave(bench.now, id);
    assert_eq!(bench.hub.database_rows()[0].clients, 1);
    assert_eq!(bench.hub.user_rows()[0].clients, 1);
}

#[test]
fn servers_of_a_database_are_bounded_and_an_idle_one_makes_room() {
    let mut bench = Bench::new("[databases]\napp = host=h max_db_connections=1\n");
    let (_, one) = bench.member("app", "ann");
    let (_, two) = bench.member("app", "bob");
    let slot = bench.lend(&one);
    let open = bench.wait(&two);
    let Err(OpenRefusal::Limit { evict: None }) = bench.hub.open_server(bench.now, two.id) else {
        panic!("the only one is busy")
    };
    two.lock().open_refused(bench.now, open[0]);
    assert_eq!(bench.release(&one, slot), After::Idle);
    assert_eq!(two.lock().poke(bench.now).len(), 1);
    let Err(OpenRefusal::Limit { evict: Some((cell, ended)) }) = bench.hub.open_server(bench.now, two.id)
    else {
        panic!("the idle one is evicted");
    };
    assert!(Arc::ptr_eq(&cell, &one));
    let poked = bench.close(&one, ended.slot);
    assert!(poked.len() == 1 && Arc::ptr_eq(&poked[0], &two));
    assert!(bench.hub.open_server(bench.now, two.id).is_ok());
}

#[test]
fn nothing_is_evicted_for_who_does_not_wait() {
    let mut bench = Bench::new("[databases]\napp = host=h max_db_connections=1\n");
    let (_, one) = bench.member("app", "ann");
    let slot = bench.lend(&one);
    assert_eq!(bench.release(&one, slot), After::Idle);
    let (_, two) = bench.member("app", "bob");
    assert!(matches!(bench.hub.open_server(bench.now, two.id), Err(OpenRefusal::Limit { evict: None })));
}

#[test]
fn servers_of_a_user_are_bounded_over_all_databases() {
    let mut bench = Bench::new("max_user_connections = 1\n[databases]\none = host=h\ntwo = host=h\n");
    let (_, one) = bench.member("one", "ann");
    let (_, two) = bench.member("two", "ann");
    let slot = bench.lend(&one);
    assert_eq!(bench.release(&one, slot), After::Idle);
    let _ = bench.wait(&two);
    assert!(matches!(bench.hub.open_server(bench.now, two.id), Err(OpenRefusal::Limit { evict: Some(_) })));
    assert_eq!(bench.hub.user_rows()[0].servers, 1);
}

#[test]
fn longest_waiting_pool_is_poked_first() {
    let ini = "max_db_connections = 1\n[databases]\napp = host=h\n";
    let mut bench = Bench::with(inputs(ini, "\"ann\" \"a\"\n\"bob\" \"b\"\n\"c\" \"c\"\n"));
    let cells: Vec<Cell> = ["ann", "bob", "c"].map(|user| bench.member("app", user).1).to_vec();
    let slot = bench.lend(&cells[0]);
    for cell in [&cells[2], &cells[1]] {
        let _ = bench.wait(cell);
        assert!(bench.hub.open_server(bench.now, cell.id).is_err());
        bench.pass(1);
    }
    let poked: Vec<_> = bench.close(&cells[0], slot).iter().map(|cell| cell.key.user.clone()).collect();
    assert_eq!(poked, ["c", "bob"]);
    assert!(bench.hub.server_gone(bench.now, cells[1].id).is_empty(), "they are poked once");
}

#[test]
fn hosts_take_turns() {
    let mut bench = Bench::new("[databases]\napp = host=a,b,c\n");
    let (_, cell) = bench.member("app", "ann");
    let mut first = || bench.hub.open_server(bench.now, cell.id).unwrap().places[0].host.to_string();
    assert_eq!([first(), first(), first(), first()], ["a", "b", "c", "a"]);
}

#[test]
fn one_host_is_kept_until_it_fails() {
    let mut bench = Bench::new("[databases]\napp = host=a,b,c load_balance_hosts=disable\n");
    let (_, cell) = bench.member("app", "ann");
    let hosts =
        |bench: &mut Bench| bench.hub.open_server(bench.now, cell.id).unwrap().places[0].host.to_string();
    assert_eq!([hosts(&mut bench), hosts(&mut bench)], ["a", "a"]);
    bench.hub.reached_host(cell.id, 1);
    assert_eq!(hosts(&mut bench), "b");
}

#[test]
fn databases_made_on_demand_are_bounded() {
    let mut bench = Bench::new("max_client_conn = 100000\n[databases]\n* = host=h\n");
    let (id, _) = bench.member("first", "ann");
    for number in 0..3000 {
        let (id, _) = bench.member(&format!("db{number}"), "ann");
        bench.hub.leave(bench.now, id);
        bench.pass(1);
    }
    let rows = bench.hub.database_rows();
    assert!(rows.len() <= 2048);
    assert!(rows.iter().any(|row| row.name == "first"), "what is used stays");
    bench.hub.leave(bench.now, id);
}

#[test]
fn unused_database_made_on_demand_is_forgotten() {
    let mut bench = Bench::new("autodb_idle_timeout = 60\n[databases]\n* = host=h\n");
    let (id, _) = bench.member("some", "ann");
    assert_eq!(bench.hub.next_tick(bench.now), Moment::NEVER);
    bench.hub.leave(bench.now, id);
    assert_eq!(bench.hub.next_tick(bench.now).since(bench.now), Duration::from_secs(60));
    bench.pass(60);
    assert!(bench.hub.tick(bench.now).is_empty());
    assert!(bench.hub.database_rows().is_empty() && bench.hub.pools().count() == 0);
}

#[test]
fn empty_pool_is_forgotten_after_its_timeout() {
    let mut bench = Bench::new("pool_idle_timeout = 60\n[databases]\napp = host=h\n");
    let (id, cell) = bench.member("app", "ann");
    let slot = bench.lend(&cell);
    assert_eq!(bench.release(&cell, slot), After::Idle);
    bench.hub.leave(bench.now, id);
    bench.pass(60);
    assert!(bench.hub.tick(bench.now).is_empty());
    assert_eq!(bench.hub.pools().count(), 1, "it still has a server");
    bench.close(&cell, slot);
    bench.now = bench.hub.next_tick(bench.now);
    assert!(bench.hub.tick(bench.now).is_empty());
    assert_eq!(bench.hub.pools().count(), 0);
}

#[test]
fn waiters_are_expired_by_the_tick() {
    let mut bench = Bench::new("[databases]\napp = host=h\n");
    let (_, cell) = bench.member("app", "ann");
    let deadline = bench.now + Duration::from_secs(9);
    let _ = cell.lock().checkout(bench.now, W0, &77, deadline);
    bench.now = deadline;
    assert_eq!(bench.hub.tick(bench.now).disconnect, [(77, Refusal::QueryWaitTimeout)]);
}

#[test]
fn min_size_of_a_forced_user_is_opened_at_the_start() {
    let mut bench =
        Bench::new("[databases]\napp = host=h user=x min_pool_size=2\nother = host=h min_pool_size=2\n");
    let work = bench.hub.start(bench.now);
    assert_eq!(work.open.len(), 1);
    assert_eq!(work.open[0].1.len(), 2);
}

#[test]
fn min_size_without_a_forced_user_is_for_pools_with_clients() {
    let mut bench = Bench::new("min_pool_size = 2\n[databases]\napp = host=h\n");
    let Ok((id, Entered::Member(member))) = bench.enter("app", "ann") else { panic!() };
    assert_eq!(member.open.len(), 2);
    for slot in member.open {
        member.cell.lock().open_refused(bench.now, slot);
    }
    bench.hub.leave(bench.now, id);
    bench.pass(10);
    assert!(bench.hub.tick(bench.now).is_empty());
}
