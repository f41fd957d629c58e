//! Names of statements: undone and settled in order, against a model that keeps every change.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Statement;
use proptest::prelude::*;

use super::Names;

fn statement(id: u64) -> Arc<Statement> {
    Arc::new(Statement::new(id, &vec![b'x'; id as usize], 0))
}

#[test]
fn an_undone_change_did_not_happen() {
    let mut names = Names::default();
    names.insert(b"a", statement(1), 0);
    names.settle();
    names.remove(b"a", 1);
    names.insert(b"a", statement(2), 1);
    assert_eq!(names.find(b"a").map(|statement| statement.id), Some(2));
    names.undo(2);
    assert_eq!(names.find(b"a").map(|statement| statement.id), Some(1));
}

#[test]
fn an_older_change_is_undone_under_a_later_one() {
    let mut names = Names::default();
    names.insert(b"a", statement(1), 0);
    names.insert(b"a", statement(2), 1);
    names.undo(1);
    assert_eq!(names.find(b"a").map(|statement| statement.id), Some(2));
    names.undo(1);
    assert!(names.is_empty() && names.bytes() == 0);
}

#[test]
fn a_name_is_certain_once_its_batch_is_answered() {
    let mut names = Names::default();
    names.insert(b"a", statement(1), 3);
    assert!(names.is_certain(b"a", 3) && !names.is_certain(b"a", 4) && names.is_certain(b"b", 4));
    names.settle();
    assert!(names.is_certain(b"a", 4));
}

/// The state before anything unsettled, and every change since.
#[derive(Default)]
struct Naive {
    settled: BTreeMap<u8, u64>,
    changes: Vec<(u8, Option<u64>)>,
}

impl Naive {
    fn apply(state: &mut BTreeMap<u8, u64>, (name, to): (u8, Option<u64>)) {
        match to {
            Some(id) => state.insert(name, id),
            None => state.remove(&name),
        };
    }

    fn now(&self) -> BTreeMap<u8, u64> {
        let mut state = self.settled.clone();
        self.changes.iter().for_each(|&change| Naive::apply(&mut state, change));
        state
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, u64),
    Remove(u8),
    Settle,
    Undo(usize),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_u8, 1..50_u64).prop_map(|(name, id)| Step::Insert(name, id)),
        2 => (0..4_u8).prop_map(Step::Remove),
        3 => Just(Step::Settle),
        1 => (0..5_usize).prop_map(Step::Undo),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #[test]
    fn names_are_what_every_change_in_order_makes_them(steps in prop::collection::vec(step(), 0..60)) {
        let mut names = Names::default();
        let mut naive = Naive::default();
        for step in steps {
            match step {
                Step::Insert(name, id) => {
                    names.insert(&[name], statement(id), 0);
                    naive.changes.push((name, Some(id)));
                }
                Step::Remove(name) => {
                    names.remove(&[name], 0);
                    naive.changes.push((name, None));
                }
                Step::Settle => {
                    names.settle();
                    if !naive.changes.is_empty() {
                        let change = naive.changes.remove(0);
                        Naive::apply(&mut naive.settled, change);
                    }
                }
                Step::Undo(count) => {
                    names.undo(count);
                    naive.changes.drain(..count.min(naive.changes.len()));
                }
                Step::Clear => {
                    names.clear();
                    naive.settled.clear();
                }
            }
            let now = naive.now();
            prop_assert_eq!(names.len(), now.len());
            for name in 0..4 {
                prop_assert_eq!(names.find(&[name]).map(|statement| statement.id), now.get(&name).copied());
            }
            let bytes: usize = now.values().map(|&id| 161 + id as usize).sum();
            prop_assert_eq!(names.bytes(), bytes);
            prop_assert_eq!(names.is_empty(), now.is_empty() && naive.changes.is_empty());
        }
    }
}
