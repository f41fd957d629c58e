//! How current what a client reads on a standby must be.

use std::fmt;
use std::time::Duration;

/// `consistency` of a database whose reads may go to standbys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// All that the client has written itself is there.
    Session,
    /// All that was committed so long ago is there.
    Bounded(Duration),
    /// It is what some standby has.
    Eventual,
}

impl Consistency {
    pub(crate) fn parse(text: &str) -> Option<Consistency> {
        let text = text.to_ascii_lowercase();
        match text.as_str() {
            "session" => return Some(Consistency::Session),
            "eventual" => return Some(Consistency::Eventual),
            _ => {}
        }
        let inner = text.strip_prefix("bounded")?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
        let milliseconds: u32 = inner.trim().parse().ok()?;
        (milliseconds > 0).then(|| Consistency::Bounded(Duration::from_millis(milliseconds.into())))
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Consistency::Session => f.write_str("session"),
            Consistency::Bounded(most) => write!(f, "bounded({})", most.as_millis()),
            Consistency::Eventual => f.write_str("eventual"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Consistency;
    use std::time::Duration;

    #[test]
    fn what_is_read_is_shown_again() {
        let bounded = Consistency::Bounded(Duration::from_millis(250));
        for (text, value) in [
            ("session", Consistency::Session),
            ("bounded(250)", bounded),
            ("eventual", Consistency::Eventual),
        ] {
            assert_eq!(Consistency::parse(text), Some(value));
            assert_eq!(value.to_string(), text);
        }
        assert_eq!(Consistency::parse("Bounded ( 250 )"), Some(bounded));
        for text in ["", "bounded", "bounded()", "bounded(0)", "bounded(-1)", "bounded(1", "strict"] {
            assert_eq!(Consistency::parse(text), None, "{text}");
        }
    }
}
