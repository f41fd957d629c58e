//! Claims about `plan`, each as small as it can be.

use super::*;

fn plan() -> Plan {
    Plan {
        targets: vec![Kind::Direct, Kind::Relay, Kind::Pgbouncer, Kind::Howdah { workers: 1, epoll: false }],
        loads: vec![Load::Memory { clients: 5 }, Load::Canned { clients: 1 }, Load::Canned { clients: 2 }],
        rounds: 6,
        seconds: 1,
    }
}

#[test]
fn every_round_has_every_target_once_per_load() {
    let plan = plan();
    let steps = plan.order(7);
    assert_eq!(steps.len(), 6 * 2 * 4 + 3);
    for group in steps[..48].chunks(4) {
        assert!(group.iter().all(|step| (step.round, step.load) == (group[0].round, group[0].load)));
        for target in &plan.targets {
            assert_eq!(group.iter().filter(|step| step.target == *target).count(), 1);
        }
    }
}

#[test]
fn memory_comes_last_and_once_and_not_for_no_pooler() {
    let steps = plan().order(7);
    let memory: Vec<_> = steps[48..].iter().map(|step| (step.load, step.target == Kind::Direct)).collect();
    assert_eq!(memory, [(Load::Memory { clients: 5 }, false); 3]);
}

#[test]
fn the_seed_alone_decides_the_order() {
    assert_eq!(plan().order(1), plan().order(1));
    assert_ne!(plan().order(1), plan().order(2));
}

#[test]
fn rounds_differ_in_order() {
    let steps = plan().order(3);
    let firsts: std::collections::HashSet<_> =
        steps[..48].chunks(4).map(|group| format!("{:?}", group[0].target)).collect();
    assert!(firsts.len() > 1);
}
