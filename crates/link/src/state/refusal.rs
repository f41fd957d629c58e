//! The words of a refused statement: which it is, what it would make, and what to do instead.

use sql::state::{Class, Effect, Reason, Statement};

/// So much of a statement is repeated, in bytes.
const TEXT_BYTES_MAX: usize = 64;

/// For the first effect of a statement that is refused.
pub(crate) fn words(statement: &Statement<'_>) -> String {
    let mut found = None;
    statement.each(&mut |effect| {
        if found.is_none() && super::scan::is_refused(&effect) {
            found = Some(about(&effect));
        }
    });
    let (what, instead) = found.unwrap_or(("session state", "a transaction"));
    let text = String::from_utf8_lossy(statement.text);
    let text: String =
        text.chars().take(TEXT_BYTES_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{what} is not allowed here (session_state = refuse): {text}; use {instead}")
}

fn about(effect: &Effect<'_>) -> (&'static str, &'static str) {
    match effect.class() {
        Class::Pins(reason) => {
            let (what, _, instead) = reason.says();
            (what, instead)
        }
        _ => match effect {
            Effect::Prepare { .. } | Effect::Execute(_) => {
                let (what, _, instead) = Reason::Prepared.says();
                (what, instead)
            }
            _ => ("a setting of the session", "SET LOCAL within a transaction, or a startup parameter"),
        },
    }
}
