//! Latencies counted in buckets that grow with the value: below 1% wide, a fixed size, cheap to add to.

use std::time::Duration;

const STEPS_BITS: u32 = 7;
const STEPS: u64 = 1 << STEPS_BITS;
/// Up to 2^42 ns, more than an hour; anything longer counts as that.
const BUCKETS: usize = (STEPS as usize) * (42 - STEPS_BITS as usize + 1);

/// The percentiles a report shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Percentiles {
    /// Half are faster.
    pub p50: Duration,
    /// 9 of 10 are faster.
    pub p90: Duration,
    /// 99 of 100 are faster.
    pub p99: Duration,
    /// 999 of 1000 are faster.
    pub p999: Duration,
    /// The slowest.
    pub max: Duration,
}

/// Counts durations.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Vec<u32>,
    count: u64,
    max: Duration,
    sum: f64,
    squares: f64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: vec![0; BUCKETS], count: 0, max: Duration::ZERO, sum: 0.0, squares: 0.0 }
    }
}

impl Histogram {
    /// Counts one.
    pub fn add(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
        self.max = self.max.max(duration);
        self.sum += duration.as_secs_f64();
        self.squares += duration.as_secs_f64().powi(2);
    }

    /// Counts all of another.
    pub fn merge(&mut self, other: &Histogram) {
        for (into, from) in self.buckets.iter_mut().zip(&other.buckets) {
            *into += from;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, if anything was counted.
    pub fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_secs_f64(self.sum / self.count as f64))
    }

    /// The standard deviation, if anything was counted.
    pub fn deviation(&self) -> Option<Duration> {
        let mean = self.mean()?.as_secs_f64();
        let variance = self.squares / self.count as f64 - mean.powi(2);
        Some(Duration::from_secs_f64(variance.max(0.0).sqrt()))
    }

    /// Its percentiles, if anything was counted.
    pub fn percentiles(&self) -> Option<Percentiles> {
        (self.count > 0).then(|| Percentiles {
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            max: self.max,
        })
    }

    fn quantile(&self, share: f64) -> Duration {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted {
                return Duration::from_nanos(middle(index)).min(self.max);
            }
        }
        self.max
    }
}

fn bucket(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEPS_BITS;
    let index = u64::from(shift + 1) * STEPS + ((nanos >> shift) - STEPS);
    (index as usize).min(BUCKETS - 1)
}

fn middle(index: usize) -> u64 {
    let index = index as u64;
    if index < STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    let low = (STEPS + index % STEPS) << shift;
    low + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests;
