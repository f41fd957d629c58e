//! Who and where a startup message says, and which of its parameters become the client's own.

use model::Refusal;

use super::*;
use crate::login::{Carried, Policy, Replication, UnknownParameter};

fn heard(parameters: &[(&str, &str)]) -> Heard {
    hear(Transport::Plain, &|| Challenge::Pass, [&startup(parameters)[..]])
}

fn identity(parameters: &[(&str, &str)]) -> Identity {
    heard(parameters).identity.expect("let through")
}

#[test]
fn a_user_must_be_named_and_not_for_too_long() {
    let nameless = "refused 28000 no username supplied";
    assert_eq!(heard(&[]).story(), nameless);
    assert_eq!(heard(&[("database", "shop")]).story(), nameless);
    assert_eq!(heard(&[("user", "")]).story(), nameless);
    assert_eq!(heard(&[("user", &"u".repeat(127))]).story(), "who, in");
    assert_eq!(heard(&[("user", &"u".repeat(128))]).story(), "refused 28000 username too long");
}

#[test]
fn a_database_is_the_users_unless_it_is_named() {
    assert_eq!(identity(&[("user", "ann")]).database, "ann");
    assert_eq!(identity(&[("user", "ann"), ("database", "")]).database, "ann");
    assert_eq!(identity(&[("user", "ann"), ("database", "shop")]).database, "shop");
    assert_eq!(identity(&[("database", "shop"), ("user", "ann"), ("database", "yard")]).database, "yard");
}

#[test]
fn a_database_name_longer_than_any_is_no_database() {
    assert!(identity(&[("user", "ann"), ("database", &"d".repeat(63))]).database_may_exist());
    assert!(!identity(&[("user", "ann"), ("database", &"d".repeat(64))]).database_may_exist());
}

#[test]
fn bytes_that_are_no_text_become_a_name_that_nobody_has() {
    let mut packet = startup(&[("user", "a?b")]);
    let place = packet.iter().position(|&byte| byte == b'?').expect("it is there");
    packet[place] = 0xe4;
    let heard = hear(Transport::Plain, &|| Challenge::Pass, [&packet[..]]);
    assert_eq!(heard.identity.expect("let through").user, "a\u{fffd}b");
}

#[test]
fn the_application_may_say_its_name() {
    assert_eq!(identity(&[("user", "ann")]).application_name, None);
    let named = identity(&[("user", "ann"), ("Application_Name", "till")]);
    assert_eq!(named.application_name.as_deref(), Some("till"));
}

fn check_replication(value: &str, expect: Option<Replication>) {
    let heard = heard(&[("user", "ann"), ("replication", value)]);
    match expect {
        Some(kind) => assert_eq!(heard.identity.map(|found| found.replication), Some(kind), "{value}"),
        None => {
            let told = "refused 08P01 invalid value for parameter \"replication\"";
            assert_eq!(heard.story(), told, "{value}");
        }
    }
}

