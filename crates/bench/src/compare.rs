//! Two reports side by side: what changed beyond noise, load by load and target by target.
//!
//! Rounds that do not overlap are not enough. Of two runs of three rounds, one unchanged figure in ten has its
//! rounds apart by chance, and machines differ from one minute to the next: of four runs of the same binaries, five
//! rounds each, on a machine that others used as well, every run compared with every other, 22 figures of 192 had
//! theirs apart. So a change must also be larger than the *control*: the furthest that any two rounds of relay or
//! direct lie apart, of both runs together, in the same figure under the same load. Their code is the same, so what
//! they differ by is the machine's. Of those 192 figures one was then still claimed, a p99, and nearly all others
//! were too noisy to tell: what such a machine can show.
//!
//! Not compared: p99.9, which rests on a few transactions a round, and the peak of memory, which rests on
//! the order of the loads.

use crate::report::Report;
use crate::summary::{self, NOISE_MAX, Row, Section, Spread};

mod settings;
mod text;

pub use text::text;

/// What became of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Beyond noise, in the wrong direction.
    Worse,
    /// Beyond noise, in the right direction.
    Better,
    /// Nothing, and a change worth its name would have been seen.
    Same,
    /// A change may be there or not.
    TooNoisy,
    /// Its rounds are too few to have an opinion.
    TooFewRounds,
}

/// One figure of one target under one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The load.
    pub title: String,
    /// The target.
    pub target: String,
    /// The figure's name with its unit.
    pub figure: &'static str,
    /// In the first report, as words.
    pub before: String,
    /// In the second.
    pub after: String,
    /// By how much it grew, as a share, where that can be said.
    pub growth: Option<f64>,
    /// How much would have counted.
    pub needed: f64,
    /// What is to be said of it.
    pub verdict: Verdict,
}

/// All that two reports say together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// How many rounds each had.
    pub rounds: (usize, usize),
    /// How the runs differ in what should be alike.
    pub warnings: Vec<String>,
    /// Every figure that both have.
    pub changes: Vec<Change>,
    /// What only one of them has.
    pub unpaired: Vec<String>,
}

impl Comparison {
    /// How many figures were found to be that.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.changes.iter().filter(|change| change.verdict == verdict).count()
    }
}

/// A figure that is compared.
struct Figure {
    name: &'static str,
    pick: fn(&Row) -> Option<Spread>,
    factor: f64,
    digits: usize,
    more_is_better: bool,
    /// A smaller change is not worth a word, on the quietest machine.
    least: f64,
    /// Counted, not timed: one measurement tells, and no control is needed.
    counted: bool,
}

/// Of a figure that is timed: what another layout of the same code in memory may bring.
const LEAST: f64 = 0.05;
/// Of a tail.
const LEAST_OF_TAIL: f64 = 0.10;
/// Where neither relay nor direct was run twice, the machine is not known to be better than this.
const WITHOUT_CONTROL: f64 = NOISE_MAX;
/// Fewer rounds than this have no spread to speak of.
const ROUNDS_MIN: usize = 3;

const TIMED: Figure = Figure {
    name: "",
    pick: |_| None,
    factor: 1.0,
    digits: 0,
    more_is_better: false,
    least: LEAST,
    counted: false,
};

const FIGURES: [Figure; 7] = [
    Figure { name: "tps", pick: |row| row.tps, more_is_better: true, ..TIMED },
    Figure { name: "MB/s", pick: |row| row.bytes_per_second, factor: 1e-6, more_is_better: true, ..TIMED },
    Figure { name: "p50 ms", pick: |row| row.p50_s, factor: 1e3, digits: 3, ..TIMED },
    Figure { name: "p99 ms", pick: |row| row.p99_s, factor: 1e3, digits: 3, least: LEAST_OF_TAIL, ..TIMED },
    Figure { name: "connect ms", pick: |row| row.connect_s, factor: 1e3, digits: 3, ..TIMED },
    Figure { name: "CPU s/1000", pick: |row| row.cpu_s_per_1000, digits: 4, ..TIMED },
    Figure { name: "B/client", pick: |row| row.bytes_per_client, least: 0.10, counted: true, ..TIMED },
];

