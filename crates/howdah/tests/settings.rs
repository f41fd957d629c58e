//! The command line and the files: what is accepted, what is said about mistakes, and what a bad reload leaves.
#![allow(clippy::disallowed_methods)] // programs, files and sockets are what is looked at

mod stage;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stage::{LIMIT, PASSWORD, bare, local, login, pooler, refused, run, server_for};
use testkit::message::query;
use testkit::{Howdah, Login, Postgres, Raw, Signal, TempDir, eventually, free_port, os};

/// What `check` says about this file, and whether it is content.
fn check(text: &str) -> (bool, String) {
    let directory = TempDir::new();
    directory.write("pgbouncer.ini", text);
    let (output, said) = run(&["check", "pgbouncer.ini"], directory.path());
    (output.status.success(), said)
}

#[test]
fn sound_file_is_accepted_without_starting() {
    let (content, said) =
        check("[databases]\na = host=localhost\n[pgbouncer]\nlisten_port = 6432\n[users]\n[peers]\n");
    assert!(content, "{said}");
    assert!(said.contains("0 errors"), "{said}");
}

#[test]
fn mistakes_are_told_with_place_key_what_is_allowed_and_the_nearest() {
    let general = "[pgbouncer]\n";
    for (text, wanted) in [
        (
            "defualt_pool_size = 5",
            "pgbouncer.ini:2:1: defualt_pool_size: unknown key in [pgbouncer]; did you mean default_pool_size?",
        ),
        (
            "  pool_mode = sesion",
            "pgbouncer.ini:2:15: pool_mode: value not allowed; allowed: one of session, transaction, statement, passthrough; did you mean session?",
        ),
        ("max_client_conn = many", "pgbouncer.ini:2:19: max_client_conn: value not allowed; allowed: "),
        ("server_lifetime = -1", "pgbouncer.ini:2:19: server_lifetime: value not allowed; allowed: "),
        ("listen_port = 70000", "pgbouncer.ini:2:15: listen_port: value not allowed; allowed: "),
        ("log_stats = on", "pgbouncer.ini:2:13: log_stats: value not allowed; allowed: "),
        ("pool_mode session", "pgbouncer.ini:2:1: "),
        (
            "pool_size = 5",
            "pgbouncer.ini:2:1: pool_size: unknown key in [pgbouncer]; it belongs in [databases]",
        ),
        ("[pgbouncr]", "pgbouncer.ini:2:1: pgbouncr: unknown section; allowed: "),
        (
            "[databases]\na = prot=5",
            "pgbouncer.ini:3:5: a: prot: unknown key in [databases]; did you mean port?",
        ),
        ("[databases]\na = host='x", "pgbouncer.ini:3:"),
        ("[databases]\npgbouncer = host=x", "pgbouncer.ini:3:1: pgbouncer: this name is the console's"),
        (
            "[users]\na = pool_modes=session",
            "pgbouncer.ini:3:5: a: pool_modes: unknown key in [users]; did you mean pool_mode?",
        ),
        ("%include nowhere.ini", "pgbouncer.ini:2:10: %include: cannot read nowhere.ini: "),
        ("%include pgbouncer.ini", "pgbouncer.ini:2:10: %include: pgbouncer.ini includes itself"),
        ("client_tls_sslmode = require", "client_tls_"),
        ("auth_file = nowhere.txt", "nowhere.txt"),
    ] {
        let (content, said) = check(&format!("{general}{text}\n"));
        assert!(!content, "{text}: accepted");
        assert!(said.contains(wanted), "{text}:\n{said}\nwanted {wanted}");
    }
    let (content, said) = check("listen_port = 1\n");
    assert!(!content && said.contains("pgbouncer.ini:1:1: listen_port: stands before any section"), "{said}");
    let (content, said) = check("[databases]\n");
    assert!(!content && said.contains("there is no section [pgbouncer]"), "{said}");
}

#[test]
fn all_mistakes_are_told_at_once_and_no_secret() {
    let (content, said) = check(
        "[pgbouncer]\npool_mode = x\nlisten_port = y\n[databases]\na = password=canary-secret prot=1\n",
    );
    assert!(!content);
    for place in [":2:13:", ":3:15:", ":5:"] {
        assert!(said.contains(place), "{place} is not in {said}");
    }
    assert!(!said.contains("canary"), "{said}");
}