#[test]
fn replication_is_a_boolean_or_the_word_database() {
    for value in ["true", "on", "yes", "1", "TRUE", "t", "tr", "y", "On"] {
        check_replication(value, Some(Replication::Physical));
    }
    for value in ["false", "off", "no", "0", "f", "n", "of", "OFF"] {
        check_replication(value, Some(Replication::No));
    }
    check_replication("database", Some(Replication::Logical));
    for value in ["", "o", "maybe", "2", "10", "Database", "databases", "trues", "truest", "-1"] {
        check_replication(value, None);
    }
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

fn settle(
    parameters: &[(&str, &str)],
    ignored: &[&str],
    unknown: UnknownParameter,
) -> Result<Carried, Refusal> {
    let requested = heard(&[&[("user", "ann")], parameters].concat()).requested.expect("let in");
    let (ignored, tracked) = (names(ignored), names(&["IntervalStyle"]));
    requested.settle(&Policy { ignored: &ignored, tracked: &tracked, unknown })
}

/// `expect` as `name=value` with `; ` between, or as the refusal's SQLSTATE and words.
fn check(parameters: &[(&str, &str)], ignored: &[&str], unknown: UnknownParameter, expect: &str) {
    let found = match settle(parameters, ignored, unknown) {
        Ok(carried) => {
            assert_eq!(carried.options, None);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let pair = |p: &Parameter| format!("{}={}", text(&p.name), text(&p.value));
            carried.parameters.iter().map(pair).collect::<Vec<_>>().join("; ")
        }
        Err(refusal) => format!("{} {refusal}", refusal.sqlstate()),
    };
    assert_eq!(found, expect, "{parameters:?} {ignored:?} {unknown:?}");
}

fn check_options(text: &str, expect: &str) {
    check(&[("options", text)], &[], UnknownParameter::Carry, expect);
}

#[test]
fn all_parameters_are_carried_but_those_to_be_ignored() {
    let sent = [("search_path", "a, b"), ("extra_float_digits", "2"), ("client_encoding", "UTF8")];
    let all = "search_path=a, b; extra_float_digits=2; client_encoding=UTF8";
    check(&sent, &[], UnknownParameter::Carry, all);
    let ignored = ["Extra_Float_Digits"];
    check(&sent, &ignored, UnknownParameter::Carry, "search_path=a, b; client_encoding=UTF8");
    check(&[("my.setting_1", "")], &[], UnknownParameter::Carry, "my.setting_1=");
}

#[test]
fn unknown_parameters_are_refused_where_the_policy_says_so() {
    let refused = "42704 unsupported startup parameter: search_path";
    let sent = [("datestyle", "ISO"), ("intervalstyle", "iso_8601"), ("search_path", "a")];
    check(&sent, &[], UnknownParameter::Refuse, refused);
    let rest = "datestyle=ISO; intervalstyle=iso_8601";
    check(&sent, &["search_path"], UnknownParameter::Refuse, rest);
    let refused = "08P01 unsupported startup parameter in options: search_path";
    check(&[("options", "-c search_path=a")], &[], UnknownParameter::Refuse, refused);
}

#[test]
fn a_name_that_no_setting_has_is_refused_always() {
    for name in ["a b", "a;b", "a'b", "1a", "a..b", ".a", "a.", "\u{e4}", "a\"", "-"] {
        let refused = format!("42704 unsupported startup parameter: {name}");
        check(&[(name, "x")], &[], UnknownParameter::Carry, &refused);
        check(&[(name, "x")], &[name], UnknownParameter::Carry, "");
    }
}

#[test]
fn the_later_of_two_values_counts_and_options_come_first() {
    check(&[("a", "1"), ("b", "2"), ("A", "3")], &[], UnknownParameter::Carry, "A=3; b=2");
    check(&[("a", "1"), ("options", "-ca=2 -cb=3 -cb=4")], &[], UnknownParameter::Carry, "a=1; b=4");
}

#[test]
fn options_are_split_as_postgresql_splits_them() {
    check_options("", "");
    check_options(" \t\n ", "");
    check_options("-c a=1 -cb=2 --c=3", "a=1; b=2; c=3");
    check_options("-c  a=1", "a=1");
    check_options("--a=x\\ y", "a=x y");
    check_options("--a=x\\\\y\\z", "a=x\\yz");
    check_options("--a=x\\", "a=x");
    check_options("--a=b=c", "a=b=c");
    check_options("--a=", "a=");
    check_options("--a=1+2%203", "a=1+2%203");
    check_options("--search-path=my-schema", "search_path=my-schema");
    check_options("-c\\ a=1", "42704 unsupported startup parameter:  a");
}

#[test]
fn options_that_do_more_than_set_parameters_are_refused() {
    let refused =
        "08P01 unsupported options startup parameter: only '-c config=val' and '--config=val' are allowed";
    for text in ["-c", "-c a", "--a", "--", "-d 5", "a=1", "-", "-c =1", "--=1", "-e", "-C a=1"] {
        check_options(text, refused);
        check(&[("options", text)], &["options"], UnknownParameter::Carry, "");
    }
}

#[test]
fn ignored_options_still_set_what_is_tracked() {
    let sent = [("options", "-c datestyle=ISO -c IntervalStyle=iso_8601 -c geqo=off")];
    for unknown in [UnknownParameter::Carry, UnknownParameter::Refuse] {
        check(&sent, &["options"], unknown, "datestyle=ISO; IntervalStyle=iso_8601");
    }
}

#[test]
fn replication_passes_its_options_on_as_they_are() {
    let sent = [("replication", "database"), ("options", "-e  -d 5"), ("DateStyle", "ISO")];
    let carried = settle(&sent, &[], UnknownParameter::Refuse).expect("let in");
    assert_eq!(carried.options.as_deref(), Some(&b"-e  -d 5"[..]));
    assert_eq!(carried.parameters.len(), 1);
}

#[test]
fn thousands_of_parameters_are_told_apart() {
    let named: Vec<String> = (0..1500).map(|number| format!("p{number}")).collect();
    let sent: Vec<(&str, &str)> = named.iter().map(|name| (name.as_str(), "")).collect();
    let carried = settle(&sent[..1200], &[], UnknownParameter::Carry).expect("let in");
    assert_eq!(carried.parameters.len(), 1200);
}
