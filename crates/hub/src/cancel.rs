//! Cancel keys: random in all bits, one for each client, compared in a time that tells nothing.

use std::fmt;

use model::ClientId;
use rustc_hash::FxHashMap;

use crate::hub::Hub;

/// The longest key: another pooler in front of us may wrap it into its own.
const KEY_BYTES_MAX: usize = 32;
/// The greatest process id that Linux gives, and more than other systems do.
const PROCESS_ID_MAX: u32 = 1 << 22;
/// A bit that makes a number greater than that, and keeps it positive for who reads it with a sign.
const NO_PROCESS: u32 = 1 << 30;
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
enum Secret {
    Short([u8; KEY_BYTES_SHORT]),
    Long(Box<[u8; KEY_BYTES_MAX]>),
}

impl Secret {
    fn of(key: &CancelKey) -> Secret {
        match <[u8; KEY_BYTES_SHORT]>::try_from(key.secret()) {
            Ok(short) => Secret::Short(short),
            Err(_) => Secret::Long(Box::new(key.bytes)),
        }
    }

    fn key(&self, process_id: u32) -> CancelKey {
        let secret: &[u8] = match self {
            Secret::Short(bytes) => bytes,
            Secret::Long(bytes) => &**bytes,
        };
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes[..secret.len()].copy_from_slice(secret);
        CancelKey { process_id, bytes, size: secret.len() }
    }
}

/// By number.
#[derive(Default)]
pub(crate) struct CancelKeys(FxHashMap<u32, (Secret, ClientId)>);

impl CancelKeys {
    pub(crate) fn remove(&mut self, process_id: u32) {
        self.0.remove(&process_id);
    }

    fn issue(&mut self, client: ClientId, entropy: &[u8; 36], is_long: bool) -> CancelKey {
        let (number, secret) = entropy.split_at(4);
        let mut process_id = number.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        // The number must be the client's own, and that of no process: who listens compares it with the number of
        // the process that notified, and would take another's word for its own. Zero is none, too: drivers take it
        // for "no key".
        while process_id <= PROCESS_ID_MAX || self.0.contains_key(&process_id) {
            process_id = process_id.wrapping_add(1) | NO_PROCESS;
        }
        let size = if is_long { KEY_BYTES_MAX } else { KEY_BYTES_SHORT };
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes[..size].copy_from_slice(&secret[..size]);
        let key = CancelKey { process_id, bytes, size };
        self.0.insert(process_id, (Secret::of(&key), client));
        key
    }

    fn find(&self, process_id: u32, key: &[u8]) -> Option<ClientId> {
        // For a number that nobody has, the same comparison is made and fails.
        let nobody = CancelKey { process_id: 0, bytes: [0; KEY_BYTES_MAX], size: 0 };
        let held = self.0.get(&process_id);
        let (own, client) =
            held.map_or((nobody, ClientId(0)), |(own, client)| (own.key(process_id), *client));
        (own.is(key) && own.size > 0).then_some(client)
    }
}

impl<C: Clone, S: Clone> Hub<C, S> {
    /// The key of a client that has entered; `entropy` is fresh random bytes. A second key takes the place of the
    /// first.
    pub fn issue_key(&mut self, client: ClientId, entropy: &[u8; 36], is_long: bool) -> Option<CancelKey> {
        let resident = self.clients.get_mut(&client)?;
        if let Some(old) = resident.key.take() {
            self.keys.remove(old);
        }
        let key = self.keys.issue(client, entropy, is_long);
        resident.key = Some(key.process_id);
        Some(key)
    }

    /// The client that a cancel request means.
    pub fn find_by_key(&self, process_id: u32, key: &[u8]) -> Option<(ClientId, C)> {
        let client = self.keys.find(process_id, key)?;
        self.clients.get(&client).map(|resident| (client, resident.handle.clone()))
    }
}
