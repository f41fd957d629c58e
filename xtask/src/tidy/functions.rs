//! How long functions are, and how deep.
//!
//! A ratchet: a function over the limit stands in the list of allowed ones with its length, and may only shrink.

use std::collections::BTreeMap;

use super::Text;
use super::mask::code_only;

/// A function that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// The line of `fn`, from 1.
    pub line: usize,
    pub lines: usize,
    /// The deepest pair of braces within the body, which itself is 0.
    pub depth: usize,
    /// `// long: table` stands above it.
    pub is_table: bool,
}

pub fn check(texts: &[Text], allowed: &str, list: bool, faults: &mut Vec<String>) {
    let mut allowed = read_allowed(allowed, faults);
    let mut all = Vec::new();
    for text in texts.iter().filter(|text| text.is_rust() && !text.is_test()) {
        for function in functions(&text.text) {
            judge(&text.path, &function, &mut allowed, faults);
            all.push((text.path.as_str(), function));
        }
    }
    for (path, name) in allowed.into_keys() {
        faults.push(format!("xtask/tidy-allow.txt: {path} {name} is not long any more; remove the line"));
    }
    if list {
        all.sort_by_key(|(_, function)| std::cmp::Reverse((function.lines, function.depth)));
        for (path, function) in all.iter().take(20) {
            println!(
                "{:>4} lines, depth {}  {path}:{} {}",
                function.lines, function.depth, function.line, function.name
            );
        }
    }
}

type Allowed = BTreeMap<(String, String), usize>;

/// Lines like `crates/x/src/y.rs name 85`.
fn read_allowed(text: &str, faults: &mut Vec<String>) -> Allowed {
    let mut allowed = Allowed::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let entry = (words.next(), words.next(), words.next().and_then(|number| number.parse().ok()));
        if let (Some(path), Some(name), Some(lines)) = entry {
            allowed.insert((path.to_owned(), name.to_owned()), lines);
        } else {
            faults.push(format!("xtask/tidy-allow.txt: not of the form PATH FUNCTION LINES: {line}"));
        }
    }
    allowed
}

fn judge(path: &str, function: &Function, allowed: &mut Allowed, faults: &mut Vec<String>) {
    let Function { name, line, lines, depth, is_table } = function;
    if *depth > DEPTH_MAX {
        faults.push(format!("{path}:{line}: {name} is {depth} blocks deep (at most {DEPTH_MAX})"));
    }
    if *lines <= LINES_MAX || *is_table {
        return;
    }
    match allowed.remove(&(path.to_owned(), name.clone())) {
        None => faults.push(format!("{path}:{line}: {name} has {lines} lines (at most {LINES_MAX})")),
        Some(limit) if *lines > limit => {
            faults.push(format!("{path}:{line}: {name} has grown from {limit} to {lines} lines"));
        }
        Some(limit) if *lines < limit => {
            faults
                .push(format!("xtask/tidy-allow.txt: {path} {name} has only {lines} lines now; write that"));
        }
        Some(_) => {}
    }
}

/// All functions with a body, those within others too.
pub fn functions(text: &str) -> Vec<Function> {
    let code = code_only(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(offset) = code[from..].find("fn ") {
        let at = from + offset;
        from = at + 3;
        let before = code[..at].chars().next_back();
        let name: String = code[from..].chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
        if name.is_empty() || before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let Some(open) = body(&code, from) else { continue };
        let (end, depth) = block(&code, open);
        let line = 1 + code[..at].matches('\n').count();
        let count = 1 + code[at..end].matches('\n').count();
        found.push(Function { name, line, lines: count, depth, is_table: says_table(&lines, line) });
    }
    found
}

/// The place of the brace that opens the body; none for a function without one.
fn body(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, c) in code[from..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => return None,
            '{' if depth == 0 => return Some(from + offset),
            _ => {}
        }
    }
    None
}

/// The end of the block that opens here, and how deep it gets.
fn block(code: &str, open: usize) -> (usize, usize) {
    let (mut depth, mut deepest) = (0_usize, 0);
    for (offset, c) in code[open..].char_indices() {
        match c {
            '{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return (open + offset + 1, deepest - 1);
                }
            }
            _ => {}
        }
    }
    (code.len(), deepest)
}

/// Whether the lines above (documentation, attributes) have the remark that excuses a flat table.
fn says_table(lines: &[&str], line: usize) -> bool {
    let above = lines[..line - 1].iter().rev().map(|line| line.trim());
    above
        .take_while(|line| line.starts_with("//") || line.starts_with('#'))
        .any(|line| line == "// long: table")
}

const LINES_MAX: usize = 70;
const DEPTH_MAX: usize = 5;

#[cfg(test)]
mod tests;
