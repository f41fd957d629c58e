//! Digests of the sets of settings that a worker meets again and again, found by where a set lies.

use std::sync::Arc;

use model::Parameters;

/// So many sets are remembered, and kept alive for it: what lies at an address is then always the same set.
const REMEMBERED: usize = 256;

/// What one worker remembers.
pub struct Digests(Box<[Option<(Arc<Parameters>, u64)>]>);

impl Default for Digests {
    fn default() -> Digests {
        Digests((0..REMEMBERED).map(|_| None).collect())
    }
}

impl Digests {
    /// The digest of a set: a comparison of pointers where it was asked for lately.
    #[inline]
    pub fn of(&mut self, parameters: &Arc<Parameters>) -> u64 {
        let spread = (Arc::as_ptr(parameters) as usize as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = &mut self.0[(spread >> 56) as usize % REMEMBERED];
        match place {
            Some((known, digest)) if Arc::ptr_eq(known, parameters) => *digest,
            _ => {
                let digest = parameters.digest();
                *place = Some((Arc::clone(parameters), digest));
                digest
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_that_are_alike_have_one_digest_wherever_they_lie() {
        let mut digests = Digests::default();
        let set = |value: &[u8]| {
            let mut parameters = Parameters::default();
            parameters.set(b"work_mem", value, false);
            Arc::new(parameters)
        };
        let sets: Vec<_> = (0..1000).map(|number: u32| set(&[b'0' + (number % 3) as u8])).collect();
        for (at, one) in sets.iter().enumerate() {
            assert_eq!(digests.of(one), digests.of(&sets[at % 3]));
            assert_ne!(digests.of(one), digests.of(&sets[(at + 1) % 3]));
        }
    }
}
