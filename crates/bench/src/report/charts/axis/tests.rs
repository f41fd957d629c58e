//! Claims about axes.

use super::*;

#[test]
fn figures_are_short_at_an_axis() {
    let check = |value: f64, wanted: &str| assert_eq!(short(value), wanted);
    check(0.0, "0");
    check(0.05, "0.05");
    check(0.2, "0.2");
    check(2.5, "2.5");
    check(5.000000001, "5");
    check(150.0, "150");
    check(5_000.0, "5000");
    check(30_000.0, "30k");
    check(1_500_000.0, "1.5M");
}

#[test]
fn thousands_stand_apart() {
    let check = |value: f64, digits, wanted: &str| assert_eq!(grouped(value, digits), wanted);
    check(1.0, 0, "1");
    check(100.0, 0, "100");
    check(31_098.4, 0, "31,098");
    check(1_234_567.891, 2, "1,234,567.89");
    check(-100.0, 0, "-100");
}

#[test]
fn a_linear_axis_begins_at_zero_and_has_round_lines() {
    assert_eq!(Scale::linear(94.0).ticks(), [0.0, 20.0, 40.0, 60.0, 80.0]);
    assert_eq!(Scale::linear(0.0).ticks().first(), Some(&0.0));
}

#[test]
fn a_logarithmic_axis_has_lines_wherever_figures_are() {
    for (min, max) in [(0.03, 90.0), (0.29, 0.31), (1.0, 1_000.0), (0.001, 1e6)] {
        let scale = Scale::logarithmic(min, max);
        let labels: Vec<_> = scale.ticks().iter().map(|&at| scale.label(at)).collect();
        assert!((1..=10).contains(&labels.len()), "{labels:?}");
    }
    let scale = Scale::logarithmic(0.3, 8.0);
    let labels: Vec<_> = scale.ticks().iter().map(|&at| scale.label(at)).collect();
    assert_eq!(labels, ["0.5", "1", "2", "5", "10"]);
}
