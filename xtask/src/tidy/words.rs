//! Words that must not be in the tree: unfinished work, tests that are not run, places of one machine only.

use super::Text;

pub fn check(texts: &[Text], faults: &mut Vec<String>) {
    // This file and its tests have to name what they look for.
    for text in texts.iter().filter(|text| !text.path.starts_with("xtask/src/tidy/words")) {
        for (number, line) in text.text.lines().enumerate() {
            for (word, why) in found_in(line, text.is_rust()) {
                faults.push(format!("{}:{}: {word}: {why}", text.path, number + 1));
            }
        }
    }
}

fn found_in(line: &str, is_rust: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let in_code = CODE.iter().filter(move |_| is_rust);
    in_code.chain(&ANYWHERE).filter(|(word, _)| has_word(line, word)).copied()
}

/// True if the word is there and not only as the end of a longer one (or, a path, of a longer path).
fn has_word(line: &str, word: &str) -> bool {
    let in_longer_path = |c: char| word.starts_with('/') && ".-}".contains(c);
    let continues = |c: char| c.is_alphanumeric() || c == '_' || in_longer_path(c);
    let begins = |at: usize| !line[..at].chars().next_back().is_some_and(continues);
    line.match_indices(word).any(|(at, _)| word.starts_with('#') || begins(at))
}

const CODE: [(&str, &str); 4] = [
    ("todo!", "finish it"),
    ("unimplemented!", "finish it"),
    ("#[ignore", "a test that is not run tests nothing"),
    ("dbg!", "left over"),
];

const ANYWHERE: [(&str, &str); 13] = [
    ("FIXME", "finish it"),
    ("XXX", "finish it"),
    ("/home/", "a place of one machine only"),
    ("/root/", "a place of one machine only"),
    ("/work/", "a place of one machine only"),
    ("/Users/", "a place of one machine only"),
    ("crates.io", "name no host of a registry"),
    ("pypi.org", "name no host of a registry"),
    ("pythonhosted.org", "name no host of a registry"),
    ("npmjs.", "name no host of a registry"),
    ("maven.org", "name no host of a registry"),
    ("proxy.golang.org", "name no host of a registry"),
    ("docker.io", "name no host of a registry"),
];

#[cfg(test)]
mod tests;
