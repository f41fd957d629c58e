//! A number that may be given as a part of another: `10` or `50%`.

use std::fmt;

use crate::value::whole;

/// How many of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// So many; 0 is no limit.
    Count(u32),
    /// So many in a hundred, from 1 to 100.
    Percent(u8),
}

impl Share {
    pub(crate) fn parse(text: &str) -> Option<Share> {
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent = whole(percent.trim_end()).filter(|n| (1..=100).contains(n))?;
                u8::try_from(percent).ok().map(Share::Percent)
            }
            None => {
                let count = whole(text).filter(|n| (0..=i64::from(i32::MAX)).contains(n))?;
                u32::try_from(count).ok().map(Share::Count)
            }
        }
    }

    /// The number, of so many in all; `None` is no limit. A part of something is never nothing.
    pub fn of(self, all: Option<u32>) -> Option<u32> {
        match (self, all) {
            (Share::Count(count), _) => (count > 0).then_some(count),
            (Share::Percent(_), None) => None,
            (Share::Percent(percent), Some(all)) => {
                // At most `all`.
                let part = u64::from(all) * u64::from(percent) / 100;
                Some((part as u32).max(1))
            }
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Count(count) => write!(f, "{count}"),
            Share::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}
