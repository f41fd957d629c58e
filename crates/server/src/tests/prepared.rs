//! What a server has prepared, by what it was sent and what it has answered.

use std::sync::Arc;

use model::Statement;

use crate::prepared::Prepared;

fn statement(id: u64) -> Arc<Statement> {
    Arc::new(Statement::new(id, b"", 0))
}

/// A server that was sent a Parse of each and has answered it.
fn prepared(ids: &[u64]) -> Prepared {
    let mut prepared = Prepared::default();
    for &id in ids {
        prepared.insert(statement(id), 0);
        prepared.answered(id, true);
    }
    prepared
}

#[test]
fn the_least_recently_used_goes_first() {
    let mut prepared = prepared(&[1, 2, 3]);
    assert!(prepared.touch(1));
    assert!(prepared.oldest_beyond(3).is_none());
    assert_eq!(prepared.oldest_beyond(2).expect("one too many").id, 2);
    prepared.close(2, 1);
    assert_eq!(prepared.len(), 2);
    assert_eq!(prepared.oldest_beyond(1).expect("one too many").id, 3);
    assert!(!prepared.touch(2));
}

#[test]
fn an_unanswered_parse_counts_in_its_own_batch_only() {
    let mut prepared = Prepared::default();
    prepared.insert(statement(1), 7);
    assert!(prepared.touch(1) && prepared.is_certain(1, 7) && !prepared.is_certain(1, 8));
    prepared.answered(1, true);
    assert!(prepared.is_certain(1, 8));
    prepared.close(1, 8);
    assert!(prepared.is_certain(1, 8) && !prepared.is_certain(1, 9));
    prepared.answered(1, false);
    assert!(prepared.is_certain(1, 9) && !prepared.touch(1));
}

#[test]
fn what_is_undone_goes_back_to_what_was_answered() {
    // A Close and a new Parse, both skipped: the old one is still there.
    let mut one = prepared(&[1]);
    one.close(1, 1);
    one.insert(statement(1), 1);
    one.undo([1, 1].into_iter(), [].into_iter());
    assert!(one.touch(1) && one.is_certain(1, 2));
    // A Parse and the Close that made room again, both skipped: nothing is there.
    let mut one = prepared(&[]);
    one.insert(statement(1), 1);
    one.close(1, 1);
    one.undo([1, 1].into_iter(), [].into_iter());
    assert!(!one.touch(1) && one.is_empty());
    // The Parse of one batch is skipped, that of the next is still to come.
    let mut one = prepared(&[]);
    one.insert(statement(1), 1);
    one.insert(statement(1), 2);
    one.undo([1].into_iter(), [(1, true)].into_iter());
    assert!(one.touch(1) && !one.is_certain(1, 3));
    one.answered(1, true);
    assert!(one.touch(1) && one.is_certain(1, 3));
    // Others are not touched.
    let mut one = prepared(&[2]);
    one.insert(statement(1), 1);
    one.insert(statement(3), 2);
    one.undo([1].into_iter(), [(3, true)].into_iter());
    assert!(one.touch(2) && one.touch(3) && !one.touch(1) && !one.is_certain(3, 9));
}

#[test]
fn clearing_leaves_what_is_sent_behind_it() {
    let mut prepared = prepared(&[1, 2]);
    prepared.insert(statement(3), 1);
    prepared.close(2, 1);
    prepared.clear();
    assert!(!prepared.touch(1) && !prepared.touch(2) && prepared.touch(3));
    prepared.answered(2, false);
    prepared.answered(3, true);
    assert_eq!(prepared.len(), 1);
}
