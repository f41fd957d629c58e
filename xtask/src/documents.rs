//! `cargo xtask gen-docs`: the documents that are made from the tables of settings and metrics.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::process::cargo;
use crate::workspace;

#[derive(Args)]
pub struct Options {
    /// Write nothing; fail if a document is not what it should be
    #[arg(long)]
    pub check: bool,
    /// The pooler to ask, if it is built already
    #[arg(long, hide = true, value_name = "PATH")]
    pub binary: Option<PathBuf>,
}

/// A hidden subcommand of the pooler and the file that its output belongs into.
const DOCUMENTS: [(&str, &str); 3] =
    [("manual", "docs/settings.md"), ("example", "docs/example.ini"), ("metrics", "docs/metrics.md")];

pub fn run(options: &Options) -> Result<(), String> {
    for (subcommand, file) in DOCUMENTS {
        let mut command = match &options.binary {
            Some(binary) => Command::new(binary),
            None => cargo(&["run", "--quiet", "-p", "howdah", "--"]),
        };
        let output =
            command.arg(subcommand).output().map_err(|error| format!("howdah {subcommand}: {error}"))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("howdah {subcommand} failed: {why}"));
        }
        let path = workspace::root().join(file);
        if options.check {
            if fs::read(&path).unwrap_or_default() != output.stdout {
                return Err(format!("{file} is not what the code says; run: cargo xtask gen-docs"));
            }
            println!("{file} is what the code says");
        } else {
            fs::write(&path, &output.stdout).map_err(|error| format!("{file}: {error}"))?;
            println!("wrote {file}");
        }
    }
    Ok(())
}
