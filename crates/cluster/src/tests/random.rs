//! Random answers and failures: whatever comes, no write goes where it must not.

use std::time::Duration;

use proptest::prelude::*;

use super::{Bench, PRIMARY};
use crate::{Answer, Balance, Failure, Fate, NodeId, Sign, Wanted};

const NODES: u16 = 4;

#[derive(Clone, Copy, Debug)]
enum Step {
    Says { node: u16, in_recovery: bool, foreign: bool, timeline: u32 },
    Fails { node: u16, failure: Failure },
    Heard { node: u16 },
    Pass { millis: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let node = 0..NODES;
    let failures = [
        Failure::Name,
        Failure::Refused,
        Failure::Lost,
        Failure::Silent,
        Failure::Leaving,
        Failure::Starting,
        Failure::Full,
        Failure::Denied,
    ];
    let says = (node.clone(), any::<bool>(), prop::bool::weighted(0.1), 1..5_u32).prop_map(
        |(node, in_recovery, foreign, timeline)| Step::Says { node, in_recovery, foreign, timeline },
    );
    let fails = (node.clone(), prop::sample::select(failures.to_vec()))
        .prop_map(|(node, failure)| Step::Fails { node, failure });
    let heard = node.prop_map(|node| Step::Heard { node });
    let pass = (1..2000_u64).prop_map(|millis| Step::Pass { millis });
    prop::collection::vec(prop_oneof![5 => says, 3 => fails, 1 => heard, 2 => pass], 1..120)
}

proptest! {
    #[test]
    fn no_write_goes_to_a_lower_timeline_a_stranger_or_a_node_that_is_not_up(steps in steps()) {
        let mut bench = Bench::new(usize::from(NODES));
        let mut last: Vec<Option<Answer>> = vec![None; usize::from(NODES)];
        let mut highest = 0;
        let mut system = None;
        for step in steps {
            match step {
                Step::Says { node, in_recovery, foreign, timeline } => {
                    let system = if foreign { 8 } else { PRIMARY.system };
                    let answer = Answer { in_recovery, system, timeline, started: u64::from(node), ..PRIMARY };
                    last[usize::from(node)] = Some(answer);
                    let _ = bench.says(node, answer);
                }
                Step::Fails { node, failure } => drop(bench.fails(node, failure)),
                Step::Heard { node } => drop(bench.cluster.heard(bench.now, NodeId(node), Sign::Lost)),
                Step::Pass { millis } => {
                    bench.now = bench.now + Duration::from_millis(millis);
                    let _ = bench.cluster.tick(bench.now);
                }
            }
            let writers: Vec<NodeId> =
                bench.cluster.ids().filter(|node| bench.cluster.fits(*node, Wanted::Primary)).collect();
            prop_assert!(writers.len() <= 1, "{writers:?}");
            if let Some(known) = bench.cluster.system {
                prop_assert_eq!(*system.get_or_insert(known), known, "the identifier never changes");
                let seen = last.iter().flatten().filter(|answer| answer.system == known);
                highest = seen.map(|answer| answer.timeline).max().unwrap_or(0).max(highest);
            }
            for writer in writers {
                let answer = last[writer.index()].expect("it has answered");
                prop_assert!(!answer.in_recovery);
                prop_assert_eq!(Some(answer.system), system);
                prop_assert_eq!(answer.timeline, highest);
                prop_assert_eq!(bench.cluster.fate(writer, Wanted::Primary), Fate::Keep);
                prop_assert_eq!(bench.chosen_by(Wanted::Primary, Balance::Least), Some(writer.0));
            }
            for node in bench.cluster.ids() {
                // Who gets new connections of a kind may keep those it has.
                for wanted in [Wanted::Any, Wanted::Primary, Wanted::Standby, Wanted::PreferStandby] {
                    if bench.cluster.fits(node, wanted) {
                        prop_assert_eq!(bench.cluster.fate(node, wanted), Fate::Keep, "{:?}", wanted);
                    }
                }
            }
        }
    }
}
