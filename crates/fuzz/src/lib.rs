//! Mutated bytes for every decoder
