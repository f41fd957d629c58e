//! Who gets in, by which proof, and what those learn who do not.
#![allow(clippy::disallowed_methods)] // clients are threads, and answers have a limit of time

mod stage;

use std::time::Duration;

use stage::{
    LIMIT, PASSWORD, bare, binary, check_fatal, local, login, pooler, refused, server_for, wait_for_pool,
};
use testkit::message::{self, query};
use testkit::{Howdah, HowdahOptions, Login, Postgres, Raw, Refusal, reply};

/// What PostgreSQL stores for this password under `md5` or `scram-sha-256`.
fn stored(role: &str, password: &str, encryption: &str) -> String {
    let server = Postgres::shared_wanted();
    let mut session = server.session("postgres");
    session.sql(&format!("set password_encryption = '{encryption}'"));
    session.sql(&format!("create role \"{role}\" login password '{password}'"));
    session.value(&format!("select rolpassword from pg_authid where rolname = '{role}'"))
}

/// A pooler whose users clear_NAME, md5_NAME and scram_NAME have their secrets in that form.
fn three_forms(name: &str, auth_type: &str) -> HowdahOptions {
    let server = server_for(name);
    let [clear, md5, scram] = ["clear", "md5", "scram"].map(|form| format!("{form}_{name}"));
    server.create_role(&clear, PASSWORD);
    let (of_md5, of_scram) = (stored(&md5, PASSWORD, "md5"), stored(&scram, PASSWORD, "scram-sha-256"));
    bare()
        .database(name, &server.connection(name))
        .setting("auth_type", auth_type)
        .user(&clear, PASSWORD)
        .user(&md5, &of_md5)
        .user(&scram, &of_scram)
}

/// The form of the secret, the letter of what is asked for, and whether the right password gets in.
fn check_auth_type(auth_type: &str, cases: [(&str, &str, bool); 3]) {
    let name = format!("auth_{}", auth_type.replace('-', "_"));
    let howdah = three_forms(&name, auth_type).start();
    for (form, asked, gets_in) in cases {
        let user = format!("{form}_{name}");
        let mut raw = Raw::connect(howdah.port());
        Login::new(&user, &name).send_startup(&mut raw);
        assert_eq!(raw.recv().letter(), asked, "{auth_type}, {form}");
        let login = Login::new(&user, &name);
        let right = Raw::try_login(howdah.port(), &login.clone().password(PASSWORD));
        match right {
            Ok(mut raw) => {
                assert!(gets_in, "{auth_type}, {form}");
                assert_eq!(raw.value("select current_user"), user);
            }
            Err(refusal) => assert!(!gets_in && refusal.sqlstate == "28P01", "{form}: {refusal:?}"),
        }
        for wrong in ["wrong", "Stage-Password", &"x".repeat(1000)] {
            let refusal = refused(&howdah, &login.clone().password(wrong));
            assert_eq!((refusal.severity.as_str(), refusal.sqlstate.as_str()), ("FATAL", "28P01"));
        }
    }
}

#[test]
fn plain_takes_secrets_of_every_form() {
    check_auth_type("plain", [("clear", "R(3)", true), ("md5", "R(3)", true), ("scram", "R(3)", true)]);
}

#[test]
fn md5_takes_every_form_and_becomes_scram_for_a_verifier() {
    check_auth_type("md5", [("clear", "R(5)", true), ("md5", "R(5)", true), ("scram", "R(10)", true)]);
}

#[test]
fn scram_takes_clear_text_and_verifiers_but_no_md5() {
    let cases = [("clear", "R(10)", true), ("md5", "R(10)", false), ("scram", "R(10)", true)];
    check_auth_type("scram-sha-256", cases);
}

#[test]
fn trust_asks_for_nothing_but_knows_who_exists() {
    let name = "auth_trust";
    let howdah = pooler(name).setting("auth_type", "trust").start();
    assert_eq!(howdah.session(name, name).value("select current_user"), name);
    check_fatal(&refused(&howdah, &Login::new("nobody", name)), "28000", "\"trust\" authentication failed");
}

