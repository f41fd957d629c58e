//! Databases that are to be left: whose servers are closed for it, when, and for how long.

use super::*;

const SEVERAL: &str = "[databases]\nadmin = host=h dbname=postgres\none = host=h dbname=app\n\
                       two = host=h dbname=app user=ann\nelse = host=other dbname=app\nold = host=h\n";

impl Bench {
    /// A pool with an idle server, which nobody uses.
    fn idle(&mut self, database: &str) -> Cell {
        let (client, cell) = self.member(database, "ann");
        let slot = self.lend(&cell);
        assert_eq!(self.release(&cell, slot), After::Idle);
        self.hub.leave(self.now, client);
        cell
    }

    /// The entries whose servers are to be closed.
    fn closing(&mut self, work: Work<u64, u64>) -> Vec<String> {
        let names = work.close.iter().map(|(cell, _)| cell.key.database.clone()).collect();
        self.close_all(work);
        names
    }

    fn ticked(&mut self) -> Vec<String> {
        let work = self.hub.tick(self.now);
        self.closing(work)
    }
}

fn vacate(bench: &mut Bench, from: &Cell, dbname: &str) -> Vec<String> {
    let work = bench.hub.vacate(bench.now, from.id, dbname);
    bench.closing(work)
}

#[test]
fn idle_servers_of_a_database_are_closed_on_that_server_alone() {
    let mut bench = Bench::new(SEVERAL);
    let (_, admin) = bench.member("admin", "ann");
    for database in ["one", "two", "else", "old"] {
        bench.idle(database);
    }
    assert_eq!(vacate(&mut bench, &admin, "postgres"), [""; 0], "who says it is in it");
    assert_eq!(vacate(&mut bench, &admin, "nobody"), [""; 0]);
    assert_eq!(vacate(&mut bench, &admin, "old"), ["old"]);
    assert_eq!(vacate(&mut bench, &admin, "app"), ["one", "two"]);
    assert_eq!(bench.ticked(), [""; 0]);
}

#[test]
fn a_database_that_clients_are_in_is_left_when_they_are_gone() {
    let mut bench = Bench::new(SEVERAL);
    let (_, admin) = bench.member("admin", "ann");
    let (client, cell) = bench.member("one", "ann");
    let slot = bench.lend(&cell);
    assert_eq!(vacate(&mut bench, &admin, "app"), [""; 0]);
    assert_eq!(bench.release(&cell, slot), After::Idle, "it is the client's business");
    assert_eq!(bench.ticked(), [""; 0]);
    bench.hub.leave(bench.now, client);
    assert_eq!(bench.ticked(), ["one"]);
}

#[test]
fn a_server_that_becomes_free_late_is_closed_as_well() {
    let mut bench = Bench::new(SEVERAL);
    let (_, admin) = bench.member("admin", "ann");
    let (client, cell) = bench.member("one", "ann");
    let slot = bench.lend(&cell);
    bench.hub.leave(bench.now, client);
    assert_eq!(vacate(&mut bench, &admin, "app"), [""; 0]);
    assert_eq!(bench.release(&cell, slot), After::Close);
}

#[test]
fn it_is_over_when_postgresql_waits_no_more() {
    let mut bench = Bench::new(SEVERAL);
    let (_, admin) = bench.member("admin", "ann");
    assert_eq!(vacate(&mut bench, &admin, "app"), [""; 0]);
    assert!(bench.hub.next_tick(bench.now) < bench.now + Duration::from_secs(1));
    bench.pass(5);
    bench.idle("one");
    assert_eq!(bench.ticked(), ["one"]);
    bench.pass(1);
    bench.idle("one");
    assert_eq!(bench.ticked(), [""; 0]);
    assert!(bench.hub.vacancies().is_empty());
}

#[test]
fn names_of_databases_do_not_pile_up() {
    let mut bench = Bench::new(SEVERAL);
    let (_, admin) = bench.member("admin", "ann");
    for number in 0..1000 {
        assert_eq!(vacate(&mut bench, &admin, &format!("d{}", number % 500)), [""; 0]);
    }
    assert!(bench.hub.vacancies().len() <= 64);
    assert_eq!(bench.hub.vacancies().last().unwrap().0.dbname, "d499");
}

#[test]
fn what_was_said_of_a_database_before_it_was_made_is_forgotten() {
    let mut bench = Bench::new(SEVERAL);
    let (_, admin) = bench.member("admin", "ann");
    let (_, cell) = bench.member("old", "ann");
    let open = bench.wait(&cell);
    bench.hub.open_server(bench.now, cell.id).expect("no limit is reached");
    let missing = pool::LoginError { code: "3D000".into(), message: "no such database".into() };
    let failed = cell.lock().open_failed(bench.now, open[0], pool::Failure::Login(missing));
    assert_eq!(failed.refused.len(), 1);
    let _ = bench.hub.server_gone(bench.now, cell.id);
    let refused = |bench: &mut Bench| {
        let id = bench.id();
        let outcome = cell.lock().checkout(bench.now, W0, &id, Moment::NEVER);
        matches!(outcome, Checkout::Refused(_))
    };
    assert!(refused(&mut bench));
    assert_eq!(vacate(&mut bench, &admin, "old"), [""; 0]);
    assert!(!refused(&mut bench));
}
