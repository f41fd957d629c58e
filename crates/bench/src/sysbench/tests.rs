//! Claims about `sysbench`, each as small as it can be.

use super::*;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

const WORDS: &str = "\
SQL statistics:
    transactions:                        1234   (411.21 per sec.)
    queries:                             19744  (6579.40 per sec.)

Latency (ms):
         min:                                    3.21
         avg:                                    9.70
         max:                                   31.00
         99th percentile:                       20.37
         sum:                                11969.80
";

fn run(words: &str, status: Option<i32>) -> Run {
    let status = status.map(|code| ExitStatus::from_raw(code << 8));
    Run::from_words(&Finished { status, said: words.to_owned() }, Duration::from_secs(9))
}

#[test]
fn its_figures_are_read() {
    let run = run(WORDS, Some(0));
    assert_eq!((run.transactions, run.tps), (1_234, Some(411.21)));
    assert_eq!(run.mean, Some(Duration::from_micros(9_700)));
    assert_eq!(run.p99, Some(Duration::from_micros(20_370)));
    assert_eq!(run.max, Some(Duration::from_millis(31)));
    assert_eq!(run.trouble, Trouble::default());
}

#[test]
fn a_refusal_is_trouble_once_a_thread() {
    let words = "FATAL: PQprepare() failed: 7 FATAL:  sorry, too many clients already\n\
                 FATAL: `thread_init' function failed: somewhere\n";
    let run = run(words, Some(1));
    assert_eq!(run.trouble.count, 1);
    assert_eq!(run.trouble.by_state.get("53300"), Some(&1));
}

#[test]
fn a_hang_is_trouble() {
    assert_eq!(run("", None).trouble.first.as_deref(), Some("sysbench hung: killed after 9 s"));
}

#[test]
fn the_command_names_place_and_size() {
    let access = Access::parse("postgres://me:pw@db:1/x").expect("a URL");
    let one = Sysbench {
        binary: Path::new("/usr/bin/sysbench"),
        cores: None,
        access: &access,
        script: Oltp::ReadOnly,
        clients: 7,
        seconds: 3,
        log: PathBuf::new(),
    };
    let words: Vec<_> =
        one.program().arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    for word in ["oltp_read_only", "--pgsql-host=db", "--pgsql-port=1", "--threads=7", "--time=3", "run"] {
        assert!(words.iter().any(|one| one == word), "{word} in {words:?}");
    }
}
