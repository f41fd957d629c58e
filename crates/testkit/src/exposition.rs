//! A strict reader of metrics as text, in OpenMetrics 1.0 and in the older format: what it takes, every scraper takes.
//!
//! Written by hand on purpose: a second opinion on what the pooler's library writes.

use std::collections::{BTreeMap, BTreeSet};

/// One value: its labels and the number.
pub type Sample = (BTreeMap<String, String>, f64);

/// The samples by their names.
#[derive(Debug, Default)]
pub struct Exposition {
    pub samples: BTreeMap<String, Vec<Sample>>,
    types: BTreeMap<String, String>,
}

impl Exposition {
    /// The values of those that have these labels, among others.
    pub fn find(&self, name: &str, labels: &[(&str, &str)]) -> Vec<f64> {
        let has = |sample: &&Sample| {
            labels.iter().all(|(name, value)| sample.0.get(*name).is_some_and(|is| is == value))
        };
        self.samples.get(name).into_iter().flatten().filter(has).map(|sample| sample.1).collect()
    }

    /// The sum of those.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.find(name, labels).iter().sum()
    }

    /// Whether this is a counter, by its TYPE.
    pub fn is_counter(&self, name: &str) -> bool {
        let family = name.strip_suffix("_total").unwrap_or(name);
        [name, family].iter().any(|name| self.types.get(*name).is_some_and(|kind| kind == "counter"))
    }
}

/// Reads all of it, or says what is wrong with it.
pub fn parse(text: &str, is_open_metrics: bool) -> Result<Exposition, String> {
    let text = match (text.strip_suffix("# EOF\n"), is_open_metrics) {
        (Some(text), true) => text,
        (None, false) => text,
        _ => return Err("the end is not what its format has".to_owned()),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line is not whole".to_owned());
    }
    let mut reader = Reader { is_open_metrics, ..Reader::default() };
    for (number, line) in text.lines().enumerate() {
        reader.line(line).map_err(|fault| format!("line {}: {fault}: {line:?}", number + 1))?;
    }
    reader.end_family()?;
    Ok(reader.told)
}

#[derive(Default)]
struct Reader {
    is_open_metrics: bool,
    told: Exposition,
    /// The families that are over.
    over: BTreeSet<String>,
    family: String,
    kind: Option<String>,
    has_help: bool,
    count: usize,
    seen: BTreeSet<(String, BTreeMap<String, String>)>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let Some(comment) = line.strip_prefix("# ") else { return self.sample(line) };
        let mut words = comment.splitn(3, ' ');
        let (Some(what), Some(name), Some(rest)) = (words.next(), words.next(), words.next()) else {
            return Err("a comment that says nothing".to_owned());
        };
        if !is_name(name, true) {
            return Err("no name of a metric".to_owned());
        }
        match what {
            "HELP" => {
                self.end_family()?;
                if !self.over.insert(name.to_owned()) {
                    return Err("the family was there before".to_owned());
                }
                (self.family, self.has_help) = (name.to_owned(), true);
                let is_whole = !rest.is_empty() && !rest.contains(['"', '\\']);
                is_whole.then_some(()).ok_or("a help that would have to be escaped".to_owned())
            }
            "TYPE" if name == self.family && self.has_help && self.kind.is_none() => {
                if !["counter", "gauge"].contains(&rest) {
                    return Err("an unknown type".to_owned());
                }
                if !self.is_open_metrics && (rest == "counter") != name.ends_with("_total") {
                    return Err("a counter is what ends in _total".to_owned());
                }
                self.told.types.insert(name.to_owned(), rest.to_owned());
                self.kind = Some(rest.to_owned());
                Ok(())
            }
            "UNIT"
                if self.is_open_metrics && name == self.family && self.kind.is_some() && self.count == 0 =>
            {
                let ends = name.ends_with(&format!("_{rest}"));
                ends.then_some(()).ok_or("a unit that is not in the name".to_owned())
            }
            _ => Err("out of its place".to_owned()),
        }
    }

    fn end_family(&mut self) -> Result<(), String> {
        let is_whole = self.family.is_empty() || (self.kind.is_some() && self.count > 0);
        (self.family, self.kind, self.count, self.has_help) = (String::new(), None, 0, false);
        is_whole.then_some(()).ok_or("a family without a type or a sample".to_owned())
    }

    fn sample(&mut self, line: &str) -> Result<(), String> {
        let kind = self.kind.as_deref().ok_or("a sample of no family")?;
        let at = line.find(['{', ' ']).ok_or("no value")?;
        let (name, mut rest) = line.split_at(at);
        let wanted = match (kind, self.is_open_metrics) {
            ("counter", true) => format!("{}_total", self.family),
            _ => self.family.clone(),
        };
        if name != wanted {
            return Err(format!("not of the family {}", self.family));
        }
        let mut labels = BTreeMap::new();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = read_labels(inner, &mut labels)?;
        }
        let number = rest.strip_prefix(' ').ok_or("no blank before the value")?;
        let value: f64 = number.parse().map_err(|_| "no number".to_owned())?;
        if !value.is_finite() || (kind == "counter" && value < 0.0) {
            return Err("not a number that there could be".to_owned());
        }
        if !self.seen.insert((name.to_owned(), labels.clone())) {
            return Err("the same labels twice".to_owned());
        }
        self.count += 1;
        self.told.samples.entry(name.to_owned()).or_default().push((labels, value));
        Ok(())
    }
}

