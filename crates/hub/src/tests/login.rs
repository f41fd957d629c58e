//! Identify, look up, enter, leave.

use auth::Password;
use auth::scram::{ScramLogin, ScramVerifier};
use console::Role;

use super::*;

const DB: &str = "[databases]\napp = host=h\n";
const VERIFIER: &str = "SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$\
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

fn bench(auth: &str) -> Bench {
    Bench::new(&format!("auth_type = {auth}\n{DB}"))
}

fn challenge(auth: &str, database: &str, user: &str) -> String {
    let name = match bench(auth).identify(&facts(database, user)).challenge {
        Challenge::Pass => "pass",
        Challenge::Refuse(refusal) => return refusal.to_string(),
        Challenge::Plain(Expected::Stored(..)) => "plain",
        Challenge::Plain(Expected::Nobody(_)) => "plain for nobody",
        Challenge::Md5(Expected::Stored(..)) => "md5",
        Challenge::Md5(Expected::Nobody(_)) => "md5 for nobody",
        Challenge::Scram(_) => "scram",
        Challenge::Derive(_) => "derive",
        Challenge::Lookup(_) => "lookup",
        Challenge::Relay => "relay",
    };
    name.to_owned()
}

#[test]
fn auth_type_decides_the_exchange() {
    for (auth, expected) in
        [("trust", "pass"), ("plain", "plain"), ("md5", "md5"), ("scram-sha-256", "derive")]
    {
        assert_eq!(challenge(auth, "app", "ann"), expected, "{auth}");
    }
}

#[test]
fn unknown_user_is_put_through_the_same_exchange() {
    assert_eq!(challenge("plain", "app", "eve"), "plain for nobody");
    assert_eq!(challenge("md5", "app", "eve"), "md5 for nobody");
    assert_eq!(challenge("scram-sha-256", "app", "eve"), "scram");
}

#[test]
fn trust_is_for_users_that_exist() {
    assert_eq!(challenge("trust", "app", "eve"), "\"trust\" authentication failed");
}

#[test]
fn unknown_database_is_told_only_after_the_proof() {
    assert_eq!(challenge("md5", "nothing", "ann"), "md5");
    assert_eq!(bench("md5").refused("nothing", "ann"), Refusal::NoSuchDatabase("nothing".into()));
}

#[test]
fn decoy_takes_the_check_that_a_real_verifier_takes() {
    let users = format!("\"ann\" \"{VERIFIER}\"\n");
    let mut bench = Bench::with(inputs(&format!("auth_type = plain\n{DB}"), &users));
    let Challenge::Plain(Expected::Nobody(decoy)) = bench.identify(&facts("app", "eve")).challenge else {
        panic!("eve is asked for a password");
    };
    assert!(decoy.0.check_is_slow());
}

#[test]
fn verifier_of_a_clear_text_password_is_made_once() {
    let mut bench = bench("scram-sha-256");
    let Challenge::Derive(derivation) = bench.identify(&facts("app", "ann")).challenge else { panic!() };
    let verifier = derivation.run();
    let _ = bench.hub.derived(&derivation, verifier);
    assert!(matches!(bench.identify(&facts("app", "ann")).challenge, Challenge::Scram(_)));
    let _ = bench.hub.reload(
        bench.now,
        inputs(&format!("auth_type = scram-sha-256\n{DB}"), "\"ann\" \"other\"\n\"bob\" \"b\"\n"),
    );
    assert!(matches!(bench.identify(&facts("app", "ann")).challenge, Challenge::Derive(_)));
}

#[test]
fn password_that_was_shown_is_known_until_the_secret_changes() {
    let verifier = |salt: &[u8]| {
        let made = ScramVerifier::from_password(&Password::new("pw"), salt, 4096.try_into().unwrap());
        format!("\"ann\" \"{}\"\n", std::str::from_utf8(made.to_text().reveal()).unwrap())
    };
    let ini = format!("auth_type = plain\n{DB}");
    let mut bench = Bench::with(inputs(&ini, &verifier(b"0123456789abcdef")));
    let shown = |bench: &mut Bench| match bench.identify(&facts("app", "ann")).challenge {
        Challenge::Plain(Expected::Stored(_, shown)) => shown,
        _ => panic!("ann is asked for a password"),
    };
    assert_eq!(shown(&mut bench), None);
    let seat = bench.identify(&facts("app", "ann")).seat;
    let evidence = Evidence::Password(Password::new("pw"));
    assert!(bench.hub.enter(bench.now, ClientId(1), &1, &seat, evidence).is_ok());
    assert_eq!(shown(&mut bench), Some(Password::new("pw")));
    let _ = bench.hub.reload(bench.now, inputs(&ini, &verifier(b"fedcba9876543210")));
    assert_eq!(shown(&mut bench), None, "it was right for another secret");
}

