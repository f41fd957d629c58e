//! A chart's axes: where a figure stands on them, which lines they have, and how figures are written.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use std::ops::Range;

/// An axis that has its lines where it is told, not where plotters would put them.
pub struct Axis {
    /// The places it reaches over.
    pub range: Range<f64>,
    /// The places of its lines.
    pub ticks: Vec<f64>,
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range.clone()).map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// Linear from zero, or logarithmic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    Linear { max: f64 },
    Logarithmic { min: f64, max: f64 },
}

/// Lines of an axis, about.
const TICKS: f64 = 5.0;

impl Scale {
    /// From zero to a little more than that.
    pub fn linear(max: f64) -> Scale {
        Scale::Linear { max: if max > 0.0 { max * 1.06 } else { 1.0 } }
    }

    /// From a little less to a little more; both above zero. At least a factor of 4, so that it has lines
    /// and figures that are all but the same look so.
    pub fn logarithmic(min: f64, max: f64) -> Scale {
        let margin = (4.0 * min / max).sqrt().max(1.3);
        Scale::Logarithmic { min: min / margin, max: max * margin }
    }

    /// The place of a figure.
    pub fn at(self, value: f64) -> f64 {
        match self {
            Scale::Linear { .. } => value,
            Scale::Logarithmic { min, .. } => value.max(min).log10(),
        }
    }

    /// The places it reaches over.
    pub fn range(self) -> Range<f64> {
        match self {
            Scale::Linear { max } => 0.0..max,
            Scale::Logarithmic { min, max } => min.log10()..max.log10(),
        }
    }

    /// The places of its lines.
    pub fn ticks(self) -> Vec<f64> {
        match self {
            Scale::Linear { max } => {
                let step = round_step(max / TICKS);
                (0..=(max / step) as u32).map(|number| f64::from(number) * step).collect()
            }
            Scale::Logarithmic { min, max } => {
                let decades = min.log10().floor() as i32..=max.log10().ceil() as i32;
                let steps: &[f64] = if max / min > 200.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let values =
                    decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
                values.filter(|value| (min..=max).contains(value)).map(f64::log10).collect()
            }
        }
    }

    /// The words at a place.
    pub fn label(self, at: f64) -> String {
        let value = if matches!(self, Scale::Linear { .. }) { at } else { 10f64.powf(at) };
        short(value)
    }
}

/// The next of 1, 2, 5, 10, 20 and so on.
fn round_step(step: f64) -> f64 {
    let decade = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0].iter().map(|factor| factor * decade).find(|&round| round >= step).unwrap_or(10.0 * decade)
}

/// Like 30k, 150, 2.5 or 0.05.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e4 => (value / 1e3, "k"),
        value => (value, ""),
    };
    // Steps of an axis have one digit that matters; powers bring a little dust.
    let digits =
        if value > 0.0 && value < 9.99 { (1 - value.log10().floor() as i32).max(0) as usize } else { 0 };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

/// With its thousands apart, like 31,098.
pub fn grouped(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.find('.').map_or((text.as_str(), ""), |at| text.split_at(at));
    let mut out = String::new();
    for (number, digit) in whole.chars().enumerate() {
        let left = whole.len() - number;
        if number > 0 && left.is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests;
