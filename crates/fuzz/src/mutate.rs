//! What is done to sound bytes: by chance, and by what is known of how decoders fail.

use crate::rng::Rng;

/// No input is longer than this, in bytes.
const LENGTH_MAX: usize = 64 << 10;

/// Lengths and counts at the edges of what anybody thought of.
const EDGES: [u32; 16] = [
    0,
    1,
    3,
    4,
    5,
    8,
    255,
    256,
    9_999,
    10_001,
    65_535,
    65_536,
    0x3fff_ffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
];

/// Makes a new input out of one of the corpus, with pieces of others and of the dictionary.
pub fn mutate(rng: &mut Rng, corpus: &[Vec<u8>], dictionary: &[&[u8]]) -> Vec<u8> {
    let mut bytes = match corpus.get(rng.below(corpus.len())) {
        Some(bytes) => bytes.clone(),
        None => Vec::new(),
    };
    for _ in 0..=rng.below(6) {
        change(rng, &mut bytes, corpus, dictionary);
    }
    bytes.truncate(LENGTH_MAX);
    bytes
}

fn change(rng: &mut Rng, bytes: &mut Vec<u8>, corpus: &[Vec<u8>], dictionary: &[&[u8]]) {
    let at = rng.below(bytes.len());
    match rng.below(13) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
        1 if !bytes.is_empty() => bytes[at] = rng.draw() as u8,
        2 if !bytes.is_empty() => {
            bytes[at] = *pick(rng, &[0, 1, 0x7f, 0x80, 0xff, b'\n', b'"', b'\'', b'\\'])
        }
        3 => bytes.insert(at, rng.draw() as u8),
        4 => bytes.truncate(at),
        5 => {
            let end = at + rng.below(bytes.len() - at + 1);
            bytes.drain(at..end);
        }
        6 => {
            let end = at + rng.below((bytes.len() - at + 1).min(4_096));
            let piece = bytes[at..end].to_vec();
            let to = rng.below(bytes.len() + 1);
            insert(bytes, to, &piece);
        }
        7 => {
            let piece = repeated(rng);
            insert(bytes, at, &piece);
        }
        8 | 9 => attack_length(rng, bytes, at),
        10 if !dictionary.is_empty() => {
            let word = *pick(rng, dictionary);
            if rng.below(2) == 0 {
                insert(bytes, at, word);
            } else {
                let end = (at + word.len()).min(bytes.len());
                bytes.splice(at..end, word.iter().copied());
            }
        }
        11 => {
            // The head of one, the tail of another.
            let other = &corpus[rng.below(corpus.len())];
            let from = rng.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => {
            let other = corpus[rng.below(corpus.len())].clone();
            insert(bytes, at, &other);
        }
    }
}

fn pick<'a, T>(rng: &mut Rng, choices: &'a [T]) -> &'a T {
    &choices[rng.below(choices.len())]
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    if bytes.len() + piece.len() <= LENGTH_MAX {
        bytes.splice(at..at, piece.iter().copied());
    }
}

/// One byte many times: depth, for whoever nests.
fn repeated(rng: &mut Rng) -> Vec<u8> {
    let byte = *pick(rng, &[0, b'a', b' ', b'(', b'"', b'\'', b'/', b'*', b',', b'\n', b'%', b';', 0xff]);
    let count = 1 << rng.below(13);
    vec![byte; count]
}

/// Writes a length or a count that lies, in binary or in words.
fn attack_length(rng: &mut Rng, bytes: &mut Vec<u8>, at: usize) {
    let mut value = *pick(rng, &EDGES);
    if rng.below(3) == 0 {
        // Just beside the truth.
        value = (bytes.len() - at) as u32;
        value = value.wrapping_add(rng.below(9) as u32).wrapping_sub(4);
    }
    let word: Vec<u8> = match rng.below(4) {
        0 => (value as u16).to_be_bytes().to_vec(),
        1 => value.to_string().into_bytes(),
        _ => value.to_be_bytes().to_vec(),
    };
    let end = (at + word.len()).min(bytes.len());
    bytes.splice(at..end, word);
}