#[test]
fn any_user_becomes_the_forced_one() {
    let name = "auth_any";
    let server = server_for(name);
    let howdah = bare()
        .database(name, &format!("{} user={name}", server.connection(name)))
        .database("unforced", &server.connection(name))
        .setting("auth_type", "any")
        .user(name, PASSWORD)
        .start();
    assert_eq!(howdah.session("whoever", name).value("select current_user"), name);
    check_fatal(&refused(&howdah, &Login::new("whoever", "unforced")), "F0000", "bouncer config error");
}

#[test]
fn empty_password_is_refused_even_where_the_secret_is_empty() {
    let name = "auth_empty";
    let howdah = pooler(name).setting("auth_type", "plain").user("hollow", "").start();
    for user in [name, "hollow", "nobody"] {
        let refusal = refused(&howdah, &Login::new(user, name).password(""));
        assert_eq!((refusal.severity.as_str(), refusal.sqlstate.as_str()), ("FATAL", "28P01"), "{user}");
    }
    assert_eq!(refused(&howdah, &Login::new("hollow", name).password("x")).sqlstate, "28P01");
}

/// Everything that the server sends to a login that fails, with what is random in it made equal.
fn transcript(howdah: &Howdah, user: &str, database: &str) -> Vec<Vec<u8>> {
    let mut raw = Raw::connect(howdah.port());
    Login::new(user, database).send_startup(&mut raw);
    let mut sent = Vec::new();
    loop {
        let mut asked = raw.recv();
        match (asked.tag, asked.int32_at(0)) {
            (b'R', Some(3)) => raw.send(message::password("wrong")),
            (b'R', Some(5)) => {
                asked.body[4..].fill(b'*');
                raw.send(message::password("md500000000000000000000000000000000"));
            }
            (b'R', Some(10)) => raw.send(message::sasl_initial("SCRAM-SHA-256", b"n,,n=,r=fixedfixed")),
            (b'R', Some(11)) => {
                let text = String::from_utf8(asked.body[4..].to_vec()).expect("server-first is text");
                let nonce = text.split(',').next().expect("a nonce");
                let proof = format!("c=biws,{nonce},p={}=", "A".repeat(43));
                raw.send(message::sasl_response(proof.as_bytes()));
                let parts: Vec<String> = text
                    .split(',')
                    .map(|part| match part.as_bytes()[0] {
                        b'i' => part.to_owned(),
                        first => format!("{}={}", char::from(first), "*".repeat(part.len())),
                    })
                    .collect();
                asked.body = parts.join(",").into_bytes();
            }
            (b'E', _) => {
                sent.push(asked.body);
                assert_eq!(raw.expect_closed(), "");
                return sent;
            }
            _ => panic!("let in, or asked for {asked:?}"),
        }
        sent.push(asked.body);
    }
}

/// A wrong password, an unknown user and an unknown database look the same, byte for byte.
fn check_indistinguishable(auth_type: &str, stored_as: &str) {
    // All names have one length: the error repeats the user's.
    let name = format!("auth_same_{}_{stored_as}", &auth_type[..3]);
    let unknown = format!("{}#", &name[..name.len() - 1]);
    let server = server_for(&name);
    let secret = match stored_as {
        "clear" => PASSWORD.to_owned(),
        form => {
            server.sql(&format!("drop database \"{name}\""));
            server.sql(&format!("drop role \"{name}\""));
            let secret = stored(&name, PASSWORD, form);
            server.create_database(&name, &name);
            secret
        }
    };
    let howdah = bare()
        .database(&name, &server.connection(&name))
        .setting("auth_type", auth_type)
        .user(&name, &secret)
        .start();
    // A server that is up and a pool that is warm must show no more than a cold one.
    for _ in 0..2 {
        let wrong = transcript(&howdah, &name, &name);
        let masked = |user: &str, database: &str| -> Vec<Vec<u8>> {
            let text = transcript(&howdah, user, database);
            let mask = |body: Vec<u8>| String::from_utf8_lossy(&body).replace(user, &name).into_bytes();
            text.into_iter().map(mask).collect()
        };
        let shown: Vec<Vec<u8>> =
            wrong.iter().map(|body| String::from_utf8_lossy(body).into_owned().into_bytes()).collect();
        assert_eq!(masked(&unknown, &name), shown, "unknown user");
        assert_eq!(masked(&name, &unknown), shown, "unknown database");
        assert_eq!(masked(&unknown, &unknown), shown, "both unknown");
        howdah.login(&login(&name)).sql("select 1");
    }
    let refusal = refused(&howdah, &Login::new(&name, &unknown).password(PASSWORD));
    check_fatal(&refusal, "3D000", &format!("no such database: {unknown}"));
}

