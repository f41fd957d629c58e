//! The words of a refused statement: which it is, what it would make, and what to do instead.

use sql::state::{Effects, Reason};

use super::deed::{Deed, Kinds, Pending};

/// So much of a statement is repeated, in characters.
const TEXT_CHARS_MAX: usize = 64;

/// For the first statement that would surely keep its server; nothing if none would.
pub(crate) fn words(pending: &Pending, effects: &Effects<'_>) -> Option<String> {
    let (number, reason) = pins(pending)?;
    let statement = effects.statements().nth(number)?;
    let text = String::from_utf8_lossy(statement.text);
    let cut: String =
        text.chars().take(TEXT_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let (what, _, instead) = Reason::says(reason);
    Some(format!("{what} is not allowed here (session_state = refuse): {cut}; instead: {instead}"))
}

/// The first that will surely keep its server, with the number of its statement.
pub(crate) fn pins(pending: &Pending) -> Option<(usize, Reason)> {
    pending.find(|deed| match deed {
        Deed::Pin(reason) => Some(*reason),
        // What may do anything is let through, and the server is asked what it did.
        Deed::Doubt(kinds) if !kinds.is_anything() => {
            Kinds::REASONS.iter().find(|(kind, _)| kinds.has(*kind)).map(|(_, reason)| *reason)
        }
        _ => None,
    })
}
