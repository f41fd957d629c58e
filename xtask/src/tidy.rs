//! `cargo xtask tidy`: what a reader should not have to check by eye.
//!
//! Sizes of files and functions, nesting, heads, words that must not be there, names in documents that must be.

mod documents;
mod functions;
mod mask;
mod words;

use std::fs;
use std::path::Path;

use clap::Args;

use crate::workspace;

#[derive(Args)]
pub struct Options {
    /// Print the longest and deepest functions too
    #[arg(long)]
    pub list: bool,
}

/// A text file of the tree, its path relative to the root.
pub struct Text {
    pub path: String,
    pub text: String,
}

impl Text {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Tests may be as long as their tables.
    pub fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }
}

pub fn run(options: &Options) -> Result<(), String> {
    let root = workspace::root();
    let mut texts = Vec::new();
    collect(&root, &root, &mut texts);
    texts.sort_by(|a, b| a.path.cmp(&b.path));
    let mut faults = Vec::new();
    for text in texts.iter().filter(|text| text.is_rust()) {
        sizes_and_heads(text, &mut faults);
    }
    let allowed = fs::read_to_string(root.join(ALLOWED)).unwrap_or_default();
    functions::check(&texts, &allowed, options.list, &mut faults);
    words::check(&texts, &mut faults);
    documents::check(&texts, &mut faults);
    if faults.is_empty() {
        println!("{} files are tidy", texts.len());
        return Ok(());
    }
    Err(format!("{}\n{} faults", faults.join("\n"), faults.len()))
}

fn sizes_and_heads(text: &Text, faults: &mut Vec<String>) {
    let count = text.text.lines().count();
    if count > FILE_LINES_MAX && !text.is_test() {
        faults.push(format!("{}: {count} lines; split it by nouns (at most {FILE_LINES_MAX})", text.path));
    }
    if !text.text.starts_with("//!") {
        faults.push(format!("{}: begins without //! saying what it decides", text.path));
    }
}

/// All text files below a directory that are part of the tree.
fn collect(root: &Path, directory: &Path, texts: &mut Vec<Text>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            let hidden = name.starts_with('.') && !SHOWN.contains(&name.as_ref());
            if !hidden && name != "target" {
                collect(root, &path, texts);
            }
        } else if is_text(&path) {
            let relative = path.strip_prefix(root).map(Path::to_path_buf).unwrap_or(path.clone());
            let Ok(text) = fs::read_to_string(&path) else { continue };
            texts.push(Text { path: slashes(&relative), text });
        }
    }
}

fn is_text(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == "Cargo.lock" {
        return false;
    }
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    ["rs", "md", "toml", "txt", "ini", "sh", "yml", "yaml"].contains(&extension.as_ref())
        || path.ends_with(".ci/run")
}

fn slashes(path: &Path) -> String {
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

const FILE_LINES_MAX: usize = 600;
const ALLOWED: &str = "xtask/tidy-allow.txt";
/// Hidden directories that belong to the tree.
const SHOWN: [&str; 3] = [".ci", ".cargo", ".github"];
