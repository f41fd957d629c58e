//! What went wrong under a load, counted, by SQLSTATE where one is known, with the first words about it.
//! pgbench and sysbench print messages without their SQLSTATE, so those that matter are known by heart.

use std::collections::BTreeMap;

/// What went wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trouble {
    /// How often.
    pub count: u64,
    /// The first time's text.
    pub first: Option<String>,
    /// How often each SQLSTATE came; what has none is counted under a word: `closed`, `hung`, `unknown`.
    pub by_state: BTreeMap<String, u64>,
}

impl Trouble {
    /// Counts one more.
    pub fn add(&mut self, text: impl FnOnce() -> String) {
        let text = text();
        self.count += 1;
        *self.by_state.entry(state(&text).to_owned()).or_default() += 1;
        self.first.get_or_insert(text);
    }

    /// Counts all of another.
    pub fn merge(&mut self, other: Trouble) {
        self.count += other.count;
        self.first = self.first.take().or(other.first);
        for (state, count) in other.by_state {
            *self.by_state.entry(state).or_default() += count;
        }
    }
}

/// A part of a message, and what it means. PgBouncer's own errors are 08P01, whatever their cause.
const KNOWN: [(&str, &str); 24] = [
    ("too many clients already", "53300"),
    ("remaining connection slots", "53300"),
    ("too many connections for", "53300"),
    ("no more connections allowed", "08P01"),
    ("query_wait_timeout", "08P01"),
    ("server login has been failing", "08P01"),
    ("pgbouncer cannot connect", "08P01"),
    ("client_login_timeout", "08P01"),
    ("prepared statement", "26000"),
    ("password authentication failed", "28P01"),
    ("no pg_hba.conf entry", "28000"),
    ("permission denied", "42501"),
    ("deadlock detected", "40P01"),
    ("could not serialize", "40001"),
    ("the database system is starting up", "57P03"),
    ("terminating connection due to administrator", "57P01"),
    ("canceling statement due to", "57014"),
    ("out of shared memory", "53200"),
    ("does not exist", "42P01"),
    ("hung", "hung"),
    ("not logged in within the limit", "hung"),
    ("no reply within the limit", "hung"),
    ("server closed the connection", "closed"),
    ("closed", "closed"),
];

/// The SQLSTATE at the head of the text, or the one its words are known for.
pub fn state(text: &str) -> &str {
    let head = text.split_once(' ').map_or(text, |(head, _)| head);
    let is_state = |word: &str| {
        let letters = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase();
        word.len() == 5 && word.chars().all(letters) && word.contains(|c: char| c.is_ascii_digit())
    };
    if is_state(head) {
        return head;
    }
    let lower = text.to_ascii_lowercase();
    KNOWN.iter().find(|(words, _)| lower.contains(words)).map_or("unknown", |(_, state)| state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(state(text), expected, "{text}");
    }

    #[test]
    fn a_state_at_the_head_is_taken_as_it_is() {
        check("08P01 no more connections allowed (max_client_conn)", "08P01");
        check("53300 anything", "53300");
    }

    #[test]
    fn messages_of_pgbench_are_known_by_heart() {
        check(
            "connection to server at \"127.0.0.1\", port 1 failed: FATAL:  sorry, too many clients already",
            "53300",
        );
        check("client 3 aborted: ERROR:  prepared statement \"P0_1\" does not exist", "26000");
        check("pgbench hung: killed after 9 s", "hung");
        check("client 1 aborted: server closed the connection unexpectedly", "closed");
        check("ERROR:  something else", "unknown");
    }

    #[test]
    fn troubles_add_up() {
        let mut one = Trouble::default();
        one.add(|| "53300 full".to_owned());
        let mut two = Trouble::default();
        two.add(|| "53300 full again".to_owned());
        two.add(|| "57014 canceled".to_owned());
        one.merge(two);
        assert_eq!((one.count, one.first.as_deref()), (3, Some("53300 full")));
        assert_eq!(one.by_state, [("53300".to_owned(), 2), ("57014".to_owned(), 1)].into());
    }
}