#[test]
fn check_of_a_file_that_is_not_there_names_it() {
    let directory = TempDir::new();
    let (output, said) = run(&["check", "nowhere.ini"], directory.path());
    assert!(!output.status.success());
    assert!(said.contains("nowhere.ini"), "{said}");
}

#[test]
fn start_with_a_faulty_file_fails_with_the_same_words() {
    let (status, log) = bare().setting("pool_mode", "sesion").start_and_fail();
    assert_eq!(status.code(), Some(1));
    assert!(log.contains("pool_mode: value not allowed") && log.contains("did you mean session?"), "{log}");
}

#[test]
fn keys_that_are_not_built_are_named_once() {
    let text = "[pgbouncer]\nso_reuseport = 1\npeer_id = 3\nresolv_conf = /x\n[peers]\n1 = host=localhost\n";
    let (content, said) = check(text);
    assert!(content, "{said}");
    for key in ["so_reuseport", "peer_id", "resolv_conf", "[peers]"] {
        assert!(said.contains(&format!("{key}: accepted, but not built")), "{key}: {said}");
    }
    let howdah = bare().setting("dns_zone_check_period", "0").setting("so_reuseport", "0").start();
    let told = |text: &str| howdah.log().matches(text).count();
    howdah.wait_for_log("so_reuseport: accepted, but not built");
    assert_eq!(told("so_reuseport: accepted, but not built"), 1);
}

/// The example that comes with PgBouncer.
fn pgbouncers_own() -> String {
    let path = Path::new("/etc/pgbouncer/pgbouncer.ini");
    if !path.exists() {
        testkit::install::ensure_packages(&["pgbouncer"]);
    }
    fs::read_to_string(path).expect("PgBouncer's example")
}

fn check_pgbouncers(text: &str) {
    let directory = TempDir::new();
    let users = directory.write("userlist.txt", "\"someone\" \"secret\"\n");
    let text = text.replace("/etc/pgbouncer/userlist.txt", &users.to_string_lossy());
    directory.write("pgbouncer.ini", text);
    let (output, said) = run(&["check", "pgbouncer.ini"], directory.path());
    assert!(output.status.success(), "{said}");
}

#[test]
fn pgbouncers_own_example_is_accepted() {
    check_pgbouncers(&pgbouncers_own());
}

#[test]
fn pgbouncers_own_example_is_accepted_with_every_key_in_force() {
    // What needs files that are not there, or Windows, stays a comment.
    let needs_more =
        ["service_name", "tls_key_file", "tls_cert_file", "tls_ca_file", "auth_hba_file", "%include"];
    let uncomment = |line: &str| match line.strip_prefix(';') {
        Some(rest) if rest.contains(" = ") && !rest.starts_with(' ') => {
            let known = needs_more.iter().any(|key| rest.contains(key));
            if known { line.to_owned() } else { rest.to_owned() }
        }
        _ => line.to_owned(),
    };
    let text: Vec<String> = pgbouncers_own().lines().map(uncomment).collect();
    assert!(text.iter().any(|line| line.starts_with("default_pool_size = ")), "nothing was uncommented");
    check_pgbouncers(&text.join("\n"));
}

#[test]
fn howdahs_own_example_is_accepted() {
    let directory = TempDir::new();
    let (output, example) = run(&["example"], directory.path());
    assert!(output.status.success());
    directory.write("example.ini", &example);
    let (output, said) = run(&["check", "example.ini"], directory.path());
    assert!(output.status.success(), "{said}");
    let (output, manual) = run(&["manual"], directory.path());
    assert!(output.status.success() && manual.contains("default_pool_size"), "{manual}");
}

