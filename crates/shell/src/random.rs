//! Random bytes from the system.

/// So many random bytes. A system that has none to give is not one to run on.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        tracing::error!(target: crate::log::FATAL, "the system has no random bytes: {error}");
        std::process::abort();
    }
    bytes
}
