//! `cargo xtask bench`: builds the pooler and hands over to the crate that measures.

use clap::Args;

use crate::process::{cargo, check};
use crate::setup;

#[derive(Args)]
pub struct Options {
    /// Arguments of the benchmark; `--help` shows them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub fn run(options: &Options) -> Result<(), String> {
    setup::run()?;
    if check(cargo(&["build", "--release", "-p", "howdah"])).failed > 0 {
        return Err("the pooler does not build".into());
    }
    let mut command = cargo(&["run", "--release", "-p", "bench", "--"]);
    command.args(&options.arguments);
    if check(command).failed > 0 { Err("the benchmark failed".into()) } else { Ok(()) }
}
