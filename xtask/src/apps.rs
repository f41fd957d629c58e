//! `cargo xtask apps`: applications that know nothing of poolers, all of them, with what each cost in time and pins.

use clap::Args;

use crate::process::{cargo, check};
use crate::setup;
use crate::steps::Steps;

#[derive(Args)]
pub struct Options {
    /// Run only the applications whose tests' names have this text in them
    #[arg(long)]
    only: Option<String>,
}

pub fn run(options: &Options) -> Result<(), String> {
    setup::run()?;
    let mut steps = Steps::new();
    steps.run("applications", || {
        let mut command = cargo(&["test", "-p", "howdah", "--test", "applications", "--"]);
        // One after the other: their times are compared.
        command.args(["--nocapture", "--test-threads=1"]).args(&options.only).env("HOWDAH_APPS", "all");
        check(command)
    });
    steps.finish()
}