/// What is behind the closing brace.
fn read_labels<'a>(mut rest: &'a str, labels: &mut BTreeMap<String, String>) -> Result<&'a str, String> {
    loop {
        let (name, behind) = rest.split_once("=\"").ok_or("no label")?;
        if !is_name(name, false) {
            return Err(format!("{name:?} is no label's name"));
        }
        let mut value = String::new();
        let mut characters = behind.char_indices();
        let end = loop {
            match characters.next().ok_or("a value that does not end")? {
                (at, '"') => break at + 1,
                (_, '\\') => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, character @ ('"' | '\\'))) => value.push(character),
                    _ => return Err("an escape that there is not".to_owned()),
                },
                (_, character) => value.push(character),
            }
        };
        if labels.insert(name.to_owned(), value).is_some() {
            return Err(format!("{name} twice"));
        }
        match behind[end..].split_at_checked(1) {
            Some((",", next)) => rest = next,
            Some(("}", next)) => return Ok(next),
            _ => return Err("labels that do not end".to_owned()),
        }
    }
}

fn is_name(name: &str, takes_colons: bool) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || (takes_colons && byte == b':');
    !name.is_empty() && name.bytes().all(is_part) && !name.as_bytes()[0].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_is_read() {
        let open = "# HELP a_bytes Of it.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\na_bytes_total{l=\"x\\\"\\n\"} 3\n\
                    a_bytes_total{l=\"y\"} 1.5\n# EOF\n";
        let told = parse(open, true).expect("right");
        assert_eq!(told.find("a_bytes_total", &[("l", "x\"\n")]), [3.0]);
        assert!(told.sum("a_bytes_total", &[]) == 4.5 && told.is_counter("a_bytes_total"));
        assert!(parse("# HELP a_total Of it.\n# TYPE a_total counter\na_total 1\n", false).is_ok());
    }

    #[test]
    fn what_is_wrong_is_found() {
        let head = "# HELP a Of it.\n# TYPE a gauge\n";
        for bad in [
            "a 1\n",
            head,
            &format!("{head}a 1"),
            &format!("{head}b 1\n"),
            &format!("{head}a_total 1\n"),
            &format!("{head}a 1\na 2\n"),
            &format!("{head}a{{l=\"x\",l=\"y\"}} 2\n"),
            &format!("{head}a{{l=\"x\\q\"}} 2\n"),
            &format!("{head}a{{l=\"x}} 2\n"),
            &format!("{head}a{{}} 2\n"),
            &format!("{head}a NaN\n"),
            &format!("{head}a 1\n\n"),
            &format!("{head}a 1\n{head}a{{l=\"x\"}} 2\n"),
            "# HELP a Of it.\n# TYPE a counter\na 1\n",
            "# TYPE a gauge\na 1\n",
        ] {
            assert!(parse(bad, false).is_err(), "{bad}");
            assert!(parse(&format!("{bad}# EOF\n"), true).is_err(), "{bad}");
        }
    }
}
