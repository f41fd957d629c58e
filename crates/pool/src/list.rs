//! Lists threaded through a table: whoever stands in the middle is taken out as cheaply as at an end, and nothing is allocated.

/// No place of a table.
pub(crate) const NIL: u32 = u32::MAX;

/// Who stands beside somebody, by their places in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Links {
    pub(crate) earlier: u32,
    pub(crate) later: u32,
}

impl Links {
    /// In no list.
    pub(crate) const NONE: Links = Links { earlier: NIL, later: NIL };
}

/// The ends of a list. `links` is always the same table, with a record for each place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl Ends {
    /// Of a list that nobody stands in.
    pub(crate) const NONE: Ends = Ends { first: NIL, last: NIL };

    pub(crate) fn is_empty(self) -> bool {
        self.first == NIL
    }

    /// Behind all others.
    #[inline]
    pub(crate) fn push_last(&mut self, links: &mut [Links], index: u32) {
        let earlier = std::mem::replace(&mut self.last, index);
        links[index as usize] = Links { earlier, later: NIL };
        match earlier {
            NIL => self.first = index,
            _ => links[earlier as usize].later = index,
        }
    }

    /// Before all others.
    pub(crate) fn push_first(&mut self, links: &mut [Links], index: u32) {
        let later = std::mem::replace(&mut self.first, index);
        links[index as usize] = Links { earlier: NIL, later };
        match later {
            NIL => self.last = index,
            _ => links[later as usize].earlier = index,
        }
    }

    /// Takes out one that stands in it.
    #[inline]
    pub(crate) fn remove(&mut self, links: &mut [Links], index: u32) {
        let Links { earlier, later } = std::mem::replace(&mut links[index as usize], Links::NONE);
        match earlier {
            NIL => self.first = later,
            _ => links[earlier as usize].later = later,
        }
        match later {
            NIL => self.last = earlier,
            _ => links[later as usize].earlier = earlier,
        }
    }

    /// All that stand in it, from the first. Panics unless the links back and forth agree.
    pub(crate) fn assert_consistent(self, links: &[Links]) -> Vec<u32> {
        let mut there = Vec::new();
        let (mut earlier, mut index) = (NIL, self.first);
        while index != NIL {
            assert_eq!(links[index as usize].earlier, earlier, "the links back and forth agree");
            there.push(index);
            (earlier, index) = (index, links[index as usize].later);
        }
        assert_eq!(self.last, earlier, "the list ends at its end");
        there
    }
}
