//! Lines of figures, and what is made of them.

use super::*;

fn figure(line: &str) -> Figure {
    Figure::read(line).expect("a figure")
}

#[test]
fn a_figure_is_held_against_its_limits() {
    for (line, limit, verdict) in [
        ("a\tstall\t0.500\ts\t\t1.5", "at most 1.5 s", "kept"),
        ("a\tstall\t1.501\ts\t\t1.5", "at most 1.5 s", "BROKEN"),
        ("a\tshare\t19.9\t%\t20\t80", "20 to 80 %", "BROKEN"),
        ("a\tshare\t20.0\t%\t20\t80", "20 to 80 %", "kept"),
        ("a\terrors\t1\t\t\t0", "at most 0", "BROKEN"),
        ("a\tclients\t200\t\t\t", "", ""),
    ] {
        let figure = figure(line);
        assert_eq!((figure.limit().as_str(), figure.verdict()), (limit, verdict), "{line}");
    }
}

#[test]
fn a_line_that_is_no_figure_is_left_out() {
    for line in ["", "a\tb", "a\tb\tmany\t\t\t", "a\tb\t1\t\t\t\t"] {
        assert_eq!(Figure::read(line), None, "{line:?}");
    }
}

#[test]
fn an_experiment_is_named_once_in_a_table() {
    let figures = [figure("kill\terrors\t3\t\t\t10"), figure("kill\tstall\t1.2\ts\t\t")];
    let text = markdown(&figures, &[("kernel", "6".to_owned())]);
    assert_eq!(
        text,
        "- kernel: 6\n\n| experiment | figure | value | limit | |\n|---|---|---|---|---|\n\
         | kill | errors | 3 | at most 10 | kept |\n|  | stall | 1.2 s |  |  |\n"
    );
    assert_eq!(table(&figures).matches("kill").count(), 1);
}
