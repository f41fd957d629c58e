//! TLS on both sides: who must speak it, whose certificate counts, and what a reload changes.
#![allow(clippy::disallowed_methods)] // files and threads are what is worked with

mod stage;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use stage::{LIMIT, PASSWORD, bare, check_fatal, login, refused};
use testkit::message::{self, query};
use testkit::{
    Certificates, FakeServer, Howdah, HowdahOptions, Login, Postgres, PostgresOptions, Raw, Refusal, Signal,
    TempDir, Tls, Version, eventually, reply,
};

/// The shared server of a version that has TLS, with a role and a database of this name.
fn server_for(name: &str) -> &'static Postgres {
    let server = Postgres::shared(Version::V15);
    server.create_role(name, PASSWORD);
    server.create_database(name, name);
    server
}

/// An authority of the pooler's own.
struct Keys {
    directory: TempDir,
    certificates: Certificates,
}

impl Keys {
    fn new() -> Keys {
        let directory = TempDir::new();
        let certificates = Certificates::write(directory.path());
        Keys { directory, certificates }
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }

    fn pooler(&self, name: &str, sslmode: &str) -> HowdahOptions {
        let server = server_for(name);
        bare()
            .database(name, &server.connection(name))
            .user(name, PASSWORD)
            .setting("client_tls_sslmode", sslmode)
            .setting("client_tls_key_file", &self.path("server.key"))
            .setting("client_tls_cert_file", &self.path("server.crt"))
            .setting("client_tls_ca_file", &self.path("ca.crt"))
    }

    fn client(&self, common_name: &str) -> Tls {
        Tls { certificate: Some(self.certificates.client(common_name, common_name)), ..Tls::default() }
    }
}

