//! Metrics as the text that a scraper reads. Which there are, and what they say, is `metrics`' to say.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use metrics::{Family, Kind, Series, Unit, Value};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{self, Registry};

/// A format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's own of before, 0.0.4: what everybody reads.
    Prometheus,
}

impl Format {
    /// By what a request accepts.
    pub(crate) fn among<'a>(mut accepted: impl Iterator<Item = &'a str>) -> Format {
        match accepted.any(|value| value.to_ascii_lowercase().contains("application/openmetrics-text")) {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The whole text.
///
/// # Errors
/// The library has met what it does not write; nothing of ours is such.
pub(crate) fn write(families: Vec<Family>, format: Format) -> Result<String, fmt::Error> {
    let full_name = |family: &Family| family.metric.full_name();
    let counters: HashSet<String> =
        families.iter().filter(|family| family.metric.kind == Kind::Counter).map(full_name).collect();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Told(families)));
    let mut whole = String::new();
    text::encode(&mut whole, &registry)?;
    Ok(match format {
        Format::OpenMetrics => whole,
        Format::Prometheus => as_before(&whole, &counters),
    })
}

/// The same in the older format: a counter's HELP and TYPE name it as its samples do, and neither units nor an end are
/// said. No value can be mistaken for a comment: a line feed in one is escaped.
fn as_before(whole: &str, counters: &HashSet<String>) -> String {
    let mut text = String::with_capacity(whole.len());
    for line in whole.lines() {
        let mut words = line.splitn(4, ' ');
        let comment = (words.next(), words.next(), words.next(), words.next());
        match comment {
            (Some("#"), Some(what @ ("HELP" | "TYPE")), Some(name), Some(rest)) => {
                let total = format!("{name}_total");
                let name = if counters.contains(&total) { total.as_str() } else { name };
                text.extend(["# ", what, " ", name, " ", rest, "\n"]);
            }
            (Some("#"), ..) => {}
            _ => text.extend([line, "\n"]),
        }
    }
    text
}

struct Told(Vec<Family>);

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} metrics", self.0.len())
    }
}

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { metric, series } in &self.0 {
            let unit = metric.unit.map(|unit| match unit {
                Unit::Seconds => registry::Unit::Seconds,
                Unit::Bytes => registry::Unit::Bytes,
            });
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let mut family = encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), kind)?;
            for Series { labels, value } in series {
                if labels.is_empty() {
                    // One value alone: there is no other.
                    number(family, metric.kind, *value)?;
                    break;
                }
                let values = labels.iter().map(|value| escaped(value));
                let labels: Vec<(&str, Cow<'_, str>)> = metric.labels.iter().copied().zip(values).collect();
                number(family.encode_family(&labels)?, metric.kind, *value)?;
            }
        }
        Ok(())
    }
}

fn number(encoder: MetricEncoder<'_>, kind: Kind, value: Value) -> fmt::Result {
    match (kind, value) {
        (Kind::Counter, Value::Count(count)) => ConstCounter::new(count).encode(encoder),
        (Kind::Counter, Value::Real(real)) => ConstCounter::new(real).encode(encoder),
        (Kind::Gauge, Value::Count(count)) => {
            ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX)).encode(encoder)
        }
        (Kind::Gauge, Value::Real(real)) => ConstGauge::new(real).encode(encoder),
    }
}

/// The library writes the values of labels as they are. What would end one, or begin a line, is written as the formats
/// have it.
fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use metrics::{METRICS, PoolTally, Reading};

    use super::*;

    fn text_of(database: &str, format: Format) -> String {
        let pool = PoolTally { database: database.to_owned(), user: "u".to_owned(), ..PoolTally::default() };
        write(metrics::families(&Reading { pools: vec![pool], ..Reading::default() }), format)
            .expect("a text")
    }

    #[test]
    fn a_counter_is_named_as_each_format_wants_it() {
        let open = text_of("d", Format::OpenMetrics);
        let sample = "howdah_pool_sent_bytes_total{database=\"d\",user=\"u\",standby=\"\"} 0\n";
        assert!(
            open.contains("# TYPE howdah_pool_sent_bytes counter\n# UNIT howdah_pool_sent_bytes bytes\n"),
            "{open}"
        );
        assert!(open.contains(sample) && open.ends_with("# EOF\n"), "{open}");
        let plain = text_of("d", Format::Prometheus);
        assert!(plain.contains("# TYPE howdah_pool_sent_bytes_total counter\n"), "{plain}");
        assert!(plain.contains("# TYPE howdah_workers gauge\nhowdah_workers 0\n"), "{plain}");
        assert!(plain.contains(sample) && !plain.contains("# UNIT") && !plain.contains("# EOF"), "{plain}");
        assert_eq!(plain.matches("# HELP ").count(), plain.matches("# TYPE ").count());
        assert!(plain.matches("# HELP ").count() < METRICS.len(), "what has no value is not told");
    }

    #[test]
    fn no_name_can_say_more_than_itself() {
        for format in [Format::OpenMetrics, Format::Prometheus] {
            let whole = text_of("a\"} 1\nhowdah_paused 1\n# \\", format);
            let label = "{database=\"a\\\"} 1\\nhowdah_paused 1\\n# \\\\\",user=\"u\",standby=\"\"}";
            assert!(whole.contains(&format!("howdah_pool_held{label} 0\n")), "{whole}");
            assert_eq!(whole.matches("\nhowdah_paused ").count(), 1, "{whole}");
        }
    }

    #[test]
    fn who_accepts_the_newer_format_gets_it() {
        let among = |values: &[&str]| Format::among(values.iter().copied());
        assert_eq!(
            among(&["application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1"]),
            Format::OpenMetrics
        );
        assert_eq!(among(&["text/plain;version=0.0.4;q=0.3, */*;q=0.1"]), Format::Prometheus);
        assert_eq!(among(&[]), Format::Prometheus);
    }
}
