//! Claims about `pgbench`, each as small as it can be.

use super::*;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

fn words(said: &str, status: Option<i32>) -> Run {
    let status = status.map(|code| ExitStatus::from_raw(code << 8));
    Run::from_words(&Finished { status, said: said.to_owned() }, Duration::from_secs(9))
}

#[test]
fn a_good_run_gives_its_rate() {
    let run = words(
        "pgbench (15.14)\nnumber of transactions actually processed: 61\nlatency average = 0.7 ms\n\
         initial connection time = 12.1 ms\ntps = 29289.173 (without initial connection time)\n",
        Some(0),
    );
    assert_eq!((run.tps, run.connect_mean, run.trouble.count), (Some(29_289.173), None, 0));
    assert_eq!(run.connect_all, Some(Duration::from_micros(12_100)));
}

#[test]
fn with_reconnects_the_time_to_connect_is_told() {
    let run =
        words("average connection time = 0.512 ms\ntps = 900.1 (including reconnection times)\n", Some(0));
    assert_eq!((run.tps, run.connect_mean), (Some(900.1), Some(Duration::from_micros(512))));
}

#[test]
fn errors_are_counted_and_the_first_is_kept() {
    let run = words(
        "pgbench: error: client 3 script 0 aborted in command 1 query 0: ERROR:  prepared statement\n\
         pgbench: error: client 1 aborted\npgbench: error: Run was aborted; the above results are incomplete.\n",
        Some(2),
    );
    assert_eq!(run.trouble.count, 2);
    assert!(run.trouble.first.unwrap().starts_with("client 3 script 0 aborted"));
}

#[test]
fn a_failure_without_error_line_has_the_last_words() {
    assert_eq!(words("something\nodd\n", Some(1)).trouble.first.as_deref(), Some("odd"));
    assert_eq!(words("", None).trouble.first.as_deref(), Some("pgbench hung: killed after 9 s"));
}

#[test]
fn the_log_gives_latencies_and_the_window() {
    let mut run = Run::default();
    let log = "0 1 2000 0 1700000000 500000\n1 1 1000 0 1700000000 250000\n1 2 failed 0 1700000009 1\n0 2 3000 0 17000";
    run.read_log(log.as_bytes()).unwrap();
    assert_eq!(run.latencies.count(), 2);
    let base = 1_700_000_000_000_000_000;
    assert_eq!(run.window, Some((UnixNanos(base + 250_000_000), UnixNanos(base + 500_000_000))));
}

#[test]
fn statements_are_told_with_their_times_in_every_version() {
    let fifteen = "tps = 9.5\nstatement latencies in milliseconds and failures:\n\
                   \t0.002\t0  \\set aid random(1, 100000)\n\t  1.500           0  BEGIN;\n\t0.250  0 UPDATE t SET a = 1;\n";
    let older =
        "statement latencies in milliseconds:\n         1.500  BEGIN;\n         0.250  UPDATE t SET a = 1;\n";
    let expected = [("BEGIN;", 1_500), ("UPDATE t SET a = 1;", 250)]
        .map(|(text, micros)| (text.to_owned(), Duration::from_micros(micros)));
    for said in [fifteen, older] {
        assert_eq!(words(said, Some(0)).statements, expected, "{said}");
    }
}

fn with<T>(change: impl FnOnce(&mut Pgbench<'_>), look: impl FnOnce(&Pgbench<'_>) -> T) -> T {
    let access = Access::parse("postgres://me:pw@db:5/x").expect("a URL");
    let mut one = Pgbench {
        programs: Path::new("/bin"),
        logs: "/logs".into(),
        cores: None,
        access: &access,
        login: Login::Plain,
        script: Script::Select,
        scale: 10,
        clients: 3,
        threads: 9,
        amount: Amount::Seconds(2),
        spare: Duration::ZERO,
        mode: Mode::Simple,
        reconnect: false,
    };
    change(&mut one);
    look(&one)
}

