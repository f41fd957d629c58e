//! The command line of the benchmark; everything it does is in the library.
#![forbid(unsafe_code)]

use bench::options::Options;
use bench::run::{self, Called};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    run::main(&Options::parse(), Called::Alone)
}
