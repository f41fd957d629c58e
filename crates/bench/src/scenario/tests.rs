//! Claims about `scenario`, each as small as it can be.

use super::*;

fn asked() -> Asked {
    Asked {
        targets: vec![Kind::Direct, Kind::Pgpool2],
        clients: vec![],
        rounds: 1,
        seconds: 1,
        scale: None,
        pool_size: None,
    }
}

fn check(scenario: Scenario, expected: &str) {
    let stages = scenario.stages(&asked());
    let said: Vec<_> = stages
        .iter()
        .map(|stage| {
            let titles: Vec<_> = stage.plan.loads.iter().map(|load| load.title()).collect();
            let Setup { connections_max, sizes, .. } = &stage.setup;
            format!("{connections_max}/{}/{}: {}", sizes.pool_size, sizes.pgpool_children, titles.join("; "))
        })
        .collect();
    assert_eq!(said.join(" | "), expected);
}

#[test]
fn short_connections_are_extended() {
    check(Scenario::ShortConnections, "300/100/100: pgbench -S -C extended, 100 clients");
}

#[test]
fn a_thousand_clients_get_a_server_that_could_take_them() {
    check(Scenario::ThousandClients, "1100/100/1000: pgbench TPC-B extended, 1000 clients");
}

#[test]
fn a_managed_service_has_two_walls() {
    check(
        Scenario::Managed950,
        "300/100/290: pgbench TPC-B prepared, max_connections 300, 950 clients; pgbench TPC-B prepared, \
         max_connections 300, 1000 clients | 960/100/950: pgbench TPC-B prepared, max_connections 960, 950 \
         clients; pgbench TPC-B prepared, max_connections 960, 1000 clients",
    );
}

#[test]
fn session_state_is_measured_over_a_pool_that_is_shared_and_over_one_that_may_grow() {
    let stages = Scenario::SessionState
        .stages(&Asked { targets: vec![Kind::Direct, Kind::Howdah { workers: 1, epoll: false }], ..asked() });
    let sizes: Vec<_> = stages.iter().map(|stage| stage.setup.sizes.pool_size).collect();
    assert_eq!(sizes, [20, 100]);
    let loads: Vec<_> = stages
        .iter()
        .flat_map(|stage| &stage.plan.loads)
        .map(|load| load.word() + " " + &load.clients().to_string())
        .collect();
    let expected = [
        "select-simple 200",
        "select-prepared 200",
        "sets-simple 200",
        "state-0-simple 100",
        "state-1-simple 100",
        "state-10-simple 100",
        "state-50-simple 100",
    ];
    assert_eq!(loads, expected);
    assert!(stages.iter().all(|stage| stage.plan.targets.contains(&Kind::HowdahOff)));
}

#[test]
fn the_name_of_each_is_the_one_of_the_command_line() {
    for scenario in Scenario::value_variants() {
        let possible = scenario.to_possible_value().expect("none is hidden");
        assert_eq!(possible.get_name(), scenario.name());
    }
}

#[test]
fn every_published_figure_stands_beside_a_load() {
    for &scenario in Scenario::value_variants() {
        let loads: Vec<_> =
            scenario.stages(&asked()).into_iter().flat_map(|stage| stage.plan.loads).collect();
        for figure in scenario.figures() {
            let shown = loads.iter().any(|&load| scenario.beside(load).contains(figure));
            assert!(shown, "{}: {} with {}", scenario.name(), figure.system, figure.clients);
        }
    }
}

#[test]
fn haproxy_queues_only_where_the_experiment_did() {
    for &scenario in Scenario::value_variants() {
        let sizes = scenario.stages(&asked()).remove(0).setup.sizes;
        let expected = (scenario == Scenario::Haproxy150).then_some(100);
        assert_eq!(sizes.haproxy_servers_max, expected, "{}", scenario.name());
    }
}
