//! Where a client's words may go.

use std::sync::Arc;

use client::Client;
use model::{ClientId, Moment, Statements};

use super::harness::parameters;
use crate::route::{Ground, Reason, Verdict, Way};
use crate::{Link, Policy};

fn link(settings: &[(&str, &str)]) -> Link {
    let all: Vec<(&str, &str, bool)> = settings.iter().map(|(name, value)| (*name, *value, true)).collect();
    let client = Client::new(ClientId(1), parameters(&all));
    let mut link = Link::new(client, Arc::new(Policy::default()), Arc::new(Statements::default()), Moment(1));
    let statement = link.statements.intern(b"select 7\0\0\0", b"");
    link.client.names().insert(b"read", statement, 0);
    link.client.settle_name();
    let statement = link.statements.intern(b"insert into t values (1)\0\0\0", b"");
    link.client.names().insert(b"write", statement, 0);
    link.client.settle_name();
    link
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len() + 4).expect("short");
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat())
}

fn bind(name: &str) -> Vec<u8> {
    message(b'B', &[b"\0", name.as_bytes(), b"\0\0\0\0\0\0\0"].concat())
}

fn execute() -> Vec<u8> {
    message(b'E', b"\0\0\0\0\0")
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// A number that only who judges knows the meaning of.
const JUDGED: u8 = 7;

/// Reads are proved of what begins with `select`, and nothing is known of what begins with `values`.
fn verdict(text: &[u8]) -> Verdict {
    match text {
        _ if text.starts_with(b"select") => Verdict::Read,
        _ if text.starts_with(b"values") => Verdict::Unknown,
        _ => Verdict::Other(JUDGED),
    }
}

fn way(link: &Link, input: &[u8]) -> Way {
    link.route(input, &mut |text| verdict(text))
}

#[track_caller]
fn check(input: &[Vec<u8>], wanted: Way) {
    assert_eq!(way(&link(&[]), &input.concat()), wanted);
}

const TRANSACTION: Way = Way::Standby { ground: Ground::Transaction, opens: true, is_read: true };
const STATEMENT: Way = Way::Standby { ground: Ground::Statement, opens: false, is_read: true };

#[test]
fn a_query_goes_where_it_says_or_where_it_may() {
    check(&[query("begin read only")], TRANSACTION);
    check(&[query("begin")], Way::Primary(Reason::NoRead));
    check(&[query("select 1")], STATEMENT);
    check(&[query("values (1)")], Way::Primary(Reason::Unknown));
    check(&[query("/* howdah: primary */ select 1")], Way::Primary(Reason::Hint));
    let hinted = |is_read| Way::Standby { ground: Ground::Hint, opens: false, is_read };
    check(&[query("/* howdah: standby */ delete from t")], hinted(false));
    // Only what comes first is looked at.
    check(&[query("select 1"), query("delete from t")], STATEMENT);
    check(&[query("delete from t"), query("select 1")], Way::Primary(Reason::Judged(JUDGED)));
}

#[test]
fn a_batch_is_what_all_of_its_statements_are() {
    check(&[parse("", "select 1"), bind(""), execute(), sync()], STATEMENT);
    check(&[parse("new", "select 1"), bind("new"), execute(), sync()], STATEMENT);
    check(&[bind("read"), execute(), sync()], STATEMENT);
    check(&[bind("write"), execute(), sync()], Way::Primary(Reason::Judged(JUDGED)));
    check(&[bind("read"), execute(), bind("write"), execute(), sync()], Way::Primary(Reason::Judged(JUDGED)));
    let begin = [parse("", "begin read only"), bind(""), execute()].concat();
    check(&[begin.clone(), parse("", "values (1)"), bind(""), execute(), sync()], TRANSACTION);
    let commit = [parse("", "commit"), bind(""), execute()].concat();
    check(&[begin.clone(), bind("read"), commit.clone(), sync()], TRANSACTION);
    check(&[begin, bind("write"), execute(), sync()], Way::Primary(Reason::NoRead));
}

#[test]
fn what_is_not_whole_or_not_known_goes_to_the_primary() {
    for input in [
        vec![parse("", "select 1"), bind(""), execute()],
        vec![bind("unknown"), execute(), sync()],
        vec![bind(""), execute(), sync()],
        vec![parse("read", "select 1"), bind("read"), execute(), sync()],
        vec![parse("", "select 1"), query("select 1")],
        vec![message(b'F', b"\0\0\0\0"), sync()],
        vec![message(b'X', b"")],
        vec![b"Q\0\0\0\x0fsel".to_vec()],
        vec![Vec::new()],
        vec![b"Q\0\0".to_vec()],
        vec![message(b'P', b"\0broken"), sync()],
    ] {
        check(&input, Way::Primary(Reason::Unseen));
    }
}

#[test]
fn a_session_that_reads_by_default_reads_on_standbys() {
    let link = link(&[("default_transaction_read_only", "on")]);
    let session = |opens| Way::Standby { ground: Ground::Session, opens, is_read: true };
    assert_eq!(way(&link, &query("values (1)")), session(false));
    assert_eq!(way(&link, &query("begin")), session(true));
    assert_eq!(way(&link, &query("begin read write")), Way::Primary(Reason::Judged(JUDGED)));
    assert_eq!(way(&link, &query("insert into t values (1)")), Way::Primary(Reason::Judged(JUDGED)));
}

#[test]
fn who_has_more_than_settings_or_reads_by_other_rules_stays_on_the_primary() {
    let text = query("begin read only");
    assert_eq!(
        way(&link(&[("default_transaction_isolation", "serializable")]), &text),
        Way::Primary(Reason::State)
    );
    for setting in [("standard_conforming_strings", "off"), ("client_encoding", "SJIS")] {
        assert_eq!(way(&link(&[setting]), &text), Way::Primary(Reason::Unseen));
    }
    let mut listens = link(&[]);
    listens.client.listen(b"a"[..].into());
    assert_eq!(way(&listens, &text), Way::Primary(Reason::State));
}

#[test]
fn a_unit_ends_with_its_query_or_sync() {
    let link = link(&[]);
    let (one, batch) = (query("select 1"), [bind("read"), execute(), sync()].concat());
    assert_eq!(link.first_unit(&[one.clone(), batch.clone()].concat()), one.len());
    assert_eq!(link.first_unit(&[batch.clone(), one.clone()].concat()), batch.len());
    let open = [bind("read"), execute()].concat();
    assert_eq!(link.first_unit(&open), open.len());
    assert_eq!(link.first_unit(&one[..4]), 4);
    assert_eq!(link.first_unit(b""), 0);
}

#[test]
fn a_transaction_on_the_primary_counts_as_read_until_it_is_made_another() {
    let link = link(&[]);
    for unit in [query("select 1"), query("commit"), [bind("read"), execute(), sync()].concat()] {
        assert!(link.stays_reading(&unit));
    }
    for unit in [
        query("set transaction read write"),
        [parse("", "set transaction read write"), bind(""), execute(), sync()].concat(),
        [bind("write"), execute(), sync()].concat(),
        [query("commit"), query("insert into t values (1)")].concat(),
        bind("read"),
    ] {
        assert!(!link.stays_reading(&unit));
    }
}
