//! Sets of parameters and their differences; statements and how long they are known.

use std::sync::Arc;

use proptest::prelude::*;

use crate::parameters::{difference, is_fixed};
use crate::{Digest, Parameters, Statement, Statements};

fn parameters(pairs: &[(&str, &str, bool)]) -> Parameters {
    let mut parameters = Parameters::default();
    for (name, value, reported) in pairs {
        parameters.set(name.as_bytes(), value.as_bytes(), *reported);
    }
    parameters
}

#[test]
fn names_are_found_whatever_their_case() {
    let mut set = parameters(&[("TimeZone", "UTC", true), ("search_path", "a", false)]);
    set.set(b"timezone", b"CET", false);
    assert_eq!(set.value(b"TIMEZONE"), Some(&b"CET"[..]));
    let told: Vec<_> = set.iter().map(|parameter| (&*parameter.name, parameter.reported)).collect();
    assert_eq!(told, [(&b"search_path"[..], false), (&b"TimeZone"[..], true)]);
    set.remove(b"TimeZONE");
    assert_eq!(set.iter().len(), 1);
}

#[test]
fn what_no_session_can_set_is_no_difference() {
    let wants = parameters(&[("server_version", "15", true), ("Is_Superuser", "on", true)]);
    let has = parameters(&[("server_version", "18", true), ("is_superuser", "off", true)]);
    assert!(difference(&wants, &has).is_empty());
}

fn set() -> impl Strategy<Value = Parameters> {
    let name = prop::sample::select(&["a", "A", "b", "ab", "aB", "server_version", ""][..]);
    let pair = (name, prop::sample::select(&["", "1", "2"][..]), any::<bool>());
    prop::collection::vec(pair, 0..8).prop_map(|pairs| parameters(&pairs))
}

proptest! {
    #[test]
    fn a_difference_applied_leaves_none(wants in set(), has in set()) {
        let difference = difference(&wants, &has);
        let mut after = has.clone();
        difference.set.iter().for_each(|parameter| after.put(parameter));
        difference.reset.iter().for_each(|name| after.remove(name));
        prop_assert!(crate::parameters::difference(&wants, &after).is_empty());
        for wanted in wants.iter().filter(|wanted| !is_fixed(&wanted.name)) {
            prop_assert_eq!(after.value(&wanted.name), Some(&*wanted.value));
        }
        for left in after.iter() {
            prop_assert!(left.reported || wants.value(&left.name).is_some(), "nothing of a stranger's is left");
        }
        prop_assert!(difference.set.iter().all(|p| has.value(&p.name) != Some(&p.value)), "nothing is set twice");
    }

    #[test]
    fn sets_stay_sorted_and_without_doubles(set in set()) {
        let names: Vec<Vec<u8>> = set.iter().map(|parameter| parameter.name.to_ascii_lowercase()).collect();
        prop_assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

#[test]
fn one_text_is_one_statement_while_somebody_holds_it() {
    let statements = Statements::default();
    let one = statements.intern(b"select 1", b"");
    assert!(Arc::ptr_eq(&one, &statements.intern(b"select 1", b"")));
    let other = statements.intern(b"select 2", b"");
    assert_ne!(one.id, other.id);
    let id = one.id;
    drop(one);
    assert_ne!(statements.intern(b"select 1", b"").id, id, "a number is never used twice");
}

#[test]
fn the_table_of_statements_is_bounded_by_what_is_held() {
    let statements = Statements::default();
    let held: Vec<_> = (0..3000_u32).map(|number| statements.intern(&number.to_be_bytes(), b"")).collect();
    for number in 3000..100_000_u32 {
        drop(statements.intern(&number.to_be_bytes(), b""));
        assert!(statements.len() <= 2 * (3000 + 1) + 1);
    }
    drop(held);
    for number in 0..10_000_u32 {
        drop(statements.intern(&number.to_be_bytes(), b""));
    }
    assert!(statements.len() <= 1025, "{}", statements.len());
}

#[test]
fn after_a_change_a_text_is_another_statement_until_the_old_one_is_confirmed() {
    let statements = Statements::default();
    let old = statements.intern(b"select 1", b"");
    statements.renew();
    let new = statements.intern(b"select 1", b"");
    assert_ne!(old.id, new.id);
    assert!(Arc::ptr_eq(&new, &statements.intern(b"select 1", b"")));
    statements.renew();
    new.confirm(statements.generation());
    assert!(Arc::ptr_eq(&new, &statements.intern(b"select 1", b"")));
    new.confirm(0);
    assert_eq!(new.generation(), statements.generation(), "an older answer takes nothing back");
    assert!(new.dispute() && !new.dispute());
    assert_ne!(new.id, statements.intern(b"select 1", b"").id);
}

#[test]
fn a_text_means_something_else_in_another_pool_and_under_another_search_path() {
    let common = Statements::default();
    let (one, other) = (common.beside(), common.beside());
    let ids = [one.intern(b"x", b"").id, other.intern(b"x", b"").id, one.intern(b"x", b"tenant").id];
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2], "{ids:?}");
    assert_eq!(one.intern(b"y", b"tenant").rest, (*b"y").into());
    other.renew();
    assert_eq!(one.generation(), 1, "who changes a table need not be who reads it");
}

#[test]
fn what_was_told_first_is_what_later_descriptions_are_held_against() {
    let [a, b] = [Digest::of(b"a"), Digest::of(b"b")];
    let statement = Statement::new(1, b"", 0);
    assert!(!statement.is_told());
    assert!(statement.tell(None, a), "of a portal, without parameters");
    assert!(statement.is_told());
    assert!(!statement.tell(None, b) && !statement.tell(Some(a), b));
    assert!(statement.tell(Some(a), a));
    assert!(!statement.tell(Some(b), a) && statement.tell(None, a));
}

#[test]
fn a_refusal_is_news_once_until_the_statement_is_confirmed() {
    let statement = Statement::new(1, b"", 0);
    assert!(statement.refuse() && !statement.refuse());
    statement.confirm(1);
    assert!(statement.refuse());
}
