//! Texts and the commands they are, or the errors.

use model::ClientId;
use proptest::prelude::*;

use crate::grammar::parse;
use crate::{Command, Failure, Parameter, Scope, Show, Shutdown};

fn check(text: &str, expected: Command) {
    assert_eq!(parse(text), Ok(Some(expected)), "{text}");
}

fn check_empty(text: &str) {
    assert_eq!(parse(text), Ok(None), "{text}");
}

fn check_invalid(text: &str) {
    let failure = parse(text).expect_err(text);
    assert_eq!(failure.to_string(), format!("invalid command '{text}', use SHOW HELP;"));
    assert_eq!(failure.sqlstate(), "08P01");
}

fn check_failure(text: &str, expected: &str) {
    let failure = parse(text).expect_err(text);
    assert_eq!(failure.to_string(), expected, "{text}");
    assert_eq!(failure.sqlstate(), "08P01");
}

fn database(name: &str) -> Scope {
    Scope::Database(name.to_owned())
}

fn set(key: &str, value: &str) -> Command {
    Command::Set { key: key.to_owned(), value: value.to_owned() }
}

#[test]
fn every_table_is_shown_by_its_name() {
    for show in Show::ALL {
        check(&format!("SHOW {}", show.name()), Command::Show(show));
        check(&format!("select {};", show.name().to_uppercase()), Command::Show(show));
    }
    check("SHOW HELP", Command::ShowHelp);
    check("SHOW FDS", Command::ShowFds);
}

#[test]
fn case_blanks_comments_and_one_semicolon_do_not_matter() {
    check("show pools", Command::Show(Show::Pools));
    check("ShOw PoOlS", Command::Show(Show::Pools));
    check("\t show\r\n pools \t; \n", Command::Show(Show::Pools));
    check("show/* which? */pools -- these", Command::Show(Show::Pools));
    check("/* job 7 */ SHOW \"POOLS\"", Command::Show(Show::Pools));
    check("\"show\" pools", Command::Show(Show::Pools));
}

#[test]
fn a_node_is_named_by_its_host_and_port() {
    let drain = |place: &str| Command::DrainNode(place.to_owned());
    check("DRAIN NODE db1", drain("db1"));
    check(" drain  node\tdb1.example:5432 ; ", drain("db1.example:5432"));
    check("DRAIN/* why */NODE [fd00::1]:5432;", drain("[fd00::1]:5432"));
    check("DRAIN NODE 'db1:5432'", drain("db1:5432"));
    check("DRAIN NODE \"db1\"", drain("db1"));
    check("DRAIN NODE /run/postgresql:5432", drain("/run/postgresql:5432"));
    check("Undrain Node 10.0.0.1", Command::UndrainNode("10.0.0.1".to_owned()));
    let long = "h".repeat(264);
    for rest in ["", ";", "''", "a b", "a; b", "a;;", "'a", "a -- b", &long] {
        let failure = parse(&format!("DRAIN NODE {rest}")).expect_err(rest);
        assert!(matches!(failure, Failure::InvalidCommand(_)), "{rest}");
    }
    check_invalid("DRAIN");
    check_invalid("DRAIN db1");
}

#[test]
fn nothing_and_comments_are_an_empty_statement() {
    for text in ["", " ", ";", " ; ", "-- ping", "-- ping\n;", "/**/", "/* a */ ; /* b */"] {
        check_empty(text);
    }
}

#[test]
fn other_texts_are_invalid_and_repeated() {
    for text in [
        "BEGIN",
        "show",
        "select",
        "set",
        "show everything",
        "show pools clients",
        "show pools; show clients",
        "show pools;;",
        "; show pools",
        "reload all",
        "suspend db",
        "shutdown now",
        "select 1+1",
        "select 2",
        "select version(1)",
        "select $1",
        "show 'pools'",
        "'show' pools",
        "set a",
        "set a b",
        "set a b c",
        "set a = b c",
        "set a = 1.5",
        "set a = -1",
        "set a = (",
        "set 'a' = b",
        "\"set\" a = b",
        "set a \"to\" b",
        "pause my-db",
        "pause \"open",
        "set a = 'open",
        "/* open",
        "discard plans",
        "pause dätabase",
        "\0",
    ] {
        check_invalid(text);
    }
}

#[test]
fn long_invalid_text_is_cut_at_a_character() {
    let failure = parse(&"é".repeat(500)).expect_err("not ASCII");
    assert_eq!(failure, Failure::InvalidCommand("é".repeat(46)));
    assert!(failure.to_string().len() <= 127);
}