#[test]
fn reload_of_a_broken_file_changes_nothing_and_is_repaired_by_the_next() {
    let name = "settings_broken";
    let howdah = pooler(name).setting("default_pool_size", "3").start();
    let mut inside = howdah.session(name, name);
    let good = howdah.ini_text();
    let broken = good.replace("default_pool_size = 3", "default_pool_size = 5\nmax_client_conn = many");
    assert_ne!(good, broken);
    for text in [broken.as_str(), "", "nonsense", "[pgbouncer]\n%include nowhere.ini\n"] {
        howdah.write_ini(text);
        let refusal = howdah.console().try_sql("RELOAD").expect_err("it is broken");
        let seen = (refusal.severity.as_str(), refusal.sqlstate.as_str(), refusal.text.as_str());
        assert_eq!(seen, ("ERROR", "F0000", "RELOAD failed, see logs for additional details"));
        let value = howdah.admin_value("SHOW CONFIG", &[("key", "default_pool_size")], "value");
        assert_eq!(value, "3");
        assert_eq!(inside.value("select 1"), "1");
        assert_eq!(howdah.session(name, name).value("select 1"), "1");
    }
    howdah.wait_for_log("max_client_conn: value not allowed");
    howdah.reload_ini(&good.replace("default_pool_size = 3", "default_pool_size = 4"));
    assert_eq!(howdah.admin_value("SHOW CONFIG", &[("key", "default_pool_size")], "value"), "4");
}

#[test]
fn included_files_are_read_again() {
    let name = "settings_include";
    let server = server_for(name);
    let directory = TempDir::new();
    let more = directory.write("more.ini", "default_pool_size = 6\n");
    let ini = format!(
        "[databases]\n{name} = {}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {{port}}\n\
         unix_socket_dir =\nauth_type = trust\nauth_file = {{dir}}/userlist.txt\nadmin_users = admin\n\
         %include {}\n",
        server.connection(name),
        more.display()
    );
    let howdah = bare().ini(&ini).user(name, PASSWORD).start();
    let value = || howdah.admin_value("SHOW CONFIG", &[("key", "default_pool_size")], "value");
    assert_eq!(value(), "6");
    directory.write("more.ini", "default_pool_size = 7\n");
    assert_eq!(howdah.console().ask(query("RELOAD")), "C(RELOAD) ZI");
    assert_eq!(value(), "7");
}

#[test]
fn version_is_the_consoles() {
    let directory = TempDir::new();
    let (output, said) = run(&["-V"], directory.path());
    assert!(output.status.success());
    assert_eq!(said.lines().next(), Some(bare().start().console().value("SHOW VERSION").as_str()));
    let (output, long) = run(&["--version"], directory.path());
    assert!(output.status.success() && long == said);
    let (output, help) = run(&["--help"], directory.path());
    assert!(output.status.success() && help.contains("Usage"), "{help}");
}

#[test]
fn bad_use_is_told_and_exits_with_1() {
    let directory = TempDir::new();
    for arguments in [&[][..], &["a.ini", "b.ini"], &["--nonsense"], &["nowhere.ini"], &["-R", "nowhere.ini"]]
    {
        let (output, said) = run(arguments, directory.path());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(!said.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

/// A pooler that has left us; it is ended with its pidfile's owner.
struct Daemon {
    directory: TempDir,
    port: u16,
}

impl Daemon {
    /// Runs `arguments` and the file with these lines added.
    fn start(arguments: &[&str], lines: &str) -> (Daemon, std::process::Output, String) {
        let daemon = Daemon { directory: TempDir::new(), port: free_port() };
        let dir = daemon.directory.path().display();
        daemon.directory.write(
            "pgbouncer.ini",
            format!(
                "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\nauth_type = any\n\
                 logfile = {dir}/log\n{lines}\n",
                daemon.port
            ),
        );
        let path = daemon.directory.join("pgbouncer.ini").to_string_lossy().into_owned();
        let (output, said) = run(&[arguments, &[path.as_str()]].concat(), daemon.directory.path());
        (daemon, output, said)
    }

    fn pidfile(&self) -> PathBuf {
        self.directory.join("pid")
    }

    fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.pidfile()).ok()?.trim().parse().ok()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            // It may have ended already.
            let _ = os::send_signal(pid, Signal::Kill);
        }
    }
}

