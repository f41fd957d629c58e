//! Tables of rules and connections, and the mistakes of the file.

use super::{Facts, Hba, HbaFault, INCLUDE_DEPTH_MAX, Origin};
use crate::ClientMethod;
use crate::ident::IdentMaps;

fn no_files(_: &str) -> Option<Vec<u8>> {
    None
}

fn hba(text: &str) -> Hba {
    let (hba, problems) = Hba::parse(text.as_bytes(), &mut no_files);
    assert!(problems.is_empty(), "{problems:?}");
    hba
}

fn tcp(address: &str) -> Origin {
    Origin::Tcp { address: address.parse().unwrap(), tls: false }
}

fn tls(address: &str) -> Origin {
    Origin::Tcp { address: address.parse().unwrap(), tls: true }
}

fn facts<'a>(origin: Origin, database: &'a str, user: &'a str) -> Facts<'a> {
    Facts { database, user, origin, replication_physical: false }
}

/// The line of the rule that decides, or 0.
#[track_caller]
fn check(text: &str, table: &[(Origin, &str, &str, u32)]) {
    let hba = hba(text);
    for (origin, database, user, line) in table {
        let decided = hba.decide(&facts(*origin, database, user)).map_or(0, |decision| decision.line);
        assert_eq!(decided, *line, "{origin:?} {database} {user}");
    }
}

#[test]
fn first_match_wins() {
    check(
        "host db joe 10.0.0.0/8 reject\nhost all all all md5\n",
        &[
            (tcp("10.1.2.3"), "db", "joe", 1),
            (tcp("10.1.2.3"), "db", "ann", 2),
            (tcp("11.1.2.3"), "db", "joe", 2),
            (Origin::Unix, "db", "joe", 0),
        ],
    );
}

#[test]
fn record_type_decides_by_socket_and_tls() {
    check(
        "local all all peer\nhostssl all tls all cert\nhostnossl all clear all md5\nhost all both all md5\n",
        &[
            (Origin::Unix, "d", "tls", 1),
            (tls("::1"), "d", "tls", 2),
            (tcp("::1"), "d", "tls", 0),
            (tls("::1"), "d", "clear", 0),
            (tcp("::1"), "d", "clear", 3),
            (tls("::1"), "d", "both", 4),
            (tcp("::1"), "d", "both", 4),
        ],
    );
}

#[test]
fn addresses_match_by_their_bits() {
    check(
        "host a all 127.0.0.1/32 md5\nhost a all 10.0.0.0 255.0.0.0 md5\nhost a all ::1/128 md5\n\
         host a all fe80:: ffff:: md5\nhost b all 0.0.0.0/0 md5\nhost c all ::/0 md5\nhost d all all md5\n",
        &[
            (tcp("127.0.0.1"), "a", "u", 1),
            (tcp("127.0.0.2"), "a", "u", 0),
            (tcp("10.255.0.1"), "a", "u", 2),
            (tcp("::1"), "a", "u", 3),
            (tcp("::2"), "a", "u", 0),
            (tcp("fe80::5"), "a", "u", 4),
            (tcp("fe81::5"), "a", "u", 0),
            (tcp("1.2.3.4"), "b", "u", 5),
            (tcp("::ffff:1.2.3.4"), "b", "u", 5),
            (tcp("::1"), "b", "u", 0),
            (tcp("::1"), "c", "u", 6),
            (tcp("1.2.3.4"), "c", "u", 0),
            (tcp("::ffff:1.2.3.4"), "c", "u", 0),
            (tcp("1.2.3.4"), "d", "u", 7),
            (tcp("::1"), "d", "u", 7),
        ],
    );
}

#[test]
fn names_are_lists_quotes_and_keywords() {
    check(
        "local a,b , \"c d\" joe,\"all\" md5\nlocal sameuser \"x\"\"y\",kim md5\nlocal \"sameuser\" all md5\n",
        &[
            (Origin::Unix, "a", "joe", 1),
            (Origin::Unix, "b", "all", 1),
            (Origin::Unix, "c d", "joe", 1),
            (Origin::Unix, "a", "ann", 0),
            (Origin::Unix, "kim", "kim", 2),
            (Origin::Unix, "x\"y", "x\"y", 2),
            (Origin::Unix, "joe", "kim", 0),
            (Origin::Unix, "sameuser", "ann", 3),
        ],
    );
}