#[test]
fn plain_does_not_tell_who_exists() {
    check_indistinguishable("plain", "clear");
}

#[test]
fn md5_does_not_tell_who_exists() {
    check_indistinguishable("md5", "md5");
}

#[test]
fn scram_does_not_tell_who_exists() {
    check_indistinguishable("scram-sha-256", "scram-sha-256");
}

#[test]
fn scram_made_from_clear_text_does_not_tell_who_exists() {
    check_indistinguishable("scram-sha-256", "clear");
}

#[test]
fn salt_of_an_unknown_user_stays_the_same_and_differs_between_users() {
    let name = "auth_salt";
    let howdah = pooler(name).setting("auth_type", "scram-sha-256").start();
    let salt = |user: &str| {
        let mut raw = Raw::connect(howdah.port());
        Login::new(user, name).send_startup(&mut raw);
        assert_eq!(raw.recv().letter(), "R(10)");
        raw.send(message::sasl_initial("SCRAM-SHA-256", b"n,,n=,r=fixedfixed"));
        let first = raw.recv();
        let text = String::from_utf8(first.body[4..].to_vec()).expect("server-first is text");
        text.split(',').find(|part| part.starts_with("s=")).expect("a salt").to_owned()
    };
    assert_eq!(salt("nobody"), salt("nobody"));
    assert_eq!(salt(name), salt(name));
    assert_ne!(salt("nobody"), salt("nobody_else"));
}

/// The wrong password does not get in, whatever the pool is like, and the right one does afterwards.
fn check_wrong_password_in_every_state(auth_type: &str) {
    let name = format!("auth_states_{}", auth_type.replace('-', "_"));
    let name = name.as_str();
    let howdah = pooler(name).setting("auth_type", auth_type).setting("default_pool_size", "1").start();
    let check = |state: &str| {
        for password in ["wrong", "wrong again"] {
            let refusal = refused(&howdah, &login(name).password(password));
            assert_eq!(refusal.sqlstate, "28P01", "{state}: {refusal:?}");
        }
    };
    check("cold");
    let mut first = howdah.login(&login(name));
    assert_eq!(first.value("select 1"), "1");
    check("warm");
    first.sql("begin");
    check("full");
    first.sql("commit");
    let mut console = howdah.console();
    assert_eq!(console.ask(query(&format!("PAUSE {name}"))), "C(PAUSE) ZI");
    check("paused");
    assert_eq!(console.ask(query(&format!("RESUME {name}"))), "C(RESUME) ZI");
    check("resumed");
    assert_eq!(console.ask(query("RELOAD")), "C(RELOAD) ZI");
    check("reloaded");
    assert_eq!(console.ask(query("RECONNECT")), "C(RECONNECT) ZI");
    check("reconnecting");
    assert_eq!(howdah.login(&login(name)).value("select 1"), "1");
}

#[test]
fn wrong_password_fails_in_every_state_with_plain() {
    check_wrong_password_in_every_state("plain");
}

#[test]
fn wrong_password_fails_in_every_state_with_md5() {
    check_wrong_password_in_every_state("md5");
}

#[test]
fn wrong_password_fails_in_every_state_with_scram() {
    check_wrong_password_in_every_state("scram-sha-256");
}

