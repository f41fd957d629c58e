//! Random bytes from the system.
//!
//! Each thread asks for some in advance, because a login needs few and a question costs more than the answer.
//! What was given out is erased, so that no key can be found here later.

use std::cell::RefCell;

/// So many bytes are asked for at once.
const STOCK_BYTES: usize = 1152;

struct Stock {
    bytes: [u8; STOCK_BYTES],
    left: usize,
}

thread_local! {
    static STOCK: RefCell<Stock> = const { RefCell::new(Stock { bytes: [0; STOCK_BYTES], left: 0 }) };
}

/// So many random bytes. A system that has none to give is not one to run on.
pub fn bytes<const N: usize>() -> [u8; N] {
    const { assert!(N <= STOCK_BYTES) };
    STOCK.with_borrow_mut(|stock| {
        if stock.left < N {
            fill(&mut stock.bytes);
            stock.left = STOCK_BYTES;
        }
        let mut taken = [0; N];
        stock.left -= N;
        let from = &mut stock.bytes[stock.left..stock.left + N];
        taken.copy_from_slice(from);
        from.fill(0);
        taken
    })
}

fn fill(bytes: &mut [u8]) {
    if let Err(error) = getrandom::fill(bytes) {
        tracing::error!(target: crate::log::FATAL, "the system has no random bytes: {error}");
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_bytes_are_given_twice() {
        let many: HashSet<[u8; 36]> = (0..200).map(|_| bytes()).collect();
        assert_eq!(many.len(), 200);
        assert!(many.iter().all(|bytes| bytes.iter().any(|&byte| byte != 0)));
    }

    #[test]
    fn what_was_given_out_is_erased() {
        let given: [u8; 36] = bytes();
        let is_kept = STOCK.with_borrow(|stock| stock.bytes.windows(36).any(|window| window == given));
        assert!(!is_kept);
    }
}