#[test]
fn physical_replication_matches_only_its_word() {
    let text = "local all all trust\nlocal replication rep md5\nlocal \"replication\" all reject\n";
    let rules = hba(text);
    let physical = |user| Facts { replication_physical: true, ..facts(Origin::Unix, "db", user) };
    assert_eq!(rules.decide(&physical("rep")).unwrap().line, 2);
    assert!(rules.decide(&physical("ann")).is_none());
    // Logical replication is matched by its database, and the word is not a database's name.
    assert_eq!(rules.decide(&facts(Origin::Unix, "replication", "rep")).unwrap().line, 1);
    check("local replication all md5\n", &[(Origin::Unix, "replication", "rep", 0)]);
}

#[test]
fn methods_and_maps_are_read() {
    for (words, method, map) in [
        ("trust", ClientMethod::Trust, None),
        ("reject", ClientMethod::Reject, None),
        ("md5", ClientMethod::Md5, None),
        ("password", ClientMethod::Plain, None),
        ("scram-sha-256 # why", ClientMethod::Scram, None),
        ("cert map=m", ClientMethod::Cert, Some("m")),
        ("peer map=\"m m\"", ClientMethod::Peer, Some("m m")),
        ("peer", ClientMethod::Peer, None),
        ("ldap ldapserver=x ldapbindpasswd=\"open", ClientMethod::Ldap, None),
    ] {
        let hba = hba(&format!("local all all {words}\n"));
        let decision = hba.decide(&facts(Origin::Unix, "d", "u")).unwrap();
        assert_eq!((decision.method, decision.map), (method, map), "{words}");
        assert_eq!(decision.ldap_options.is_some(), method == ClientMethod::Ldap);
    }
}

#[test]
fn rules_whose_map_is_missing_are_told() {
    let (maps, _) = IdentMaps::parse(b"known a b\n");
    let rules = hba("local all a peer map=known\nlocal all b peer map=unknown\nlocal all c peer\n");
    assert_eq!(rules.lines_with_unknown_map(&maps), [2]);
}

#[test]
fn empty_file_lets_nobody_in() {
    let rules = hba("\n  \n# nothing\n");
    assert!(rules.is_empty());
    assert!(rules.decide(&facts(Origin::Unix, "d", "u")).is_none());
}

#[track_caller]
fn check_problem(line: &[u8], column: u32, fault: HbaFault) {
    let file = [b"local x all md5\n", line, b"\nlocal y all md5\n"].concat();
    let (hba, problems) = Hba::parse(&file, &mut no_files);
    assert_eq!(hba.len(), 2, "the other lines count");
    let told: Vec<_> = problems.listed.iter().map(|told| (told.line, told.column, told.fault)).collect();
    assert_eq!(told, [(2, column, fault)], "{:?}", String::from_utf8_lossy(line));
}