#[test]
fn hba_rules_are_tried_in_order() {
    let name = "auth_hba";
    let server = server_for(name);
    for user in ["hba_scram", "hba_md5", "hba_plain", "hba_trusted", "hba_rejected", "hba_local", "hba_far"] {
        server.create_role(user, PASSWORD);
    }
    let hba = format!(
        "# comment\n\
         host {name} hba_rejected 127.0.0.1/32 reject\n\
         host {name} hba_scram,hba_none 127.0.0.0/8 scram-sha-256\n\
         host {name} hba_md5 127.0.0.1 255.255.255.255 md5\n\
         host all hba_plain all password\n\
         this line is not one\n\
         hostssl all hba_trusted all reject\n\
         hostnossl all hba_trusted all trust\n\
         host all hba_far 10.0.0.0/8 trust\n\
         local all hba_local trust\n\
         local all hba_scram reject\n\
         host all admin all trust\n"
    );
    let mut options = bare().database(name, &server.connection(name)).setting("auth_type", "hba").hba(&hba);
    for user in ["hba_scram", "hba_md5", "hba_plain", "hba_trusted", "hba_rejected", "hba_local", "hba_far"] {
        options = options.user(user, PASSWORD);
    }
    let howdah = options.start();
    howdah.wait_for_log("hba.conf:6:1: ");
    for (user, asked) in
        [("hba_scram", "R(10)"), ("hba_md5", "R(5)"), ("hba_plain", "R(3)"), ("hba_trusted", "R(0)")]
    {
        let mut raw = Raw::connect(howdah.port());
        Login::new(user, name).send_startup(&mut raw);
        assert_eq!(raw.recv().letter(), asked, "{user}");
        let mut raw = howdah.login(&Login::new(user, name).password(PASSWORD));
        assert_eq!(raw.value("select current_user"), user);
    }
    let tell = |user: &str| refused(&howdah, &Login::new(user, name).password(PASSWORD));
    check_fatal(&tell("hba_rejected"), "28000", "login rejected");
    for user in ["hba_far", "hba_local", "nobody"] {
        check_fatal(&tell(user), "28000", "no authentication method is found");
    }
    let socket = local(&howdah);
    let mut local = Raw::login(socket.as_path(), &Login::new("hba_local", name));
    assert_eq!(local.value("select current_user"), "hba_local");
    let refusal = Raw::try_login(socket.as_path(), &Login::new("hba_scram", name)).map(drop);
    assert_eq!(refusal.expect_err("rejected").text, "login rejected");
}

#[test]
fn peer_of_a_unix_socket_is_mapped_to_a_user() {
    let name = "auth_peer";
    let server = server_for(name);
    server.create_role("peer_other", PASSWORD);
    let me = std::process::Command::new("id").arg("-un").output().expect("id can be run").stdout;
    let me = String::from_utf8(me).expect("a name");
    let directory = testkit::TempDir::new();
    let ident = directory.write("ident.conf", format!("here {} {name}\n", me.trim()));
    let howdah = bare()
        .database(name, &server.connection(name))
        .setting("auth_type", "hba")
        .setting("auth_ident_file", &ident.to_string_lossy())
        .hba("local all all peer map=here\nhost all admin all trust\n")
        .user(name, PASSWORD)
        .user("peer_other", PASSWORD)
        .start();
    let socket = local(&howdah);
    assert_eq!(Raw::login(socket.as_path(), &Login::new(name, name)).value("select current_user"), name);
    let refusal = Raw::try_login(socket.as_path(), &Login::new("peer_other", name)).map(drop);
    check_fatal(&refusal.expect_err("another user"), "28000", "unix socket login rejected");
}

// Towards servers.

