//! Mutated bytes for every decoder, on stable Rust and without help from the compiler.
//!
//! A corpus of sound messages is mutated from a seed, with an eye to what attackers do: lengths that lie, ends
//! that are missing, parts that come twice. A target is given the bytes; it must not panic, must not allocate
//! out of all proportion, must end soon, and must not care where a stream of bytes was cut.
//!
//! Reading order: chance, what is done to bytes, what bytes there are, what they are given to, how that is judged.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod rng;

mod mutate;

mod corpus;

mod targets;

mod judge;

#[cfg(test)]
mod tests;

pub use judge::{Fault, Meter, judge};
pub use mutate::mutate;
pub use rng::Rng;
pub use targets::{TARGETS, Target};
