//! The words of a refused statement: which it is, what it would make, and what to do instead.

use sql::state::{Effects, Reason};

use super::deed::{Deed, Kinds, Pending};
use crate::by_sql::Names;
use crate::channels::Hears;
use crate::from_client::Pair;

/// So much of a statement is repeated, in characters.
const TEXT_CHARS_MAX: usize = 64;

impl Pair<'_> {
    /// What is said of a portal that may not be run.
    pub(crate) fn refused(&self, effects: &Effects<'_>, values: &[u8], names: &Names) -> Option<String> {
        let pending = self.pending(effects, values, Hears::Any, names);
        words(&pending, effects, self.policy.servers_forget)
    }
}

/// For the first statement that would surely keep its server; nothing if none would.
pub(crate) fn words(pending: &Pending, effects: &Effects<'_>, servers_forget: bool) -> Option<String> {
    let unread = || pending.find(unread_setting).filter(|_| servers_forget);
    let (number, reason) = pins(pending).or_else(unread)?;
    let statement = effects.statements().nth(number)?;
    let text = String::from_utf8_lossy(statement.text);
    let cut: String =
        text.chars().take(TEXT_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let (what, _, instead) = Reason::says(reason);
    let setting = if servers_forget { "server_keeps_session = 0" } else { "session_state = refuse" };
    Some(format!("{what} is not allowed here ({setting}): {cut}; instead: {instead}"))
}

/// A setting whose value only the server knows, that has it.
fn unread_setting(deed: &Deed) -> Option<Reason> {
    let is_unread = match deed {
        Deed::Ask(_) => true,
        Deed::Doubt(kinds) => *kinds == Kinds::SETTINGS,
        _ => false,
    };
    is_unread.then_some(Reason::UnreadSetting)
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
