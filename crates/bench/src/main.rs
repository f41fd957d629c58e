//! The command line of the benchmark; everything it does is in the library.
#![forbid(unsafe_code)]

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = bench::options::Options::parse();
    match bench::run::run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
