//! Counters and averages
