//! What documents say about the tree is true: files that ARCHITECTURE.md names exist, decisions have one number each.

use std::collections::BTreeMap;

use super::Text;

pub fn check(texts: &[Text], faults: &mut Vec<String>) {
    decisions(texts, faults);
    for text in texts.iter().filter(|text| text.path == "ARCHITECTURE.md") {
        for (number, line) in text.text.lines().enumerate() {
            for name in named_files(line) {
                if !exists(texts, name) {
                    faults.push(format!("{}:{}: there is no file {name}", text.path, number + 1));
                }
            }
        }
    }
}

/// `docs/decisions/0007-words.md`, and no two of one number.
fn decisions(texts: &[Text], faults: &mut Vec<String>) {
    let mut numbers: BTreeMap<&str, &str> = BTreeMap::new();
    for text in texts {
        let Some(name) = text.path.strip_prefix("docs/decisions/") else { continue };
        let Some((number, _)) = name.split_once('-').filter(|(number, _)| number.parse::<u16>().is_ok())
        else {
            if name != "README.md" {
                faults.push(format!("{}: a decision is called NNNN-words.md", text.path));
            }
            continue;
        };
        if let Some(other) = numbers.insert(number, name) {
            faults.push(format!("docs/decisions: {other} and {name} have one number"));
        }
    }
}

/// What stands in backticks and ends like a file of ours.
fn named_files(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|name| {
        let is_file = [".rs", ".md", ".toml"].iter().any(|end| name.ends_with(end));
        is_file && !name.contains([' ', '*', '{', '<'])
    })
}

/// A whole path, a path below `crates`, `crate/file.rs` for `crate/src/file.rs`, or the end of a path.
fn exists(texts: &[Text], name: &str) -> bool {
    let end = format!("/{name}");
    let in_crate = name.split_once('/').map(|(package, file)| format!("crates/{package}/src/{file}"));
    texts.iter().any(|text| {
        text.path == name
            || text.path.ends_with(&end)
            || in_crate.as_ref().is_some_and(|path| text.path == *path)
    })
}
