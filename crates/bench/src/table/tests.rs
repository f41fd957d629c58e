//! Claims about `table`, each as small as it can be.

use super::*;
use crate::target::Kind;

fn row(target: Kind) -> Row {
    Row {
        target,
        tps: None,
        p50: None,
        p99: None,
        cpu: None,
        cpu_user: None,
        connect: None,
        bytes_per_client: None,
        cpu_ratio: None,
        tps_ratio: None,
        rss_peak_kib: None,
        servers_max: None,
        errors: 0,
        remark: None,
    }
}

fn text(rows: Vec<Row>) -> String {
    let load = Load::Canned { clients: 20 };
    let targets = rows.iter().map(|row| row.target).collect();
    let plan = Plan { targets, loads: vec![load], rounds: 3, seconds: 2 };
    report(&plan, &[Section { load, rows }])
}

#[test]
fn columns_without_figures_are_left_out() {
    let tps = Some(Spread { median: 1_000.0, min: 990.0, max: 1_020.4 });
    let text = text(vec![Row { tps, ..row(Kind::Direct) }, row(Kind::Pgbouncer)]);
    assert_eq!(
        text.lines().skip(1).take(4).collect::<Vec<_>>(),
        [
            "canned replies, 20 clients (median of 3 rounds of 2 s, least-most in brackets)",
            "  target                 tps  errors",
            "  direct     1000 [990-1020]       0",
            "  pgbouncer                        0",
        ]
    );
    assert!(!text.contains('~'));
}

#[test]
fn a_wide_spread_is_called_noise() {
    let cpu = Some(Spread { median: 0.02, min: 0.015, max: 0.03 });
    let text = text(vec![Row { cpu, ..row(Kind::Relay) }]);
    assert!(text.contains("0.0200 [0.0150-0.0300] ~"), "{text}");
    assert!(text.contains("too noisy to tell: in 1 of 1 rows"), "{text}");
    assert!(text.contains("one comparison in 4 does"), "three rounds: {text}");
}

#[test]
fn remarks_stand_below_the_table() {
    let text = text(vec![Row { errors: 3, remark: Some("53300 too many".into()), ..row(Kind::Relay) }]);
    assert!(text.contains("\n  relay: 53300 too many\n"), "{text}");
}
