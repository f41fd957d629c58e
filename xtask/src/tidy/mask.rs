//! Rust text with the insides of comments, strings and characters blanked, so that braces are braces.

/// The same text, character by character, with blanks where no code is; lines stay lines.
pub fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skip(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// The end of the comment, string or character that begins here; the same place if none does.
fn skip(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => find(chars, at, |c| c == '\n'),
        '/' if next == Some('*') => block_comment(chars, at),
        '"' => string(chars, at),
        'r' if !in_word(chars, at) => raw_string(chars, at + 1).unwrap_or(at),
        'b' | 'c' if next == Some('r') && !in_word(chars, at) => raw_string(chars, at + 2).unwrap_or(at),
        '\'' => character(chars, at),
        _ => at,
    }
}

fn in_word(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')
}

fn find(chars: &[char], from: usize, is_it: impl Fn(char) -> bool) -> usize {
    chars[from..].iter().position(|&c| is_it(c)).map_or(chars.len(), |offset| from + offset)
}

fn block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn string(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `after` is the place behind the `r`.
fn raw_string(chars: &[char], after: usize) -> Option<usize> {
    let hashes = chars[after..].iter().take_while(|&&c| c == '#').count();
    let mut at = after + hashes;
    if chars.get(at) != Some(&'"') {
        return None;
    }
    loop {
        at = find(chars, at + 1, |c| c == '"');
        if at >= chars.len() {
            return Some(chars.len());
        }
        if chars[at + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes {
            return Some(at + 1 + hashes);
        }
    }
}

/// A character; or the same place, for the quote of a lifetime.
fn character(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => (find(chars, at + 3, |c| c == '\'') + 1).min(chars.len()),
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

#[cfg(test)]
mod tests;