/// Compares the second report with the first.
pub fn compare(before: &Report, after: &Report) -> Comparison {
    let (old, new) = (summary::sections(before), summary::sections(after));
    // The first form of the file has no titles of its own.
    let by_word = before.format < 2 || after.format < 2;
    let alike = |one: &Section, two: &Section| {
        if by_word { (&one.load, one.clients) == (&two.load, two.clients) } else { one.title == two.title }
    };
    let rounds = (before.rounds, after.rounds);
    let mut comparison =
        Comparison { rounds, warnings: settings::warnings(before, after), ..Comparison::default() };
    let mut controlled = true;
    for section in &new {
        let Some(earlier) = old.iter().find(|earlier| alike(earlier, section)) else {
            comparison.unpaired.push(format!("{}: only in the second", section.title));
            continue;
        };
        controlled &= control(earlier, section, |row| row.tps.or(row.bytes_per_client)).is_some();
        targets(earlier, section, &mut comparison);
    }
    let gone = old.iter().filter(|earlier| !new.iter().any(|section| alike(earlier, section)));
    comparison.unpaired.extend(gone.map(|earlier| format!("{}: only in the first", earlier.title)));
    if !controlled {
        comparison.warnings.push(format!(
            "some loads were not run with relay or direct in both: there a drift of the machine looks like a change, \
             and less than {:.0}% is not told",
            WITHOUT_CONTROL * 100.0
        ));
    }
    comparison
}

fn targets(before: &Section, after: &Section, comparison: &mut Comparison) {
    for row in after.rows.iter().filter(|row| !row.is_control()) {
        match before.row(&row.target) {
            Some(earlier) => figures((before, earlier), (after, row), comparison),
            None => {
                comparison.unpaired.push(format!("{}, {}: only in the second", after.title, row.target));
            }
        }
    }
    let gone = before.rows.iter().filter(|row| !row.is_control() && after.row(&row.target).is_none());
    comparison
        .unpaired
        .extend(gone.map(|row| format!("{}, {}: only in the first", before.title, row.target)));
}

fn figures((old, before): (&Section, &Row), (new, after): (&Section, &Row), comparison: &mut Comparison) {
    let change = |verdict| Change {
        title: new.title.clone(),
        target: after.target.clone(),
        figure: "errors",
        before: words_of(before),
        after: words_of(after),
        growth: None,
        needed: 0.0,
        verdict,
    };
    // A target that drops clients is cheap and fast: that it does so is all there is to compare.
    match (before.is_sound(), after.is_sound()) {
        (true, true) => {
            let found = FIGURES.iter().filter_map(|figure| judged(figure, (old, before), (new, after)));
            comparison.changes.extend(found);
        }
        (true, false) => comparison.changes.push(change(Verdict::Worse)),
        (false, true) => comparison.changes.push(change(Verdict::Better)),
        (false, false) => comparison.changes.push(change(Verdict::TooNoisy)),
    }
}

fn words_of(row: &Row) -> String {
    if row.is_measured() { row.errors.to_string() } else { "no figures".to_owned() }
}

impl Row {
    /// Whether it has figures, and they are of clients that were all served.
    fn is_sound(&self) -> bool {
        self.is_measured() && self.errors == 0
    }
}

fn judged(
    figure: &Figure,
    (old, before): (&Section, &Row),
    (new, after): (&Section, &Row),
) -> Option<Change> {
    let (was, is) = ((figure.pick)(before)?, (figure.pick)(after)?);
    if was.median <= 0.0 || is.median <= 0.0 {
        return None;
    }
    let noise = if figure.counted { 0.0 } else { control(old, new, figure.pick).unwrap_or(WITHOUT_CONTROL) };
    let needed = figure.least.max(noise);
    let grown = is.median > was.median;
    let verdict = if !figure.counted && before.rounds.min(after.rounds) < ROUNDS_MIN {
        Verdict::TooFewRounds
    } else if apart(was.median, is.median) > needed && !was.overlaps(&is) {
        if grown == figure.more_is_better { Verdict::Better } else { Verdict::Worse }
    } else if needed <= NOISE_MAX
        && was.width().max(is.width()) <= NOISE_MAX
        && apart(was.median, is.median) <= needed
    {
        Verdict::Same
    } else {
        Verdict::TooNoisy
    };
    let words = |spread| crate::table::ranged(Some(spread), figure.factor, figure.digits);
    Some(Change {
        title: new.title.clone(),
        target: after.target.clone(),
        figure: figure.name,
        before: words(was),
        after: words(is),
        growth: Some(is.median / was.median - 1.0),
        needed,
        verdict,
    })
}

/// How far two figures are apart, as a share of the smaller: the same in both directions.
fn apart(one: f64, two: f64) -> f64 {
    one.max(two) / one.min(two) - 1.0
}

/// The furthest that any two rounds of a control lie apart, of both runs together.
fn control(old: &Section, new: &Section, pick: fn(&Row) -> Option<Spread>) -> Option<f64> {
    let of_row = |row: &Row| {
        let (was, is) = (pick(old.row(&row.target)?)?, pick(row)?);
        let least = was.min.min(is.min);
        (least > 0.0).then(|| apart(least, was.max.max(is.max)))
    };
    new.rows.iter().filter(|row| row.is_control()).filter_map(of_row).reduce(f64::max)
}

#[cfg(test)]
mod tests;