fn command(change: impl FnOnce(&mut Pgbench<'_>)) -> (String, String) {
    let program = with(change, |one| one.program(one.amount));
    let words: Vec<_> = program.arguments.iter().map(|word| word.to_string_lossy()).collect();
    let environment: Vec<_> =
        program.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (words.join(" "), environment.join(" "))
}

#[test]
fn time_lost_with_connecting_is_given_again() {
    let ran = |millis: u64, connecting: Option<u64>| Run {
        window: (millis > 0).then_some((UnixNanos(0), UnixNanos(millis * 1_000_000))),
        connect_all: connecting.map(Duration::from_millis),
        ..Run::default()
    };
    let check = |run: Run, amount, expected: Option<u32>| {
        let longer = with(|one| one.amount = Amount::Seconds(1), |one| one.longer(&run, amount));
        assert_eq!(longer, expected.map(Amount::Seconds));
    };
    check(ran(800, Some(200)), Amount::Seconds(1), None);
    check(ran(100, Some(900)), Amount::Seconds(1), Some(2));
    check(ran(0, None), Amount::Seconds(1), Some(2));
    check(ran(0, None), Amount::Seconds(2), Some(4));
    check(ran(600, Some(1_400)), Amount::Seconds(2), None);
    let mut refused = ran(0, None);
    refused.trouble.add(|| "no connection".to_owned());
    check(refused, Amount::Seconds(1), None);
}

#[test]
fn only_what_has_a_time_is_given_more_of_it() {
    let longer = |change: fn(&mut Pgbench<'_>)| with(change, |one| one.longer(&Run::default(), one.amount));
    assert_eq!(longer(|one| one.amount = Amount::Each(10)), None);
    assert_eq!(longer(|one| one.reconnect = true), None);
}

#[test]
fn a_select_only_run_never_tries_tls() {
    let (words, environment) = command(|_| {});
    assert_eq!(words, "-n -l -S -c 3 -j 3 -T 2 -M simple -h db -p 5 -U me --log-prefix=/logs/t x");
    assert_eq!(environment, "PGSSLMODE=disable PGGSSENCMODE=disable PGPASSWORD=pw");
}

#[test]
fn logins_differ_in_role_and_tls() {
    let (words, _) = command(|one| (one.login, one.reconnect) = (Login::Scram, true));
    assert!(words.contains(" -S -C ") && words.contains(" -U me_scram "), "{words}");
    let (_, environment) = command(|one| one.login = Login::Tls);
    assert!(environment.starts_with("PGSSLMODE=require "), "{environment}");
}

#[test]
fn other_scripts_have_their_options() {
    assert!(command(|one| one.script = Script::TpcB).0.starts_with("-n -l -r -c"));
    assert!(command(|one| one.script = Script::WideRow).0.starts_with("-n -l -f /logs/script.sql -c"));
    assert!(
        command(|one| one.script = Script::Sets)
            .0
            .starts_with("-n -l -f /logs/script.sql -D done=0 -D scale=10 -c")
    );
    let (stateful, _) = command(|one| one.script = Script::Stateful { percent: 7 });
    assert!(
        stateful.starts_with("-n -l -f /logs/script.sql -D percent=7 -R 1000 -D scale=10 -c"),
        "{stateful}"
    );
    assert!(command(|one| one.amount = Amount::Each(10)).0.contains(" -t 10 "));
}

#[test]
fn a_refused_connection_is_told_by_its_cause() {
    let head = "pgbench: error: connection to server at \"127.0.0.1\", port 5 failed:";
    let check = |tail: &str, expected: &str| {
        let run = words(&format!("{head}{tail}\n"), Some(1));
        assert_eq!(run.trouble.first.as_deref(), Some(expected));
    };
    check(" FATAL:  sorry, too many clients already", "FATAL:  sorry, too many clients already");
    check(" \nserver closed the connection", "server closed the connection");
    check("", "no connection");
}
