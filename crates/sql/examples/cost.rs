//! What reading an ordinary statement costs: `cargo run --release -p sql --example cost`.
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::time::Instant;

use sql::state::{Options, scan};

const ROUNDS: u32 = 2_000_000;
const TEXTS: [&str; 7] = [
    "SELECT abalance FROM pgbench_accounts WHERE aid = 12345;",
    "UPDATE pgbench_accounts SET abalance = abalance + -1234 WHERE aid = 12345;",
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 2, 3, 4, CURRENT_TIMESTAMP);",
    "SELECT \"users\".\"id\", \"users\".\"name\" FROM \"users\" WHERE \"users\".\"email\" = $1 LIMIT $2",
    "BEGIN;",
    "SET search_path TO a, b",
    "select set_config('app.tenant', $1, false)",
];

fn main() {
    for text in TEXTS {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let begun = Instant::now();
            for _ in 0..ROUNDS {
                black_box(scan(black_box(text.as_bytes()), Options::default()).is_plain());
            }
            best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS));
        }
        println!("{best:6.1} ns  {:3} bytes  {text}", text.len());
    }
}
