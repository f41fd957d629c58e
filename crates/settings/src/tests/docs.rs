//! The generated files in docs/, and the example as a file of settings.

use super::{good, read_with};
use crate::{Section, Settings, example, manual};

#[track_caller]
fn is_current(committed: &str, made: &str, path: &str) {
    assert!(committed == made, "{path} is not what the table says: run `cargo xtask gen-docs`");
}

#[test]
fn manual_is_what_the_table_says() {
    is_current(include_str!("../../../../docs/settings.md"), &manual(), "docs/settings.md");
}

#[test]
fn example_is_what_the_table_says() {
    is_current(include_str!("../../../../docs/example.ini"), &example(), "docs/example.ini");
}

#[test]
fn every_key_is_in_manual_and_example() {
    for spec in Section::ALL.into_iter().flat_map(Section::specs) {
        assert!(manual().contains(&format!("#### `{}`\n", spec.name)), "{}", spec.name);
        assert!(spec.paragraph().ends_with(['.', '!']), "{} has no sentence", spec.name);
    }
    for spec in Section::General.specs() {
        assert!(example().contains(&format!("\n;{} =", spec.name)), "{}", spec.name);
    }
}

#[test]
fn example_changes_nothing() {
    let mut defaults = Settings::default();
    defaults.general.conffile = Some("pgbouncer.ini".to_owned());
    assert_eq!(good(&example()), defaults);
}

#[test]
fn example_with_every_comment_taken_away_is_read() {
    let text: String = example()
        .lines()
        .map(|line| match line.strip_prefix(';') {
            Some(rest) if !rest.starts_with(';') => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let outcome = read_with(text.as_bytes(), &[]);
    let settings = outcome.settings.unwrap();
    let mut defaults = Settings::default();
    defaults.general.conffile = Some("pgbouncer.ini".to_owned());
    assert_eq!(settings.general, defaults.general);
    assert_eq!(settings.databases.len(), 2);
    let password = settings.databases["reports"].password.as_ref().unwrap();
    assert_eq!(password.expose(), "it's secret");
    assert!(settings.autodb.is_some() && settings.users.len() == 1 && settings.peers.len() == 1);
}

#[test]
fn no_line_of_the_example_is_wide() {
    for line in example().lines().filter(|line| line.starts_with(";;")) {
        assert!(line.chars().count() <= 100, "{line}");
    }
}