#[test]
fn daemon_leaves_a_pidfile_logs_to_its_file_and_takes_the_pidfile_with_it() {
    let (daemon, output, said) = Daemon::start(&["-d"], "pidfile = pid");
    assert!(output.status.success(), "{said}");
    eventually(LIMIT, || daemon.pid().is_some());
    let pid = daemon.pid().expect("a pidfile");
    let text = fs::read_to_string(daemon.pidfile()).expect("a pidfile");
    assert_eq!(text, format!("{pid}\n"));
    let mode = fs::metadata(daemon.pidfile()).expect("a pidfile").permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    let login = Login::new("anybody", "pgbouncer");
    eventually(LIMIT, || Raw::try_connect(&daemon.port.into()).is_ok());
    assert_eq!(Raw::login(daemon.port, &login).table("SHOW STATE").len(), 3);
    let log = || fs::read_to_string(daemon.directory.join("log")).unwrap_or_default();
    eventually(LIMIT, || log().contains("process up: "));
    os::send_signal(pid, Signal::Quit).expect("it runs");
    eventually(LIMIT, || !daemon.pidfile().exists() && !Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn daemon_needs_a_pidfile() {
    let (_daemon, output, said) = Daemon::start(&["-d"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("pidfile"), "{said}");
}

#[test]
fn pidfile_of_a_live_process_is_respected_and_a_stale_one_replaced() {
    let me = std::process::id();
    let directory = TempDir::new();
    let pidfile = directory.write("pid", format!("{me}\n"));
    let path = pidfile.to_string_lossy().into_owned();
    let (status, log) = bare().setting("pidfile", &path).start_and_fail();
    assert_eq!(status.code(), Some(1));
    assert!(log.contains("pidfile"), "{log}");
    assert_eq!(fs::read_to_string(&pidfile).expect("untouched"), format!("{me}\n"));
    directory.write("pid", "4194305\n");
    let howdah = bare().setting("pidfile", &path).start();
    howdah.wait_for_log("stale pidfile, removing");
    let wanted = format!("{}\n", howdah.pid());
    eventually(LIMIT, || fs::read_to_string(&pidfile).is_ok_and(|text| text == wanted));
    assert_eq!(howdah.console().table("SHOW VERSION").len(), 1);
    howdah.signal(Signal::Quit);
    assert_eq!(howdah.wait_exit(LIMIT).code(), Some(0));
    assert!(!pidfile.exists());
}

#[test]
fn second_pooler_on_one_port_or_socket_does_not_start() {
    let first = bare().start();
    let (status, log) = bare().port(first.port()).start_and_fail();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains(&first.port().to_string()), "{log}");
    let dir = first.dir().to_string_lossy().into_owned();
    let (status, log) = bare()
        .port(first.port())
        .setting("listen_addr", "")
        .setting("unix_socket_dir", &dir)
        .start_and_fail();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("unix socket is in use, cannot continue"), "{log}");
    assert_eq!(first.console().table("SHOW VERSION").len(), 1);
}

#[test]
fn socket_that_a_dead_pooler_left_is_replaced() {
    let howdah = bare().start();
    howdah.kill();
    assert!(howdah.socket().exists());
    howdah.start_again();
    let login = Login::new(testkit::howdah::ADMIN, "pgbouncer");
    assert_eq!(Raw::login(local(&howdah).as_path(), &login).table("SHOW VERSION").len(), 1);
    howdah.signal(Signal::Quit);
    assert_eq!(howdah.wait_exit(LIMIT).code(), Some(0));
    assert!(!howdah.socket().exists());
}

fn uid_of(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).expect("a line");
    line.split_whitespace().next().expect("a number").to_owned()
}

#[test]
fn root_becomes_the_user_that_is_asked_for() {
    if !os::is_root() {
        return; // nobody else can become another user
    }
    let id = std::process::Command::new("id").args(["-u", "nobody"]).output().expect("id can be run");
    let nobody = String::from_utf8_lossy(&id.stdout).trim().to_owned();
    for options in [bare().argument("-u").argument("nobody"), bare().setting("user", "nobody")] {
        let howdah = options.environment("HOWDAH_ALLOW_ROOT", "").start();
        // It listens first: root may take ports that others may not.
        eventually(LIMIT, || uid_of(howdah.pid()) == nobody);
        assert_eq!(howdah.console().table("SHOW VERSION").len(), 1);
    }
    let (status, log) = bare().argument("--user=no_such_user").start_and_fail();
    assert_eq!(status.code(), Some(1));
    assert!(log.contains("no_such_user"), "{log}");
}

