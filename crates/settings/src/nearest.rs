//! Which known word a mistyped one is most like.

/// The most like of `words`, if one is near enough to be what was meant; the first of equals.
pub(crate) fn nearest(typed: &str, words: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    if typed.is_empty() || typed.len() > BYTES_MAX {
        return None;
    }
    let typed = typed.to_ascii_lowercase();
    let allowance = (typed.len() / 3).clamp(1, 3);
    words
        .into_iter()
        .filter(|word| word.len().abs_diff(typed.len()) <= allowance)
        .map(|word| (distance(typed.as_bytes(), word.as_bytes()), word))
        .filter(|(distance, _)| *distance <= allowance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Letters added, left out, changed, or swapped with the next one, to come from one word to the other.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = Vec::with_capacity(other.len() + 1);
        row.push(i + 1);
        for (j, b) in other.iter().enumerate() {
            let mut least = (above[j] + usize::from(a != b)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[other.len()]
}

/// Longer than any key, so that junk costs nothing.
const BYTES_MAX: usize = 40;
