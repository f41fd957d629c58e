//! Who may do what.

use model::ClientId;

use crate::{Command, Failure, Login, Parameter, Role, Scope, Show, Shutdown};

fn scope() -> Scope {
    Scope::Database("db".to_owned())
}

/// Every command. A new one does not compile until it has its line in [`only_looks`].
fn commands() -> Vec<Command> {
    let mut commands: Vec<Command> = Show::ALL.map(Command::Show).to_vec();
    commands.extend([
        Command::ShowHelp,
        Command::ShowFds,
        Command::ShowParameter(Parameter::TimeZone),
        Command::SetIgnored(Parameter::TimeZone),
        Command::SelectOne,
        Command::DiscardAll,
        Command::Set { key: "verbose".to_owned(), value: "1".to_owned() },
        Command::Reload,
        Command::Pause(scope()),
        Command::Resume(scope()),
        Command::Suspend,
        Command::Kill(scope()),
        Command::KillClient(ClientId(1)),
        Command::Disable("db".to_owned()),
        Command::Enable("db".to_owned()),
        Command::Reconnect(scope()),
        Command::WaitClose(scope()),
        Command::DrainNode("h".to_owned()),
        Command::UndrainNode("h".to_owned()),
        Command::Shutdown(Shutdown::Immediate),
        Command::Shutdown(Shutdown::WaitForServers),
        Command::Shutdown(Shutdown::WaitForClients),
    ]);
    commands
}

/// What a command only looks at (`true`), or acts on.
fn only_looks(command: &Command) -> bool {
    match command {
        Command::Show(_)
        | Command::ShowHelp
        | Command::ShowParameter(_)
        | Command::SetIgnored(_)
        | Command::SelectOne
        | Command::DiscardAll => true,
        Command::ShowFds
        | Command::Set { .. }
        | Command::Reload
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Suspend
        | Command::Kill(_)
        | Command::KillClient(_)
        | Command::Disable(_)
        | Command::Enable(_)
        | Command::Reconnect(_)
        | Command::WaitClose(_)
        | Command::DrainNode(_)
        | Command::UndrainNode(_)
        | Command::Shutdown(_) => false,
    }
}

#[test]
fn nobody_may_nothing_stats_may_look_admins_may_all() {
    for command in commands() {
        assert!(!command.is_allowed_to(None), "{command:?}");
        assert_eq!(command.is_allowed_to(Some(Role::Stats)), only_looks(&command), "{command:?}");
        assert!(command.is_allowed_to(Some(Role::Admin)), "{command:?}");
    }
}

#[test]
fn tags_are_the_commands_words() {
    let tags: Vec<String> = commands().iter().skip(Show::ALL.len()).map(Command::tag).collect();
    let expected = [
        "SHOW",
        "SHOW",
        "SHOW",
        "SET",
        "SELECT 1",
        "DISCARD ALL",
        "SET verbose=1",
        "RELOAD",
        "PAUSE",
        "RESUME",
        "SUSPEND",
        "KILL",
        "KILL_CLIENT",
        "DISABLE",
        "ENABLE",
        "RECONNECT",
        "WAIT_CLOSE",
        "DRAIN NODE",
        "UNDRAIN NODE",
        "SHUTDOWN",
        "SHUTDOWN",
        "SHUTDOWN",
    ];
    assert_eq!(tags, expected);
    assert!(Show::ALL.iter().all(|&show| Command::Show(show).tag() == "SHOW"));
}

#[test]
fn console_itself_cannot_be_paused_or_killed() {
    let told: Vec<String> =
        commands().iter().filter_map(Command::on_admin_database).map(|failure| failure.to_string()).collect();
    let expected = [
        "cannot pause admin db: db",
        "cannot kill admin db: db",
        "cannot disable admin db: db",
        "cannot enable admin db: db",
        "cannot reconnect admin db: db",
        "cannot wait in admin db: db",
    ];
    assert_eq!(told, expected);
    assert_eq!(Command::Pause(Scope::All).on_admin_database(), None);
}

fn check_login(user: &str, own_user: bool, auth_any: bool, expected: Option<Role>) {
    let admin_users = ["root".to_owned(), "both".to_owned()];
    let stats_users = ["watch".to_owned(), "both".to_owned()];
    let login = Login { user, admin_users: &admin_users, stats_users: &stats_users, own_user, auth_any };
    assert_eq!(login.role(), expected, "{login:?}");
}

#[test]
fn lists_of_users_decide_who_enters() {
    check_login("root", false, false, Some(Role::Admin));
    check_login("both", false, false, Some(Role::Admin));
    check_login("watch", false, false, Some(Role::Stats));
    check_login("other", false, false, None);
    check_login("ROOT", false, false, None);
    check_login("", false, false, None);
}

#[test]
fn own_user_enters_without_proof_as_pgbouncer_only() {
    check_login("pgbouncer", true, false, Some(Role::Admin));
    check_login("pgbouncer", false, false, None);
    check_login("other", true, false, None);
    check_login("watch", true, false, Some(Role::Stats));
}

#[test]
fn everybody_may_look_where_nobody_proves_who_he_is() {
    check_login("other", false, true, Some(Role::Stats));
    check_login("root", false, true, Some(Role::Admin));
}

fn check_words(failure: Failure, sqlstate: &str, words: &str) {
    assert_eq!((failure.sqlstate(), failure.to_string().as_str()), (sqlstate, words));
}

#[test]
fn failures_have_the_words_that_tools_match() {
    let db = || "X".to_owned();
    check_words(Failure::AdminNeeded, "08P01", "admin access needed");
    check_words(Failure::AlreadyPaused, "08P01", "already suspended/paused");
    check_words(Failure::ClientNotFound, "08P01", "client not found");
    check_words(Failure::DatabaseNotPaused(db()), "08P01", "database X is not paused");
    check_words(Failure::NoSuchDatabase(db()), "08P01", "no such database: X");
    check_words(Failure::NotPaused, "08P01", "pooler is not paused/suspended");
    check_words(Failure::SetFailed(None), "08P01", "SET failed");
    check_words(Failure::ShuttingDown, "08P01", "pooler is shutting down");
    check_words(Failure::Canceled, "57014", "canceling statement due to user request");
    let reload = "RELOAD failed, see logs for additional details";
    check_words(Failure::ReloadFailed(Some("x".to_owned())), "F0000", reload);
}