#[test]
fn quiet_one_speaks_to_its_logfile_only() {
    let howdah = bare().argument("-q").setting("logfile", "{dir}/own.log").start();
    let own = || fs::read_to_string(howdah.dir().join("own.log")).unwrap_or_default();
    eventually(LIMIT, || own().contains("process up: "));
    assert_eq!(howdah.log(), "");
    let line = own().lines().next().expect("a line").to_owned();
    // YYYY-MM-DD HH:MM:SS.mmm ZONE [pid] LEVEL message
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!((words[0].len(), words[1].len()), (10, 12), "{line}");
    assert_eq!(words[3], format!("[{}]", howdah.pid()), "{line}");
    assert_eq!(words[4], "LOG", "{line}");
}

#[test]
fn url_is_all_that_is_needed() {
    let name = "settings_url";
    let server = server_for(name);
    // The port is the one that the manual promises: whoever has it makes this impossible to try.
    if std::net::TcpListener::bind(("127.0.0.1", 6432)).is_err() {
        eprintln!("port 6432 is taken: not tried");
        return;
    }
    let url = format!("postgres://{name}:{PASSWORD}@127.0.0.1:{}/{name}?sslmode=prefer", server.port());
    let mut command = std::process::Command::new(stage::binary());
    command.arg(&url).env("HOWDAH_ALLOW_ROOT", "1").stderr(std::process::Stdio::null());
    let mut child = os::spawn(command, Signal::Kill).expect("it can be started");
    eventually(LIMIT, || Raw::try_connect(&6432.into()).is_ok());
    let mut raw = Raw::login(6432, &Login::new("anybody", name));
    assert_eq!(raw.value("select current_user || '/' || current_database()"), format!("{name}/{name}"));
    os::send_signal(child.id(), Signal::Quit).expect("it runs");
    assert!(child.wait().expect("own process").success());
    let directory = TempDir::new();
    for bad in ["postgres://host/db?sslmod=x", "postgres://u@h:port/db", "postgres://:canary@h/db"] {
        let (output, said) = run(&["check", bad], directory.path());
        assert!(!output.status.success(), "{bad}");
        let told = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(told.starts_with("error: URL:1:") && !told.contains("canary"), "{bad}: {said}");
    }
}

#[test]
fn every_line_of_a_userlist_that_is_no_user_is_told() {
    let name = "settings_userlist";
    let howdah = pooler(name).setting("auth_type", "plain").start();
    let path = howdah.dir().join("userlist.txt");
    let text = fs::read_to_string(&path).expect("own file");
    fs::write(&path, format!("; comment\n\n{text}\"quote\"\"d\" \"se\"\"cret\" rest\nbroken\n"))
        .expect("own file");
    console_reload(&howdah);
    let refusal = refused(&howdah, &Login::new("quote\"d", name).password("wrong"));
    assert_eq!(refusal.sqlstate, "28P01");
    assert_eq!(howdah.login(&login(name)).value("select 1"), "1");
    howdah.wait_for_log("userlist.txt:");
    assert!(!howdah.log().contains("se\"cret"));
}

fn console_reload(howdah: &Howdah) {
    let login = Login::new(testkit::howdah::ADMIN, "pgbouncer").password(testkit::howdah::ADMIN_PASSWORD);
    assert_eq!(howdah.login(&login).ask(query("RELOAD")), "C(RELOAD) ZI");
}

#[test]
fn listening_only_on_a_unix_socket_works() {
    let name = "settings_unix";
    let howdah = pooler(name).setting("listen_addr", "").start();
    assert!(Raw::try_connect(&howdah.port().into()).is_err());
    assert_eq!(Raw::login(local(&howdah).as_path(), &login(name)).value("select 1"), "1");
    let server = Postgres::shared_wanted();
    let over_unix = format!("host={} port={} dbname={name}", server.socket_dir().display(), server.port());
    let howdah = bare().database("by_socket", &over_unix).user(name, PASSWORD).start();
    let mut raw = howdah.session(name, "by_socket");
    assert_eq!(raw.value("select inet_client_addr() is null"), "t");
    assert_eq!(raw.next(Duration::from_millis(10)), testkit::Event::Silence);
}
