//! Cancel keys: random in all bits, one for each client, compared in a time that tells nothing.

use std::fmt;

use model::ClientId;

use crate::hub::Hub;

/// The longest key: another pooler in front of us may wrap it into its own.
const KEY_BYTES_MAX: usize = 32;
/// The greatest process id that Linux gives, and more than other systems do.
const PROCESS_ID_MAX: u32 = 1 << 22;
/// A bit that makes a number greater than that, and keeps it positive for who reads it with a sign.
const NO_PROCESS: u32 = 1 << 30;
/// All bits but the sign.
const PROCESS_ID_BITS: u32 = u32::MAX >> 1;
/// The key of protocol 3.0.
const KEY_BYTES_SHORT: usize = 4;

/// What a client is told for BackendKeyData.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CancelKey {
    /// The number that stands for a process id.
    pub process_id: u32,
    bytes: [u8; KEY_BYTES_MAX],
    size: usize,
}

impl CancelKey {
    /// The key itself: 4 bytes, or 32 for clients that take long ones.
    pub fn secret(&self) -> &[u8] {
        &self.bytes[..self.size]
    }

    /// Compares all bytes whatever the outcome.
    fn is(&self, key: &[u8]) -> bool {
        let same = self.secret().iter().zip(key).fold(0, |differing, (one, other)| differing | (one ^ other));
        std::hint::black_box(same) == 0 && self.size == key.len()
    }
}

impl fmt::Debug for CancelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CancelKey({}, ..)", self.process_id)
    }
}

/// A key as it is kept: there is one for each client, and few clients take long ones.
pub(crate) enum Key {
    Short(u32, [u8; KEY_BYTES_SHORT]),
    Long(u32, Box<[u8; KEY_BYTES_MAX]>),
}

impl Key {
    /// The number and the secret, of 4 bytes or more.
    pub(crate) fn of(number: u32, secret: &[u8]) -> Key {
        match <[u8; KEY_BYTES_SHORT]>::try_from(secret) {
            Ok(short) => Key::Short(number, short),
            Err(_) => {
                let mut bytes = [0; KEY_BYTES_MAX];
                bytes.iter_mut().zip(secret).for_each(|(byte, given)| *byte = *given);
                Key::Long(number, Box::new(bytes))
            }
        }
    }

    /// What stands for a process id.
    pub(crate) fn number(&self) -> u32 {
        match self {
            Key::Short(number, _) | Key::Long(number, _) => *number,
        }
    }

    fn told(&self) -> CancelKey {
        let secret: &[u8] = match self {
            Key::Short(_, bytes) => bytes,
            Key::Long(_, bytes) => &**bytes,
        };
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes[..secret.len()].copy_from_slice(secret);
        CancelKey { process_id: self.number(), bytes, size: secret.len() }
    }
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// The key of a client that has entered; `entropy` is fresh random bytes. A second key takes the place of the
    /// first.
    pub fn issue_key(&mut self, client: ClientId, entropy: &[u8; 36], is_long: bool) -> Option<CancelKey> {
        let (number, secret) = entropy.split_at(4);
        let random = number.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        // PostgreSQL's own are int4 and positive, and so are the columns and variables that take them.
        let mut process_id = random & PROCESS_ID_BITS;
        // The number must be the client's own, and that of no process: who listens compares it with the number of
        // the process that notified, and would take another's word for its own. Zero is none, too: drivers take it
        // for "no key".
        while process_id <= PROCESS_ID_MAX || self.clients.has_number(process_id) {
            process_id = (process_id.wrapping_add(1) & PROCESS_ID_BITS) | NO_PROCESS;
        }
        let key = Key::of(process_id, if is_long { secret } else { &secret[..KEY_BYTES_SHORT] });
        let told = key.told();
        self.clients.set_key(client, key).then_some(told)
    }

    /// The client that a cancel request means.
    pub fn find_by_key(&self, process_id: u32, key: &[u8]) -> Option<(ClientId, C)> {
        // For a number that nobody has, the same comparison is made and fails.
        let nobody = CancelKey { process_id: 0, bytes: [0; KEY_BYTES_MAX], size: 0 };
        let held = self.clients.by_number(process_id);
        let own = held.map_or(nobody, |(_, own)| own.told());
        let is_own = own.is(key) && own.size > 0;
        let (resident, _) = held.filter(|_| is_own)?;
        Some((resident.id, resident.handle.clone()))
    }
}