#[test]
fn hba_rule_decides() {
    let mut files = inputs(&format!("auth_type = hba\nauth_hba_file = x\n{DB}"), USERS);
    let (hba, _) =
        Hba::parse(b"host app ann 127.0.0.1/32 trust\nhost app bob 0.0.0.0/0 reject\n", &mut |_| None);
    files.hba = hba;
    let mut bench = Bench::with(files);
    assert!(matches!(bench.identify(&facts("app", "ann")).challenge, Challenge::Pass));
    let refusal = |plan: Plan<u64, u64>| match plan.challenge {
        Challenge::Refuse(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(bench.identify(&facts("app", "bob"))), Refusal::LoginRejected);
    assert_eq!(refusal(bench.identify(&facts("other", "ann"))), Refusal::NoAuthenticationMethod);
}

#[test]
fn certificate_must_name_the_user() {
    let mut files = inputs(&format!("auth_type = hba\nauth_hba_file = x\n{DB}"), USERS);
    files.hba = Hba::parse(b"host all all 0.0.0.0/0 cert\n", &mut |_| None).0;
    let mut bench = Bench::with(files);
    let own = Facts { certificate_name: Some("ann"), ..facts("app", "ann") };
    assert!(matches!(bench.identify(&own).challenge, Challenge::Pass));
    let other = Facts { certificate_name: Some("bob"), ..own };
    assert!(matches!(bench.identify(&other).challenge, Challenge::Refuse(Refusal::CertificateFailed)));
    let none = Facts { certificate_name: None, ..own };
    assert!(matches!(bench.identify(&none).challenge, Challenge::Refuse(Refusal::CertificateFailed)));
}

#[test]
fn auth_type_any_needs_a_forced_user() {
    let ini = "auth_type = any\n[databases]\nfree = host=h\nfixed = host=h user=app\n";
    let mut bench = Bench::new(ini);
    let plan = bench.identify(&facts("free", "eve"));
    assert!(matches!(plan.challenge, Challenge::Refuse(Refusal::BouncerConfigError)));
    let (_, cell) = bench.member("fixed", "eve");
    assert_eq!((cell.key.user.as_str(), cell.is_forced), ("app", true));
}

#[test]
fn clients_of_one_database_and_user_share_a_pool() {
    let mut bench = bench("trust");
    let (_, one) = bench.member("app", "ann");
    let (_, two) = bench.member("app", "ann");
    let (_, other) = bench.member("app", "bob");
    assert!(Arc::ptr_eq(&one, &two) && !Arc::ptr_eq(&one, &other));
    assert!(!one.is_forced);
}

#[test]
fn console_is_for_listed_users() {
    let mut bench = Bench::new(&format!("admin_users = ann\nstats_users = bob\n{DB}"));
    let mut role = |user| match bench.enter("pgbouncer", user) {
        Ok((_, Entered::Console(role))) => Ok(role),
        Ok(other) => panic!("{other:?}"),
        Err(refusal) => Err(refusal),
    };
    assert_eq!(role("ann"), Ok(Role::Admin));
    assert_eq!(role("bob"), Ok(Role::Stats));
    assert_eq!(role("eve"), Err(Refusal::NotAllowed));
}

#[test]
fn own_name_is_the_console_unless_it_is_configured() {
    assert!(bench("trust").identify(&facts("howdah", "ann")).seat.is_console());
    let mut bench = Bench::new("[databases]\nhowdah = host=h\n* = host=h\n");
    assert!(!bench.identify(&facts("howdah", "ann")).seat.is_console());
    assert!(bench.identify(&facts("pgbouncer", "ann")).seat.is_console());
}

#[test]
fn own_system_user_needs_no_password_for_the_console() {
    let mut bench = bench("md5");
    let own = Facts { origin: Origin::Unix, is_own_user: true, ..facts("pgbouncer", "pgbouncer") };
    assert!(matches!(bench.identify(&own).challenge, Challenge::Pass));
    let other = Facts { user: "ann", ..own };
    assert!(matches!(bench.identify(&other).challenge, Challenge::Md5(_)));
}

const LOOKUP: &str = "auth_type = scram-sha-256\nauth_user = bob\n[databases]\n* = host=h\n";

fn lookup(bench: &mut Bench, user: &str) -> Lookup<u64, u64> {
    match bench.identify(&facts("app", user)).challenge {
        Challenge::Lookup(lookup) => lookup,
        other => panic!("{user} is looked up, not {other:?}"),
    }
}

#[test]
fn user_outside_the_auth_file_is_looked_up() {
    let mut bench = Bench::new(LOOKUP);
    let lookup = lookup(&mut bench, "eve");
    assert_eq!((lookup.cell.key.database.as_str(), lookup.cell.key.user.as_str()), ("app", "bob"));
    assert!(lookup.query.contains("$1"));
    let found = Looked::Found(Some(Password::new(VERIFIER)));
    let plan = bench.hub.looked_up(bench.now, &facts("app", "eve"), found);
    assert!(matches!(plan.challenge, Challenge::Scram(_)));
}

#[test]
fn user_that_is_not_found_looks_like_one_that_is() {
    let mut bench = Bench::new(LOOKUP);
    let _ = lookup(&mut bench, "eve");
    let plan = bench.hub.looked_up(bench.now, &facts("app", "eve"), Looked::Nobody);
    assert!(matches!(plan.challenge, Challenge::Scram(_)));
}

#[test]
fn failed_lookup_is_our_fault() {
    let mut bench = Bench::new(LOOKUP);
    let plan = bench.hub.looked_up(bench.now, &facts("app", "eve"), Looked::Failed);
    assert!(matches!(plan.challenge, Challenge::Refuse(Refusal::BouncerConfigError)));
}

#[test]
fn each_login_is_looked_up_again() {
    let mut bench = Bench::new(LOOKUP);
    let found = Looked::Found(Some(Password::new(VERIFIER)));
    let _ = bench.hub.looked_up(bench.now, &facts("app", "eve"), found);
    let _ = lookup(&mut bench, "eve");
}

#[test]
fn lookup_in_the_console_database_is_a_mistake_of_the_settings() {
    let ini = "auth_type = md5\nauth_user = bob\nauth_dbname = howdah\n[databases]\n* = host=h\n";
    let plan = Bench::new(ini).identify(&facts("app", "eve"));
    assert!(matches!(plan.challenge, Challenge::Refuse(Refusal::BouncerConfigError)));
}

#[test]
fn proof_of_a_client_opens_servers_in_its_name() {
    let password = Password::new("pw");
    let login = ScramLogin::derive(&password, b"0123456789abcdef", 4096.try_into().unwrap());
    let text = login.verifier().to_text();
    let users = format!("\"ann\" \"{}\"\n", std::str::from_utf8(text.reveal()).unwrap());
    let mut bench = Bench::with(inputs(&format!("auth_type = scram-sha-256\n{DB}"), &users));
    let seat = bench.identify(&facts("app", "ann")).seat;
    let now = bench.now;
    let Ok(Entered::Member(member)) = bench.hub.enter(now, ClientId(1), &1, &seat, Evidence::None) else {
        panic!()
    };
    let secret = |bench: &mut Bench| bench.hub.open_server(bench.now, member.cell.id).unwrap().secret;
    assert!(!secret(&mut bench).serves_scram(), "nobody has shown anything yet");
    let evidence = Evidence::Scram(login);
    assert!(bench.hub.enter(now, ClientId(2), &2, &seat, evidence).is_ok());
    assert!(secret(&mut bench).serves_scram());
    let other =
        ScramVerifier::from_password(&password, b"fedcba9876543210", 4096.try_into().unwrap()).to_text();
    let users = format!("\"ann\" \"{}\"\n", std::str::from_utf8(other.reveal()).unwrap());
    let _ = bench.hub.reload(now, inputs(&format!("auth_type = scram-sha-256\n{DB}"), &users));
    assert!(!secret(&mut bench).serves_scram(), "it belongs to the secret that it was checked against");
}

#[test]
fn forced_users_secret_comes_from_no_client() {
    let ini = "[databases]\nown = host=h user=ann password=x\nfile = host=h user=bob\n";
    let mut bench = Bench::new(ini);
    for (name, expected) in [("own", &b"x"[..]), ("file", b"b")] {
        let seat = bench.identify(&facts(name, "ann")).seat;
        let evidence = Evidence::Password(Password::new("client's"));
        let id = ClientId(bench.id());
        let Ok(Entered::Member(member)) = bench.hub.enter(bench.now, id, &0, &seat, evidence) else {
            panic!()
        };
        let order = bench.hub.open_server(bench.now, member.cell.id).unwrap();
        assert_eq!(order.secret.cleartext().map(Password::reveal), Some(expected), "{name}");
    }
}

#[test]
fn order_says_all_that_a_server_needs() {
    let ini = "server_connect_timeout = 3\n[databases]\napp = host=h port=6 dbname=real timezone=UTC connect_query='select 1'\n";
    let mut bench = Bench::new(ini);
    let (_, cell) = bench.member("app", "ann");
    let order = bench.hub.open_server(bench.now, cell.id).unwrap();
    assert_eq!((order.places[0].port, order.dbname.as_str(), order.user.as_str()), (6, "real", "ann"));
    assert_eq!(order.parameters, [("timezone", "UTC".to_owned())]);
    assert_eq!(order.connect_query.as_deref(), Some("select 1"));
    assert_eq!(order.connect_timeout, Duration::from_secs(3));
}

#[test]
fn policy_is_shared_by_the_clients_of_one_user() {
    let mut bench =
        Bench::new("query_wait_timeout = 7\n[databases]\napp = host=h\n[users]\nann = query_timeout=5\n");
    let (_, cell) = bench.member("app", "ann");
    let one = bench.hub.policy(cell.id, "ann").unwrap();
    let two = bench.hub.policy(cell.id, "ann").unwrap();
    assert!(Arc::ptr_eq(&one, &two));
    assert_eq!((one.query_wait_timeout, one.query_timeout), (Duration::from_secs(7), Duration::from_secs(5)));
    assert_eq!(one.server_check_query.as_deref(), Some(""));
}

const OWN: &str = "[databases]\napp = host=h\nown = host=h pool_mode=passthrough\n\
    mine = host=h client_user_suffix=@there server_user_suffix=@here\n[users]\nbob = pool_mode=passthrough\n";

#[test]
fn who_logs_in_to_a_server_is_asked_nothing_here() {
    let mut bench = Bench::new(&format!("auth_type = scram-sha-256\n{OWN}"));
    let mut asked = |database: &str, user: &str| match bench.identify(&facts(database, user)).challenge {
        Challenge::Relay => "relay",
        Challenge::Refuse(_) => "refuse",
        _ => "proof",
    };
    assert_eq!(asked("own", "nobody we know"), "relay");
    assert_eq!(asked("app", "bob"), "relay");
    assert_eq!(asked("app", "ann"), "proof");
    assert_eq!(asked("pgbouncer", "bob"), "proof");
    assert_eq!(asked("nothing", "bob"), "proof");
}

#[test]
fn pool_of_whom_no_server_knows_is_forgotten() {
    let mut bench = Bench::new(&format!("auth_type = scram-sha-256\n{OWN}"));
    let (id, cell) = bench.member("own", "stranger");
    assert_eq!(bench.hub.leave(bench.now, id), Some(cell.id));
    assert!(bench.hub.pool(cell.id).is_none());
    // While its server is still being opened it stays, and goes with that.
    let (id, cell) = bench.member("own", "stranger");
    let _order = bench.hub.open_own_server(bench.now, cell.id).expect("no limit is reached");
    assert_eq!(bench.hub.leave(bench.now, id), None);
    let _ = bench.hub.server_gone(bench.now, cell.id);
    assert!(bench.hub.pool(cell.id).is_none());
    let (id, cell) = bench.member("own", "friend");
    bench.hub.let_in(cell.id);
    assert_eq!(bench.hub.leave(bench.now, id), None);
    assert!(bench.hub.pool(cell.id).is_some());
}

#[test]
fn suffixes_of_names_are_taken_off_and_put_on() {
    let mut bench = Bench::new(&format!("auth_type = trust\n{OWN}"));
    for name in ["ann@there", "ann"] {
        assert!(matches!(bench.identify(&facts("mine", name)).challenge, Challenge::Pass), "{name}");
        let (_, cell) = bench.member("mine", name);
        assert_eq!(cell.key.user, "ann");
        let order = bench.hub.open_server(bench.now, cell.id).expect("no limit is reached");
        assert_eq!(order.user, "ann@here");
    }
    // Elsewhere it is a name as any other.
    assert!(matches!(bench.identify(&facts("app", "ann@there")).challenge, Challenge::Refuse(_)));
}
