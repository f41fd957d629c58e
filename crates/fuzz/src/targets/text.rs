//! The files: settings, users, rules, maps; and the lexer of SQL.

use std::net::{IpAddr, Ipv4Addr};

use auth::hba::{Facts, Hba, Origin};
use auth::ident::IdentMaps;
use auth::userlist::Userlist;

pub(super) fn settings(input: &[u8]) {
    let files = |path: &str| match path {
        "main.ini" => Ok(input.to_vec()),
        "other.ini" => Ok(b"[pgbouncer]\nlisten_port = 1\n".to_vec()),
        // A file that includes itself.
        _ => Ok(format!("%include {path}\n").into_bytes()),
    };
    let outcome = settings::read("main.ini", &files);
    match &outcome.settings {
        Ok(settings) => {
            for database in settings.databases.values().take(8) {
                let _ = format!("{:?}", settings.effective(database, "user"));
            }
            drop(settings.show_config());
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "a refusal has a reason");
            problems.iter().for_each(|problem| drop(problem.to_string()));
        }
    }
    outcome.warnings.iter().for_each(|warning| drop(warning.to_string()));
}

pub(super) fn url(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Err(problems) = settings::Settings::from_url(&text) {
        assert!(!problems.is_empty(), "a refusal has a reason");
        problems.iter().for_each(|problem| drop(problem.to_string()));
    }
}

pub(super) fn userlist(input: &[u8]) {
    let (list, problems) = Userlist::parse(input);
    let _ = (list.secret("bob"), list.unknown_as(), format!("{problems:?}"));
}

pub(super) fn hba(input: &[u8]) {
    let mut asked = 0;
    let (hba, problems) = Hba::parse(input, &mut |_| {
        asked += 1;
        (asked < 1_000).then(|| b"a b\n@file\n\"c\"".to_vec())
    });
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for origin in [Origin::Unix, Origin::Tcp { address: local, tls: true }] {
        let facts = Facts { database: "db1", user: "bob", origin, replication_physical: false };
        let _ = hba.decide(&facts);
    }
    let _ = (hba.len(), hba.lines_with_unknown_map(&IdentMaps::default()), format!("{problems:?}"));
}

pub(super) fn ident(input: &[u8]) {
    let (maps, problems) = IdentMaps::parse(input);
    let _ = (maps.allows("m", "root@example.com", "root"), maps.contains("m"), format!("{problems:?}"));
}

pub(super) fn members(input: &[u8]) {
    let mut roster = patroni::Roster::default();
    match patroni::Report::read(input) {
        Ok(report) => {
            let count = report.members.len();
            assert!((1..=patroni::MEMBERS_MAX).contains(&count), "{count} members");
            roster.take(report);
            assert!(roster.members().all(|member| !member.host.starts_with(['/', '@']) && member.port > 0));
        }
        Err(fault) => drop(fault.to_string()),
    }
}

pub(super) fn sql(input: &[u8]) {
    if let Some(name) = sql::deallocated_name(input) {
        assert!(name.len() <= 63, "a name is at most 63 bytes");
    }
}

pub(super) fn state(input: &[u8]) {
    for standard_conforming_strings in [true, false] {
        let options = sql::state::Options { standard_conforming_strings, ..Default::default() };
        let effects = sql::state::scan(input, options);
        let mut count = 0_usize;
        effects.each(|_, effect| {
            let _ = effect.class();
            if let sql::state::Effect::Set(set) = effect {
                set.write(&mut Vec::new());
            }
            count += 1;
        });
        assert_eq!(effects.is_plain(), count == 0, "the quick look and the exact one agree");
        let mut end = 0;
        for statement in effects.statements() {
            assert!(statement.offset >= end && !statement.text.is_empty(), "statements stand in order");
            end = statement.offset + statement.text.len();
            assert_eq!(&input[statement.offset..end], statement.text, "a statement is where it says");
        }
    }
}

/// The grammar is C: what it does to the stack shows as the end of the process.
#[allow(clippy::disallowed_methods, reason = "the caller has the stack")]
pub(super) fn reads(input: &[u8]) {
    let key = sql::fingerprint::Key::new([7; 16]);
    let masked = sql::fingerprint::masked(input);
    let fingerprint = sql::fingerprint::fingerprint(input, &key);
    assert_eq!(masked.is_ok(), fingerprint.is_some(), "one of the two without the other");
    let masked = match masked {
        Ok(masked) => masked,
        Err(unfit) => {
            let _ = reads::unfit(input, unfit).words();
            return;
        }
    };
    let again = sql::fingerprint::fingerprint(masked.as_bytes(), &key);
    assert_eq!(again, fingerprint, "what is judged is not what the fingerprint is of: {masked}");
    let read = std::thread::Builder::new().stack_size(reads::STACK_BYTES).spawn(move || {
        if let Ok(case) = reads::Case::open(&masked) {
            assert!(!case.question().is_empty());
        }
    });
    read.expect("a thread").join().expect("no panic");
}
