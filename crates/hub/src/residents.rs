//! The clients that have entered: found by their id, and by the number of the key that they cancel by.
//!
//! There may be very many and most are idle, so a record is kept tight, in one table without gaps; the two ways to
//! find one hold no more than its place there.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use model::{ClientId, PoolId};
use rustc_hash::FxBuildHasher;

use crate::cancel::Key;

/// A client that has entered.
pub(crate) struct Resident<C> {
    pub(crate) id: ClientId,
    pub(crate) handle: C,
    /// `None` in the console.
    pub(crate) pool: Option<PoolId>,
    /// The name it logged in with, shared by all who did.
    pub(crate) user: Arc<str>,
    /// What it may cancel by.
    key: Option<Key>,
}

/// All of them. Ids and numbers are our own choice, so that a quick hash will do.
pub(crate) struct Residents<C> {
    records: Vec<Option<Resident<C>>>,
    free: Vec<u32>,
    by_id: HashTable<u32>,
    by_number: HashTable<u32>,
}

impl<C> Default for Residents<C> {
    /// Nobody yet.
    fn default() -> Residents<C> {
        Residents {
            records: Vec::new(),
            free: Vec::new(),
            by_id: HashTable::new(),
            by_number: HashTable::new(),
        }
    }
}

fn hash_id(id: ClientId) -> u64 {
    FxBuildHasher.hash_one(id)
}

fn hash_number(number: u32) -> u64 {
    FxBuildHasher.hash_one(number)
}

impl<C> Residents<C> {
    /// One more, without a key. Its id is nobody else's.
    pub(crate) fn insert(&mut self, id: ClientId, handle: C, pool: Option<PoolId>, user: Arc<str>) {
        let resident = Some(Resident { id, handle, pool, user, key: None });
        let place = match self.free.pop() {
            Some(place) => {
                self.records[place as usize] = resident;
                place
            }
            None => {
                self.records.push(resident);
                // Each is a client's socket: far below 2^32.
                (self.records.len() - 1) as u32
            }
        };
        let records = &self.records;
        self.by_id.insert_unique(hash_id(id), place, |&place| id_at(records, place).map_or(0, hash_id));
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, id: ClientId) -> Option<Resident<C>> {
        self.take_key(id);
        let records = &self.records;
        let found = self.by_id.find_entry(hash_id(id), |&place| id_at(records, place) == Some(id));
        let (place, _) = found.ok()?.remove();
        self.free.push(place);
        self.records[place as usize].take()
    }

    /// The one with this id.
    pub(crate) fn get(&self, id: ClientId) -> Option<&Resident<C>> {
        self.records[self.place(id)? as usize].as_ref()
    }

    /// Whether somebody has a key of this number.
    pub(crate) fn has_number(&self, number: u32) -> bool {
        self.by_number(number).is_some()
    }

    /// Who has a key of this number, and the key.
    pub(crate) fn by_number(&self, number: u32) -> Option<(&Resident<C>, &Key)> {
        let is_it = |&place: &u32| number_at(&self.records, place) == Some(number);
        let place = *self.by_number.find(hash_number(number), is_it)?;
        let resident = self.records[place as usize].as_ref()?;
        Some((resident, resident.key.as_ref()?))
    }

    /// Gives one its key, in place of one that it had. False if nobody has the id.
    pub(crate) fn set_key(&mut self, id: ClientId, key: Key) -> bool {
        self.take_key(id);
        let Some(place) = self.place(id) else { return false };
        let Some(resident) = &mut self.records[place as usize] else { return false };
        let number = key.number();
        resident.key = Some(key);
        let records = &self.records;
        let hash = |&place: &u32| number_at(records, place).map_or(0, hash_number);
        self.by_number.insert_unique(hash_number(number), place, hash);
        true
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Resident<C>> {
        self.records.iter().flatten()
    }

    fn place(&self, id: ClientId) -> Option<u32> {
        self.by_id.find(hash_id(id), |&place| id_at(&self.records, place) == Some(id)).copied()
    }

    fn take_key(&mut self, id: ClientId) {
        let Some(place) = self.place(id) else { return };
        let Some(number) = number_at(&self.records, place) else { return };
        if let Ok(entry) = self.by_number.find_entry(hash_number(number), |&other| other == place) {
            entry.remove();
        }
        if let Some(resident) = &mut self.records[place as usize] {
            resident.key = None;
        }
    }
}

fn id_at<C>(records: &[Option<Resident<C>>], place: u32) -> Option<ClientId> {
    Some(records[place as usize].as_ref()?.id)
}

fn number_at<C>(records: &[Option<Resident<C>>], place: u32) -> Option<u32> {
    Some(records[place as usize].as_ref()?.key.as_ref()?.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_and_its_places_cost_few_bytes() {
        // Id, handle and pool 8 each, name and key 16. Both tables of places hold 4 bytes of ours and one of theirs,
        // at a fill of half to seven eighths.
        assert!(size_of::<Option<Resident<Arc<()>>>>() <= 56);
    }

    #[test]
    fn who_left_is_found_by_nothing_and_the_place_is_used_again() {
        let mut residents = Residents::default();
        let user: Arc<str> = "u".into();
        let enter = |residents: &mut Residents<u64>, id: u64| {
            residents.insert(ClientId(id), id, None, Arc::clone(&user));
            assert!(residents.set_key(ClientId(id), Key::of(id as u32 + 7, &[1, 2, 3, 4])));
        };
        for id in 0..1_000 {
            enter(&mut residents, id);
        }
        for id in (0..1_000).step_by(2) {
            assert_eq!(residents.remove(ClientId(id)).map(|gone| gone.handle), Some(id));
            assert!(residents.remove(ClientId(id)).is_none() && !residents.has_number(id as u32 + 7));
        }
        for id in 1_000..1_500 {
            enter(&mut residents, id);
        }
        assert_eq!((residents.records.len(), residents.iter().count()), (1_000, 1_000));
        for id in (1..1_000).step_by(2).chain(1_000..1_500) {
            assert_eq!(residents.get(ClientId(id)).map(|found| found.handle), Some(id));
            assert_eq!(residents.by_number(id as u32 + 7).map(|(found, _)| found.handle), Some(id));
        }
        assert!(residents.set_key(ClientId(1), Key::of(9_999, &[0; 4])) && !residents.has_number(8));
        assert!(!residents.set_key(ClientId(0), Key::of(1, &[0; 4])));
    }
}