/// A server that asks for a password in another way for each database.
fn strict() -> &'static Postgres {
    static STRICT: std::sync::OnceLock<Postgres> = std::sync::OnceLock::new();
    STRICT.get_or_init(|| {
        let server = testkit::PostgresOptions::new(testkit::Version::wanted())
            .setting("password_encryption", "scram-sha-256")
            .hba(
                "local all all trust\nhost by_password all 127.0.0.1/32 password\n\
                 host by_md5 all 127.0.0.1/32 md5\nhost by_scram all 127.0.0.1/32 scram-sha-256\n\
                 host by_trust all 127.0.0.1/32 trust\n",
            )
            .start();
        server.create_role("scram_role", PASSWORD);
        let mut session = server.session("postgres");
        session.sql("set password_encryption = 'md5'");
        session.sql(&format!("create role md5_role login password '{PASSWORD}'"));
        for database in ["by_password", "by_md5", "by_scram", "by_trust"] {
            server.create_database(database, "scram_role");
        }
        // What is static is never dropped: the kernel ends it with this process.
        server
    })
}

fn verifier_of(role: &str) -> String {
    strict().session("postgres").value(&format!("select rolpassword from pg_authid where rolname = '{role}'"))
}

/// Who logs in to which database, with this in the userlist and this auth_type; `Err` is the SQLSTATE.
fn check_server_login(role: &str, database: &str, secret: &str, auth_type: &str) -> Result<(), Refusal> {
    let howdah = bare()
        .database(database, &strict().connection(database))
        .setting("auth_type", auth_type)
        .user(role, secret)
        .start();
    let mut raw = Raw::try_login(howdah.port(), &Login::new(role, database).password(PASSWORD))?;
    assert_eq!(raw.value("select current_user"), role);
    Ok(())
}

#[test]
fn pooler_logs_in_to_servers_by_every_method() {
    for (role, database) in [
        ("scram_role", "by_password"),
        ("scram_role", "by_md5"),
        ("scram_role", "by_scram"),
        ("scram_role", "by_trust"),
        ("md5_role", "by_password"),
        ("md5_role", "by_md5"),
    ] {
        check_server_login(role, database, PASSWORD, "trust")
            .unwrap_or_else(|refusal| panic!("{role} in {database}: {refusal:?}"));
    }
}

#[test]
fn md5_secret_of_the_userlist_answers_md5() {
    check_server_login("md5_role", "by_md5", &verifier_of("md5_role"), "md5").expect("the same hash");
}

#[test]
fn scram_keys_of_the_client_pass_through() {
    let verifier = verifier_of("scram_role");
    assert!(verifier.starts_with("SCRAM-SHA-256$"));
    check_server_login("scram_role", "by_scram", &verifier, "scram-sha-256").expect("the same verifier");
    check_server_login("scram_role", "by_scram", &verifier, "md5").expect("md5 becomes SCRAM");
}

#[test]
fn clear_password_of_the_client_passes_through() {
    let verifier = verifier_of("scram_role");
    for database in ["by_scram", "by_password"] {
        check_server_login("scram_role", database, &verifier, "plain").expect("the password was shown");
    }
}

#[test]
fn verifier_that_nobody_has_proved_does_not_log_in() {
    let refusal = check_server_login("scram_role", "by_scram", &verifier_of("scram_role"), "trust");
    let refusal = refusal.expect_err("there are no keys");
    assert_eq!(refusal.severity, "FATAL");
}

#[test]
fn refusal_of_the_server_reaches_the_client() {
    let refusal = check_server_login("scram_role", "by_scram", "stale", "trust").expect_err("wrong password");
    let text = "password authentication failed for user \"scram_role\"";
    check_fatal(&refusal, "28P01", text);
}

#[test]
fn forced_user_takes_the_password_of_its_entry() {
    let entry = format!("{} user=scram_role password={PASSWORD}", strict().connection("by_scram"));
    let howdah = bare().database("forced", &entry).user("guest", "guest").setting("auth_type", "md5").start();
    let mut raw = howdah.login(&Login::new("guest", "forced").password("guest"));
    assert_eq!(raw.value("select current_user"), "scram_role");
    // The password of the server is none of the client's.
    assert_eq!(refused(&howdah, &Login::new("guest", "forced").password(PASSWORD)).sqlstate, "28P01");
    assert_eq!(refused(&howdah, &Login::new("scram_role", "forced").password(PASSWORD)).sqlstate, "28P01");
}