#[test]
fn mistakes_are_told_with_line_and_column() {
    check_problem(b"remote all all md5", 1, HbaFault::TypeUnknown);
    check_problem(b"\"local\" all all md5", 1, HbaFault::TypeUnknown);
    check_problem(b"local", 6, HbaFault::NameMissing);
    check_problem(b"local all", 10, HbaFault::NameMissing);
    check_problem(b"local a, all", 13, HbaFault::NameMissing);
    check_problem(b"local ,a all md5", 7, HbaFault::NameMissing);
    check_problem(b"local samerole all md5", 7, HbaFault::SameRoleUnsupported);
    check_problem(b"local all +group md5", 11, HbaFault::GroupUnsupported);
    check_problem(b"local all @missing md5", 11, HbaFault::IncludeUnreadable);
    check_problem(b"local all @ md5", 11, HbaFault::IncludeUnreadable);
    check_problem(b"local all \"open md5", 11, HbaFault::QuoteUnclosed);
    check_problem(b"local all \xff md5", 11, HbaFault::NotUtf8);
    check_problem(b"local all all", 14, HbaFault::MethodUnknown);
    check_problem(b"local all all any", 15, HbaFault::MethodUnknown);
    check_problem(b"local all all pam", 15, HbaFault::MethodUnknown);
    check_problem(b"local all all md5 map=x", 19, HbaFault::OptionUnsupported);
    check_problem(b"local all all peer map=", 24, HbaFault::OptionUnsupported);
    check_problem(b"local all all peer map=x y", 26, HbaFault::OptionUnsupported);
    check_problem(b"host all all md5", 14, HbaFault::AddressMalformed);
    check_problem(b"host all all samenet md5", 14, HbaFault::AddressMalformed);
    check_problem(b"host all all example.org md5", 14, HbaFault::AddressMalformed);
    check_problem(b"host all all 10.0.0.0 md5", 23, HbaFault::MaskMalformed);
    check_problem(b"host all all 10.0.0.0/33 md5", 14, HbaFault::MaskMalformed);
    check_problem(b"host all all 10.0.0.0/+8 md5", 14, HbaFault::MaskMalformed);
    check_problem(b"host all all 10.0.0.0/ md5", 14, HbaFault::MaskMalformed);
    check_problem(b"host all all ::/129 md5", 14, HbaFault::MaskMalformed);
    check_problem(b"host all all 10.0.0.0 ffff:: md5", 23, HbaFault::MaskMalformed);
    check_problem(b"host all all 10.0.0.1/8 md5", 14, HbaFault::AddressOutsideMask);
    check_problem("local \"\u{e9}\u{e9}\" \"open".as_bytes(), 12, HbaFault::QuoteUnclosed);
}

#[test]
fn names_come_from_included_files_relative_to_the_including_one() {
    let mut asked = Vec::new();
    let mut files = |path: &str| {
        asked.push(path.to_owned());
        let text = match path {
            "lists/users" => "ann, bob\n\n# comment\n\"c d\" dan\n@more\n@/etc/even_more",
            "lists/more" => "eve",
            "/etc/even_more" => "fay",
            _ => return None,
        };
        Some(text.as_bytes().to_vec())
    };
    let (hba, problems) = Hba::parse(b"local all zoe,@lists/users md5\n", &mut files);
    assert!(problems.is_empty(), "{problems:?}");
    for user in ["zoe", "ann", "bob", "c d", "dan", "eve", "fay"] {
        assert!(hba.decide(&facts(Origin::Unix, "d", user)).is_some(), "{user}");
    }
    assert!(hba.decide(&facts(Origin::Unix, "d", "gus")).is_none());
    assert_eq!(asked, ["lists/users", "lists/more", "/etc/even_more"]);
}

#[test]
fn files_that_include_themselves_end() {
    let mut reads = 0;
    let mut once = |_: &str| {
        reads += 1;
        Some(b"@self".to_vec())
    };
    let (hba, problems) = Hba::parse(b"local @self all md5\n", &mut once);
    assert!(hba.is_empty());
    assert_eq!(problems.listed[0].fault, HbaFault::IncludeTooDeep);
    assert_eq!(reads, INCLUDE_DEPTH_MAX);

    // Each file names itself a thousand times over: without a limit on the whole this would never end.
    let wide = ["local all x md5\n", &"local @a,@a all md5\n".repeat(600)].concat();
    let (hba, problems) = Hba::parse(wide.as_bytes(), &mut |_| Some(b"x".to_vec()));
    assert_eq!(hba.len(), 501);
    assert_eq!(problems.listed[0].fault, HbaFault::IncludesTooMany);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(file: Vec<u8>, line in "(local|host|hostssl) [ -~]{0,60}") {
        Hba::parse(&file, &mut |_| Some(file.clone()));
        Hba::parse(line.as_bytes(), &mut no_files);
    }
}