/// The pooler's console does not speak to the fixture without TLS where TLS is demanded.
fn session(howdah: &Howdah, name: &str, tls: Tls) -> Result<Raw, Refusal> {
    let mut raw = Raw::connect(howdah.port());
    raw.send(message::ssl_request());
    assert_eq!(char::from(raw.recv_byte()), 'S');
    let failed = |text: String| Refusal { severity: "TLS".into(), sqlstate: String::new(), text };
    raw.start_direct_tls(&tls).map_err(|error| failed(error.to_string()))?;
    // In TLS 1.3 a server refuses the client's certificate only after its own side is done.
    if raw.try_send(message::startup((3, 0), &[("user", name), ("database", name)])).is_err() {
        return Err(failed("closed".into()));
    }
    match raw.answers(1) {
        answers if answers.ends_with("ZI") => Ok(raw),
        answers => Err(failed(answers)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Certificate {
    None,
    Ours,
    Foreign,
}

fn check_sslmode(sslmode: &str, plain: bool, tls: bool, certificates: &[(Certificate, bool)]) {
    let keys = Keys::new();
    let name = format!("tls_mode_{}", sslmode.replace('-', "_"));
    let name = name.as_str();
    let howdah = keys.pooler(name, sslmode).start();
    match Raw::try_login(howdah.port(), &login(name)) {
        Ok(mut raw) => assert!(plain && raw.value("select 1") == "1"),
        Err(refusal) => {
            assert!(!plain);
            check_fatal(&refusal, "28000", "SSL required");
        }
    }
    let mut raw = Raw::connect(howdah.port());
    raw.send(message::ssl_request());
    assert_eq!(char::from(raw.recv_byte()), if tls { 'S' } else { 'N' });
    drop(raw);
    let foreign = Keys::new();
    for &(certificate, gets_in) in certificates {
        let tls = match certificate {
            Certificate::None => Tls::default(),
            Certificate::Ours => keys.client("somebody"),
            Certificate::Foreign => foreign.client("somebody"),
        };
        match session(&howdah, name, tls) {
            Ok(mut raw) => {
                assert!(gets_in, "{sslmode}, {certificate:?}: let in");
                assert_eq!(raw.value("select 1"), "1");
            }
            Err(refusal) => assert!(!gets_in, "{sslmode}, {certificate:?}: {refusal:?}"),
        }
    }
}

#[test]
fn sslmode_disable_refuses_tls() {
    check_sslmode("disable", true, false, &[]);
}

#[test]
fn sslmode_allow_takes_both() {
    check_sslmode("allow", true, true, &[(Certificate::None, true), (Certificate::Ours, true)]);
}

#[test]
fn sslmode_prefer_takes_both_and_verifies_a_certificate_that_is_shown() {
    let certificates = [(Certificate::None, true), (Certificate::Ours, true), (Certificate::Foreign, false)];
    check_sslmode("prefer", true, true, &certificates);
}

#[test]
fn sslmode_require_takes_only_tls() {
    check_sslmode("require", false, true, &[(Certificate::None, true), (Certificate::Ours, true)]);
}

#[test]
fn sslmode_verify_ca_needs_a_certificate_of_our_authority() {
    let certificates = [(Certificate::None, false), (Certificate::Ours, true), (Certificate::Foreign, false)];
    check_sslmode("verify-ca", false, true, &certificates);
}

#[test]
fn sslmode_verify_full_needs_a_certificate_of_our_authority() {
    let certificates = [(Certificate::None, false), (Certificate::Ours, true), (Certificate::Foreign, false)];
    check_sslmode("verify-full", false, true, &certificates);
}

#[test]
fn certificate_logs_its_own_name_in_and_no_other() {
    let (keys, name) = (Keys::new(), "tls_cert");
    let howdah =
        keys.pooler(name, "verify-full").setting("auth_type", "cert").user("other", PASSWORD).start();
    let tls = keys.client(name);
    let mut raw = howdah.login(&Login::new(name, name).tls(tls.clone()));
    assert_eq!(raw.value("select current_user"), name);
    for user in ["other", "nobody"] {
        let refusal = refused(&howdah, &Login::new(user, name).tls(tls.clone()));
        check_fatal(&refusal, "28000", "certificate authentication failed");
    }
    // The console is no way around it.
    let refusal = refused(&howdah, &Login::new("admin", "pgbouncer").tls(tls));
    assert_eq!(refusal.severity, "FATAL");
    let mut raw = howdah.login(&Login::new("admin", "pgbouncer").tls(keys.client("admin")));
    assert_eq!(raw.table("SHOW VERSION").len(), 1);
}

#[test]
fn certificate_may_stand_for_a_user_by_a_map() {
    let (keys, name) = (Keys::new(), "tls_map");
    let ident = keys.directory.write("ident.conf", format!("people \"Jane Doe\" {name}\n"));
    let howdah = keys
        .pooler(name, "verify-ca")
        .setting("auth_type", "hba")
        .setting("auth_ident_file", &ident.to_string_lossy())
        .hba("hostssl all all 127.0.0.1/32 cert map=people\n")
        .start();
    let mut raw = howdah.login(&Login::new(name, name).tls(keys.client("Jane Doe")));
    assert_eq!(raw.value("select current_user"), name);
    let refusal = refused(&howdah, &Login::new(name, name).tls(keys.client(name)));
    check_fatal(&refusal, "28000", "certificate authentication failed");
}

#[test]
fn direct_tls_needs_the_right_alpn() {
    let (keys, name) = (Keys::new(), "tls_direct");
    let howdah = keys.pooler(name, "prefer").start();
    let mut raw = howdah.login(&login(name).direct_tls(Tls::with_postgresql_alpn()));
    assert_eq!(raw.stream().alpn().as_deref(), Some("postgresql"));
    assert_eq!(raw.value("select 1"), "1");
    for alpn in [vec![], vec!["http/1.1".to_owned()], vec!["h2".into(), "postgres".into()]] {
        let mut raw = Raw::connect(howdah.port());
        let shake = raw.start_direct_tls(&Tls { alpn: alpn.clone(), ..Tls::default() });
        let started = shake
            .and_then(|()| raw.try_send(message::startup((3, 0), &[("user", name), ("database", name)])));
        if started.is_ok() {
            assert!(!raw.expect_closed().contains('Z'), "{alpn:?}");
        }
    }
}

#[test]
fn direct_tls_is_closed_where_there_is_no_tls() {
    let name = "tls_direct_none";
    let server = server_for(name);
    let howdah = bare().database(name, &server.connection(name)).user(name, PASSWORD).start();
    let mut raw = Raw::connect(howdah.port());
    assert!(raw.start_direct_tls(&Tls::with_postgresql_alpn()).is_err());
    assert_eq!(howdah.session(name, name).value("select 1"), "1");
}

#[test]
fn bytes_behind_the_request_for_tls_are_refused() {
    let (keys, name) = (Keys::new(), "tls_glued");
    let startup = message::startup((3, 0), &[("user", name), ("database", name)]);
    for sslmode in ["prefer", "disable"] {
        let server = if sslmode == "prefer" { server_for(name) } else { Postgres::shared(Version::V15) };
        let howdah = bare()
            .database(name, &server.connection(name))
            .user(name, PASSWORD)
            .setting("client_tls_sslmode", sslmode)
            .setting("client_tls_key_file", &keys.path("server.key"))
            .setting("client_tls_cert_file", &keys.path("server.crt"))
            .start();
        for rest in [&startup[..], &startup[..1], &query("select 1")[..]] {
            let mut raw = Raw::connect(howdah.port());
            raw.send([message::ssl_request(), rest.to_vec()].concat());
            let error = raw.recv();
            check_fatal(&Refusal::from(&error), "08P01", "received unencrypted data after SSL request");
            assert_eq!(raw.expect_closed(), "");
        }
    }
}

#[test]
fn second_request_for_tls_inside_tls_is_refused() {
    let (keys, name) = (Keys::new(), "tls_twice");
    let howdah = keys.pooler(name, "prefer").start();
    let mut raw = Raw::connect(howdah.port());
    raw.start_tls(&Tls::default());
    raw.send(message::ssl_request());
    assert!(raw.expect_closed().starts_with("E("), "{}", raw.seen());
}

fn mechanisms(raw: &mut Raw, name: &str) -> Vec<String> {
    Login::new(name, name).send_startup(raw);
    let request = raw.recv();
    assert_eq!(request.letter(), "R(10)");
    message_strings(&request.body[4..])
}

fn message_strings(bytes: &[u8]) -> Vec<String> {
    let strings = testkit::Message { tag: b'R', body: bytes.to_vec() }.strings();
    strings.into_iter().filter(|text| !text.is_empty()).collect()
}

#[test]
fn scram_binds_to_the_channel_where_there_is_one() {
    let (keys, name) = (Keys::new(), "tls_scram");
    let howdah = keys.pooler(name, "prefer").setting("auth_type", "scram-sha-256").start();
    let mut plain = Raw::connect(howdah.port());
    assert_eq!(mechanisms(&mut plain, name), ["SCRAM-SHA-256"]);
    let mut inside = Raw::connect(howdah.port());
    inside.start_tls(&Tls::default());
    assert_eq!(mechanisms(&mut inside, name), ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]);
    for bound in [login(name).tls(Tls::default()).channel_binding(), login(name).tls(Tls::default())] {
        assert_eq!(howdah.login(&bound).value("select current_user"), name);
        assert_eq!(refused(&howdah, &bound.password("wrong")).sqlstate, "28P01");
    }
    let direct = login(name).direct_tls(Tls::with_postgresql_alpn()).channel_binding();
    assert_eq!(howdah.login(&direct).value("select 1"), "1");
}

#[test]
fn downgrade_of_scram_is_noticed() {
    let (keys, name) = (Keys::new(), "tls_downgrade");
    let howdah = keys.pooler(name, "prefer").setting("auth_type", "scram-sha-256").start();
    // "I could bind, but you do not offer it", to one who has offered it; and PLUS without any binding.
    let lies = [("SCRAM-SHA-256", "y,,n=,r=fixedfixed"), ("SCRAM-SHA-256-PLUS", "n,,n=,r=fixedfixed")];
    for (mechanism, first) in lies {
        let mut raw = Raw::connect(howdah.port());
        raw.start_tls(&Tls::default());
        mechanisms(&mut raw, name);
        raw.send(message::sasl_initial(mechanism, first.as_bytes()));
        assert!(raw.expect_closed().starts_with("E("), "{mechanism}: {}", raw.seen());
    }
}

#[test]
fn console_shows_version_and_cipher() {
    let (keys, name) = (Keys::new(), "tls_shown");
    for (protocols, version) in [("secure", "TLSv1.3/"), ("tlsv1.2", "TLSv1.2/")] {
        let server = Postgres::shared(Version::V15);
        if protocols == "secure" {
            server_for(name);
        }
        let howdah = bare()
            .database(name, &server.connection(name))
            .user(name, PASSWORD)
            .setting("client_tls_sslmode", "prefer")
            .setting("client_tls_protocols", protocols)
            .setting("client_tls_key_file", &keys.path("server.key"))
            .setting("client_tls_cert_file", &keys.path("server.crt"))
            .setting("server_tls_sslmode", "require")
            .setting("server_tls_protocols", protocols)
            .start();
        let mut inside = howdah.login(&login(name).tls(Tls::default()));
        inside.sql("begin");
        let port = inside.local_port().to_string();
        let shown = howdah.admin_value("SHOW CLIENTS", &[("port", &port)], "tls");
        assert!(shown.starts_with(version), "{shown}");
        let shown = howdah.admin_value("SHOW SERVERS", &[("database", name)], "tls");
        assert!(shown.starts_with(version), "{shown}");
        let plain = howdah.session(name, name).local_port().to_string();
        drop(plain);
        let plain = howdah.session(name, name);
        assert_eq!(
            howdah.admin_value("SHOW CLIENTS", &[("port", &plain.local_port().to_string())], "tls"),
            ""
        );
    }
}

#[test]
fn large_rows_pass_through_tls_on_both_sides() {
    let (keys, name) = (Keys::new(), "tls_large");
    let howdah = keys.pooler(name, "require").setting("server_tls_sslmode", "require").start();
    let mut raw = howdah.login(&login(name).tls(Tls::default()));
    for size in [1, 16_383, 16_384, 16_385, 65_537, 3_000_000] {
        assert_eq!(raw.value(&format!("select repeat('x', {size})")).len(), size);
        let text = "y".repeat(size);
        assert_eq!(raw.value(&format!("select length('{text}')")), size.to_string());
    }
}

#[test]
fn reload_changes_the_certificate_for_new_sessions_and_keeps_the_old_ones() {
    let (keys, name) = (Keys::new(), "tls_reload");
    let howdah = keys.pooler(name, "prefer").start();
    let tls = || login(name).tls(Tls::default());
    let mut old = howdah.login(&tls());
    let before = old.stream().server_certificate().expect("in TLS").to_vec();
    keys.certificates.server("server", &["localhost", "127.0.0.1"]);
    assert_eq!(howdah.console().ask(query("RELOAD")), "C(RELOAD) ZI");
    let mut new = howdah.login(&tls());
    let after = new.stream().server_certificate().expect("in TLS").to_vec();
    assert_ne!(before, after);
    assert_eq!((old.value("select 1"), new.value("select 2")), ("1".into(), "2".into()));
    // A file that is no certificate changes nothing.
    keys.directory.write("server.crt", "no certificate");
    howdah.console().ask(query("RELOAD"));
    let third = howdah.login(&tls());
    assert_eq!(third.stream().server_certificate().expect("in TLS"), after);
    assert_eq!((old.value("select 1"), new.value("select 2")), ("1".into(), "2".into()));
}

#[track_caller]
fn check_resumption(protocols: &str, is_certified: bool) {
    let name = format!("tls_resume_{}", protocols.replace('.', "_"));
    let keys = Keys::new();
    let howdah = keys.pooler(&name, "require").setting("client_tls_protocols", protocols).start();
    let certificate = is_certified.then(|| keys.certificates.client(&name, &name));
    let tls = Tls { certificate, ..Tls::remembering() };
    for resumes in [false, true, true] {
        let mut raw = howdah.login(&login(&name).tls(tls.clone()));
        assert_eq!(
            (raw.stream().is_resumed(), raw.value("select 1").as_str()),
            (resumes, "1"),
            "{protocols}"
        );
    }
    // What was agreed under other settings is not taken up again: the authority may be another one now.
    howdah.signal(Signal::Hangup);
    eventually(LIMIT, || !howdah.login(&login(&name).tls(tls.clone())).stream().is_resumed());
    assert!(howdah.login(&login(&name).tls(tls)).stream().is_resumed());
}

#[test]
fn clients_take_their_earlier_tls_sessions_up_again_until_a_reload() {
    check_resumption("tlsv1.3", false);
    check_resumption("tlsv1.2", true);
}

#[test]
fn many_reloads_of_certificates_disturb_nobody() {
    let (keys, name) = (Keys::new(), "tls_reload_storm");
    let howdah = keys.pooler(name, "require").start();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seat in 0..4_u32 {
            let (howdah, over) = (&howdah, &over);
            scope.spawn(move || {
                let tls = login(name).tls(Tls::default());
                let mut raw = howdah.login(&tls);
                let mut turns = 0;
                while !over.load(Ordering::SeqCst) || turns < 10 {
                    if seat == 0 {
                        raw = howdah.login(&tls);
                    }
                    assert_eq!(raw.value("select 1"), "1");
                    turns += 1;
                }
            });
        }
        let mut console = howdah.login(&Login::new("admin", "pgbouncer").tls(Tls::default()));
        for turn in 0..60 {
            if turn % 10 == 0 {
                keys.certificates.server("server", &["localhost"]);
            }
            // Key and certificate may be caught between two writes: then the old ones hold.
            console.ask(query("RELOAD"));
        }
        over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn stricter_sslmode_holds_for_new_clients_after_a_reload() {
    let (keys, name) = (Keys::new(), "tls_stricter");
    let howdah = keys.pooler(name, "prefer").start();
    let mut old = howdah.session(name, name);
    let mut console = howdah.console();
    assert_eq!(
        console.ask(query("SET client_tls_sslmode = 'require'")),
        "C(SET client_tls_sslmode=require) ZI"
    );
    check_fatal(&refused(&howdah, &login(name)), "28000", "SSL required");
    assert_eq!(old.value("select 1"), "1");
    assert_eq!(howdah.login(&login(name).tls(Tls::default())).value("select 1"), "1");
}

// Towards servers.

const IS_TLS: &str = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";

fn check_server_sslmode(sslmode: &str, is_tls: &str) {
    let name = format!("tls_server_{}", sslmode.replace('-', "_"));
    let server = server_for(&name);
    let authority = server.certificates().expect("a server with TLS").authority();
    let howdah = bare()
        .database(&name, &server.connection(&name))
        .user(&name, PASSWORD)
        .setting("server_tls_sslmode", sslmode)
        .setting("server_tls_ca_file", &authority.to_string_lossy())
        .start();
    assert_eq!(howdah.session(&name, &name).value(IS_TLS), is_tls, "{sslmode}");
}

#[test]
fn server_sslmode_decides_about_tls() {
    for sslmode in ["allow", "prefer", "require", "verify-ca", "verify-full"] {
        check_server_sslmode(sslmode, "t");
    }
    check_server_sslmode("disable", "f");
}

/// A pooler in front of a server, with a short limit for logins since a server that fails is asked again.
fn impatient(server: &Postgres, sslmode: &str, ca_file: &str) -> Howdah {
    bare()
        .database("postgres", &server.connection("postgres"))
        .user("postgres", "")
        .setting("server_tls_sslmode", sslmode)
        .setting("server_tls_ca_file", ca_file)
        .setting("client_login_timeout", "2")
        .start()
}

fn gets_through(howdah: &Howdah) -> bool {
    Raw::try_login(howdah.port(), &Login::new("postgres", "postgres")).is_ok()
}

/// A server whose certificate is for another host.
fn misnamed() -> &'static Postgres {
    static MISNAMED: OnceLock<Postgres> = OnceLock::new();
    MISNAMED.get_or_init(|| {
        let server = PostgresOptions::new(Version::V15)
            .tls()
            .hba(
                "local all all trust\nhostssl postgres all 127.0.0.1/32 trust\n\
                 hostssl template1 all 127.0.0.1/32 trust clientcert=verify-ca\n",
            )
            .start();
        server.certificates().expect("TLS").server("server", &["elsewhere.example"]);
        server.reload();
        server
    })
}

#[test]
fn certificate_of_a_server_is_verified_as_far_as_asked() {
    let server = misnamed();
    let ours = server.certificates().expect("TLS").authority().to_string_lossy().into_owned();
    let foreign = Keys::new();
    let theirs = foreign.path("ca.crt");
    for (sslmode, ca_file, gets_in) in [
        ("require", "", true),
        ("verify-ca", ours.as_str(), true),
        ("verify-ca", &theirs, false),
        ("verify-full", &ours, false),
        ("verify-full", &theirs, false),
        ("disable", "", false),
    ] {
        let howdah = impatient(server, sslmode, ca_file);
        assert_eq!(gets_through(&howdah), gets_in, "{sslmode} with {ca_file:?}");
    }
}

#[test]
fn server_that_asks_for_a_certificate_gets_ours() {
    let server = misnamed();
    let certificates = server.certificates().expect("TLS");
    let (certificate, key) = certificates.client("pooler", "pooler");
    let entry = server.connection("template1");
    let without = || {
        bare()
            .database("template1", &entry)
            .user("postgres", "")
            .setting("server_tls_sslmode", "require")
            .setting("client_login_timeout", "2")
    };
    let login = Login::new("postgres", "template1");
    let howdah = without()
        .setting("server_tls_cert_file", &certificate.to_string_lossy())
        .setting("server_tls_key_file", &key.to_string_lossy())
        .start();
    assert_eq!(howdah.login(&login).value(IS_TLS), "t");
    assert_eq!(refused(&without().start(), &login).severity, "FATAL");
}

#[test]
fn server_without_tls_is_not_spoken_to_where_tls_is_required() {
    for (sslmode, gets_in) in [("prefer", true), ("allow", true), ("require", false), ("verify-full", false)]
    {
        let fake = FakeServer::start(|session| {
            session.welcome()?;
            loop {
                session.recv()?;
                session.send(&reply::one_value("1"))?;
            }
        });
        let keys = Keys::new();
        let howdah = bare()
            .database("postgres", &fake.connection("postgres"))
            .user("postgres", PASSWORD)
            .setting("server_tls_sslmode", sslmode)
            .setting("server_tls_ca_file", &keys.path("ca.crt"))
            .setting("client_login_timeout", "1.5")
            .start();
        assert_eq!(gets_through(&howdah), gets_in, "{sslmode}");
        assert!(fake.accepted() > 0);
    }
}

#[test]
fn changed_server_sslmode_replaces_the_servers() {
    let name = "tls_server_reload";
    let server = server_for(name);
    let mut howdah = bare()
        .database(name, &server.connection(name))
        .user(name, PASSWORD)
        .setting("server_tls_sslmode", "disable")
        .start();
    let mut raw = howdah.session(name, name);
    assert_eq!(raw.value(IS_TLS), "f");
    howdah.reload_with("server_tls_sslmode", "require");
    eventually(LIMIT, || raw.value(IS_TLS) == "t");
}