/// A server that asks with `request`; what the pooler sent it in password messages.
fn passwords_given_to(request: Vec<u8>, allowed: &str) -> (Result<(), Refusal>, Vec<Vec<u8>>) {
    let asks = request == reply::authentication_ok();
    let fake = testkit::FakeServer::start(move |session| {
        session.startup()?;
        session.send(&request)?;
        if !asks {
            session.recv()?;
            session.send(&reply::authentication_ok())?;
        }
        session.send(&reply::welcome(session.number)[9..])?;
        session.fall_silent()
    });
    let howdah = bare()
        .database("fake", &fake.connection("fake"))
        .setting("server_auth_allowed", allowed)
        .setting("client_login_timeout", "2")
        .user("somebody", PASSWORD)
        .start();
    let outcome = Raw::try_login(howdah.port(), &Login::new("somebody", "fake")).map(drop);
    drop(howdah);
    let given = fake.received().into_iter().filter(|(_, message)| message.tag == b'p');
    (outcome, given.map(|(_, message)| message.body).collect())
}

#[test]
fn server_gets_no_weaker_proof_than_is_allowed() {
    let requests =
        [reply::authentication_ok(), reply::authentication(3, &[]), reply::authentication(5, b"salt")];
    for (at, request) in requests.into_iter().enumerate() {
        let (outcome, given) = passwords_given_to(request, "scram-sha-256");
        assert!(outcome.is_err(), "request {at}: let in");
        assert!(given.is_empty(), "request {at}: a password was given away");
    }
    let (outcome, given) = passwords_given_to(reply::authentication(3, &[]), "password");
    assert_eq!((outcome, given), (Ok(()), vec![format!("{PASSWORD}\0").into_bytes()]));
}

#[test]
fn changed_userlist_holds_for_new_logins_after_a_reload() {
    let name = "auth_reload";
    let mut howdah = pooler(name).setting("auth_type", "scram-sha-256").start();
    let mut old = howdah.login(&login(name));
    howdah.add_user(name, "another");
    assert_eq!(howdah.console().ask(query("RELOAD")), "C(RELOAD) ZI");
    assert_eq!(refused(&howdah, &login(name)).sqlstate, "28P01");
    let mut new = howdah.login(&Login::new(name, name).password("another"));
    assert_eq!((old.value("select 1"), new.value("select 2")), ("1".into(), "2".into()));
}

#[test]
fn psql_logs_in() {
    let name = "auth_psql";
    let howdah = pooler(name).setting("auth_type", "scram-sha-256").start();
    assert!(binary().exists());
    let program = Postgres::shared_wanted().program("psql");
    let psql = |password: &str| {
        let mut command = std::process::Command::new(&program);
        command.args(["-XAt", "-h", "127.0.0.1", "-p", &howdah.port().to_string(), "-U", name, name]);
        command.args(["-c", "select current_user"]).env("PGPASSWORD", password).output().expect("psql runs")
    };
    assert_eq!(String::from_utf8_lossy(&psql(PASSWORD).stdout).trim(), name);
    let wrong = psql("wrong");
    assert!(!wrong.status.success());
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("authentication failed"), "{wrong:?}");
}

#[test]
fn many_logins_at_once_all_succeed() {
    let name = "auth_many";
    let howdah = pooler(name).setting("auth_type", "scram-sha-256").setting("default_pool_size", "2").start();
    let start = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| assert_eq!(howdah.login(&login(name)).value("select 1"), "1"));
        }
    });
    assert!(start.elapsed() < LIMIT + Duration::from_secs(15));
    let _held = holder_with_password(&howdah, name);
    wait_for_pool(&howdah, name, &[("sv_active", "1")]);
}

fn holder_with_password(howdah: &Howdah, name: &str) -> Raw {
    let mut raw = howdah.login(&login(name));
    raw.sql("begin");
    raw
}