#[test]
fn databases_are_words_or_quoted() {
    check("PAUSE", Command::Pause(Scope::All));
    check("PAUSE db_1", Command::Pause(database("db_1")));
    check("PAUSE MixedCase", Command::Pause(database("MixedCase")));
    check("PAUSE \"my-db\"", Command::Pause(database("my-db")));
    check("PAUSE \"a \"\"quoted\"\" näme\"", Command::Pause(database("a \"quoted\" näme")));
    check("PAUSE \"\"", Command::Pause(Scope::All));
    check("PAUSE 7", Command::Pause(database("7")));
    check("RESUME", Command::Resume(Scope::All));
    check("RESUME db", Command::Resume(database("db")));
    check("KILL", Command::Kill(Scope::All));
    check("KILL db", Command::Kill(database("db")));
    check("RECONNECT", Command::Reconnect(Scope::All));
    check("RECONNECT db", Command::Reconnect(database("db")));
    check("WAIT_CLOSE", Command::WaitClose(Scope::All));
    check("WAIT_CLOSE db", Command::WaitClose(database("db")));
    check("DISABLE db", Command::Disable("db".to_owned()));
    check("ENABLE db", Command::Enable("db".to_owned()));
    check_failure("DISABLE", "a database is required");
    check_failure("ENABLE \"\"", "a database is required");
}

#[test]
fn clients_are_killed_by_id_or_ptr() {
    check("KILL_CLIENT 17", Command::KillClient(ClientId(17)));
    check("kill_client 0x1F;", Command::KillClient(ClientId(31)));
    check("KILL_CLIENT 18446744073709551615", Command::KillClient(ClientId(u64::MAX)));
    for text in [
        "KILL_CLIENT",
        "KILL_CLIENT x",
        "KILL_CLIENT 1f",
        "KILL_CLIENT 0x",
        "KILL_CLIENT 18446744073709551616",
        "KILL_CLIENT \"+1\"",
        "KILL_CLIENT \"0x+1\"",
    ] {
        check_failure(text, "invalid client pointer supplied");
    }
}

#[test]
fn words_alone() {
    check("RELOAD", Command::Reload);
    check("SUSPEND;", Command::Suspend);
    check("SHUTDOWN", Command::Shutdown(Shutdown::Immediate));
    check("shutdown wait_for_servers", Command::Shutdown(Shutdown::WaitForServers));
    check("SHUTDOWN WAIT_FOR_CLIENTS;", Command::Shutdown(Shutdown::WaitForClients));
}

#[test]
fn settings_take_words_and_quoted_values() {
    check("SET verbose = 2", set("verbose", "2"));
    check("set verbose=2;", set("verbose", "2"));
    check("set verbose TO 2", set("verbose", "2"));
    check("set verbose to'2'", set("verbose", "2"));
    check("set \"verbose\" = \"two \"\"2\"\"\"", set("verbose", "two \"2\""));
    check("set server_lifetime = '0.5'", set("server_lifetime", "0.5"));
    check("set q = 'it''s; -- not = a comment'", set("q", "it's; -- not = a comment"));
    check("set q = ''", set("q", ""));
    check("set Verbose = 2", set("Verbose", "2"));
}

#[test]
fn what_is_too_long_is_a_bad_argument() {
    let word = "w".repeat(63);
    check(&format!("PAUSE {word}"), Command::Pause(database(&word)));
    check_failure(&format!("PAUSE {word}w"), "bad arguments");
    check_failure("abcdefghijklmnop", "bad arguments");
    check_invalid("abcdefghijklmno");
    let value = "v".repeat(253);
    check(&format!("set k = '{value}'"), set("k", &value));
    check_failure(&format!("set k = '{value}v'"), "bad arguments");
    check_failure(&format!("set {word}w = 1"), "bad arguments");
    check_failure("set \"\" = 1", "bad arguments");
}

// pgjdbc, Npgsql, psycopg and older libpq's callers begin a session with one of these.
#[test]
fn what_drivers_say_is_taken() {
    for parameter in Parameter::ALL {
        check(&format!("SHOW {}", parameter.name()), Command::ShowParameter(parameter));
        check(&format!("SET {} = 'x'", parameter.name()), Command::SetIgnored(parameter));
    }
    check("SET extra_float_digits = 3", Command::SetIgnored(Parameter::ExtraFloatDigits));
    check("SET application_name = 'PostgreSQL JDBC Driver'", Command::SetIgnored(Parameter::ApplicationName));
    check("SET DateStyle TO 'ISO'", Command::SetIgnored(Parameter::DateStyle));
    check("SET client_encoding TO 'UTF8'", Command::SetIgnored(Parameter::ClientEncoding));
    check("SELECT 1", Command::SelectOne);
    check("SELECT version()", Command::Show(Show::Version));
    check("select VERSION ( ) ;", Command::Show(Show::Version));
    check("DISCARD ALL", Command::DiscardAll);
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_text_of_its_own_letters_panics(text in "(show|set|to|pools|[ '\"=;()/*a\n-]){0,20}") {
        let _ = parse(&text);
    }

    #[test]
    fn quoted_names_come_back_as_they_were(name in "[^\0]{1,15}") {
        let text = format!("PAUSE \"{}\"", name.replace('"', "\"\""));
        if text.len() <= 69 {
            prop_assert_eq!(parse(&text), Ok(Some(Command::Pause(Scope::Database(name)))));
        }
    }
}
