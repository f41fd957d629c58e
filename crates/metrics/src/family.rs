//! Metrics, and the values that one of them has: as many as there are sets of labels, within a limit.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use crate::reading::Reading;
use crate::table::METRICS;

/// So many values a metric has at most; what is beyond is left out and counted.
pub const SERIES_MAX: usize = 5_000;
/// Bytes of a label's value that are kept.
pub const LABEL_BYTES_MAX: usize = 128;

/// How a number moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Up alone, from when the process started or what it is about came to be.
    Counter,
    /// Up and down.
    Gauge,
}

/// What a number counts, where it is no plain count: part of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Seconds,
    Bytes,
}

impl Unit {
    /// As in the name.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Seconds => "seconds",
            Unit::Bytes => "bytes",
        }
    }
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole one.
    Count(u64),
    /// One with a fraction: seconds.
    Real(f64),
}

impl Value {
    /// Yes or no.
    pub(crate) fn flag(is_so: bool) -> Value {
        Value::Count(u64::from(is_so))
    }

    /// In seconds.
    pub(crate) fn seconds(duration: Duration) -> Value {
        Value::Real(duration.as_secs_f64())
    }

    /// In seconds, of what was counted in microseconds.
    pub(crate) fn micros(count: u64) -> Value {
        Value::Real(count as f64 / 1e6)
    }

    fn plus(self, other: Value) -> Value {
        match (self, other) {
            (Value::Count(one), Value::Count(other)) => Value::Count(one.saturating_add(other)),
            (one, other) => Value::Real(one.real() + other.real()),
        }
    }

    fn real(self) -> f64 {
        match self {
            Value::Count(count) => count as f64,
            Value::Real(real) => real,
        }
    }
}

/// One line of the table.
pub struct Metric {
    /// Without the unit and `_total`.
    pub name: &'static str,
    /// What it counts.
    pub unit: Option<Unit>,
    /// How it moves.
    pub kind: Kind,
    /// In a sentence.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Puts its values in.
    pub(crate) read: fn(&Reading, &mut Samples),
}

impl Metric {
    /// The name that its samples have.
    pub fn full_name(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{}", unit.word())).unwrap_or_default();
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{unit}{total}", self.name)
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The values of the labels, in the order of their names.
    pub labels: Vec<String>,
    /// The number.
    pub value: Value,
}

/// A metric and its values.
pub struct Family {
    /// Which.
    pub metric: &'static Metric,
    /// No two have the same labels.
    pub series: Vec<Series>,
}

/// Collects the values of one metric.
#[derive(Default)]
pub(crate) struct Samples {
    by_labels: BTreeMap<Vec<String>, Value>,
    left_out: u64,
}

impl Samples {
    /// One more value; if these labels have one already, the sum of both.
    pub(crate) fn add<const N: usize>(&mut self, labels: [&str; N], value: Value) {
        let labels = labels.map(cut).to_vec();
        let is_full = self.by_labels.len() >= SERIES_MAX;
        match self.by_labels.entry(labels) {
            Entry::Occupied(mut entry) => {
                let sum = entry.get().plus(value);
                entry.insert(sum);
            }
            Entry::Vacant(_) if is_full => self.left_out += 1,
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
        }
    }
}

/// Within the limit, and cut between two characters.
fn cut(text: &str) -> String {
    let end = (0..=LABEL_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].to_owned()
}

/// The values of all metrics that have any.
pub fn families(reading: &Reading) -> Vec<Family> {
    let mut left_out = 0;
    let mut families = Vec::with_capacity(METRICS.len());
    for metric in METRICS {
        let mut samples = Samples::default();
        (metric.read)(reading, &mut samples);
        left_out += samples.left_out;
        let series = samples.by_labels.into_iter().map(|(labels, value)| Series { labels, value });
        families.push(Family { metric, series: series.collect() });
    }
    for family in families.iter_mut().filter(|family| family.metric.name == crate::table::LEFT_OUT) {
        family.series = vec![Series { labels: Vec::new(), value: Value::Count(left_out) }];
    }
    families.retain(|family| !family.series.is_empty());
    families
}
