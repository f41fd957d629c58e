//! The list of members over time: who comes is in at once, who is absent once is not out yet.

use crate::report::{MEMBERS_MAX, Member, Report};

/// The members, in the order in which they came.
///
/// A member's entry in the site's store lives for a time only. After the store was away, a list can lack members that
/// are well and will be back at their next turn; their servers are not to be given up for that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    seats: Vec<Seat>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seat {
    member: Member,
    absences: u32,
}

/// So many reports in a row without a member take it off the list.
pub const ABSENCES_MAX: u32 = 3;

impl Roster {
    /// Takes in what was said; answers whether somebody came or went, which is a matter of places alone.
    pub fn take(&mut self, report: Report) -> bool {
        let before: Vec<(String, u16)> = self.places();
        for seat in &mut self.seats {
            seat.absences += 1;
        }
        for member in report.members {
            match self.seats.iter_mut().find(|seat| seat.member.is_at(&member)) {
                Some(seat) => *seat = Seat { member, absences: 0 },
                None => self.seats.push(Seat { member, absences: 0 }),
            }
        }
        self.seats.retain(|seat| seat.absences < ABSENCES_MAX);
        if self.seats.len() > MEMBERS_MAX {
            self.seats.retain(|seat| seat.absences == 0);
        }
        self.places() != before
    }

    /// All members, those among them that were absent of late.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.seats.iter().map(|seat| &seat.member)
    }

    fn places(&self) -> Vec<(String, u16)> {
        self.members().map(|member| (member.host.clone(), member.port)).collect()
    }
}
