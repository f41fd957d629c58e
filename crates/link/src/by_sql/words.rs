//! Errors in the client's own words: its names where the server says its own, and places in the text that it wrote.

use server::{Entry, Owed};
use wire::encode;

use crate::from_server::Ear;
use crate::prepared::SERVER_NAME_PREFIX;

/// A piece of a text that another stands for, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shift {
    /// Where it begins in the text of the client.
    pub(crate) from: usize,
    /// How long it was.
    pub(crate) was: usize,
    /// How long it is.
    pub(crate) is: usize,
}

/// A place in the server's text, in the client's; both count from 1.
fn place(shifts: &[Shift], place: usize) -> usize {
    let mut moved = 0_isize;
    for shift in shifts {
        let start = shift.from.wrapping_add_signed(moved);
        if place <= start {
            break;
        }
        if place <= start + shift.is {
            return shift.from + 1;
        }
        moved += shift.is as isize - shift.was as isize;
    }
    place.saturating_add_signed(-moved)
}

/// More of an error is not kept, in bytes.
const EXCUSE_BYTES_MAX: usize = 8 << 10;

impl Ear<'_> {
    /// Something of ours has failed. If it was needed for a query, that fails next, and the client is told this.
    #[cold]
    pub(crate) fn keep_excuse(&mut self, body: &[u8]) {
        // Our Sync is at the front, and behind it what it was for.
        let next = self.server.ledger.iter().nth(1);
        let is_needed = next.is_some_and(|next| next.marks.renamed && next.owed == Owed::Query);
        if let Some(Some(state)) = &mut self.state
            && is_needed
            && body.len() <= EXCUSE_BYTES_MAX
        {
            state.excuse = Some(body.into());
        }
    }

    /// An error that goes to the client, if it is to hear other words. True if it has.
    #[cold]
    pub(crate) fn says_otherwise(&mut self, body: &[u8], code: &str, front: Entry) -> bool {
        if front.marks.renamed
            && let Some(Some(state)) = &mut self.state
            && let Some(excuse) = state.excuse.take()
            && matches!(code, wire::sqlstate::INVALID_SQL_STATEMENT_NAME | "25P02")
        {
            // Its place in a text of ours means nothing to the client.
            let fields = excuse.split(|&byte| byte == 0).filter(|field| !matches!(field, [] | [b'P', ..]));
            let fields = fields.flat_map(|field| [field, &[0]]).flatten().copied().chain([0]);
            self.out.to_client.make(|bytes| {
                encode::message(bytes, wire::server::tag::ERROR_RESPONSE, |bytes| bytes.extend(fields))
            });
            return true;
        }
        let is_moved = front.marks.renamed;
        let is_ours = body.windows(SERVER_NAME_PREFIX.len() + 1).any(is_quoted_name);
        let ends = body.ends_with(&[0, 0]);
        if !(is_moved || is_ours) || !ends || self.client.is_none() {
            return false;
        }
        let mut fields = Vec::with_capacity(body.len() + 64);
        for field in body[..body.len() - 2].split(|&byte| byte == 0) {
            match field {
                [b'P', digits @ ..] if is_moved => {
                    let at = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                    let shifts = self.state.as_ref().and_then(|state| state.as_ref());
                    let shifts = shifts.map_or(&[][..], |state| &state.shifts);
                    fields.push(b'P');
                    match at {
                        Some(at) => fields.extend(place(shifts, at).to_string().into_bytes()),
                        None => fields.extend_from_slice(digits),
                    }
                }
                [b'M' | b'D' | b'H' | b'W', ..] if is_ours => self.rename(field, &mut fields),
                _ => fields.extend_from_slice(field),
            }
            fields.push(0);
        }
        fields.push(0);
        self.out.to_client.make(|bytes| {
            encode::message(bytes, wire::server::tag::ERROR_RESPONSE, |bytes| {
                bytes.extend_from_slice(&fields)
            })
        });
        true
    }

    /// The text with the client's names.
    fn rename(&self, text: &[u8], out: &mut Vec<u8>) {
        let mut at = 0;
        while at < text.len() {
            let here = &text[at..];
            if is_quoted_name(here)
                && let Some(end) = here[1..].iter().position(|&byte| byte == b'"')
                && let Some(name) = self.client_name(&here[1..=end])
            {
                out.push(b'"');
                out.extend_from_slice(name);
                at += 1 + end;
            } else {
                out.push(text[at]);
                at += 1;
            }
        }
    }

    fn client_name(&self, server_name: &[u8]) -> Option<&[u8]> {
        let digits = server_name.strip_prefix(SERVER_NAME_PREFIX)?;
        let id = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let pending = self.state.as_ref().and_then(|state| state.as_ref()?.name_of(id));
        pending.or_else(|| self.client.as_ref()?.name_of(id))
    }
}

fn is_quoted_name(text: &[u8]) -> bool {
    text.first() == Some(&b'"') && text[1..].starts_with(SERVER_NAME_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::{Shift, place};

    #[test]
    fn a_place_behind_names_is_where_it_was() {
        // "execute p; execute q" with names of eight letters.
        let shifts = [Shift { from: 8, was: 1, is: 8 }, Shift { from: 19, was: 1, is: 8 }];
        for (server, client) in
            [(1, 1), (8, 8), (9, 9), (16, 9), (17, 10), (26, 19), (27, 20), (34, 20), (35, 21)]
        {
            assert_eq!(place(&shifts, server), client, "{server}");
        }
        assert_eq!(place(&[], 7), 7);
    }
}
