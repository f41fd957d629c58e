//! The `options` of a startup message: the command line of a PostgreSQL process, of which only what sets
//! parameters may be used. Does not know which parameters there are.

use super::startup::Parameter;

/// The text is none that sets parameters only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unusable;

/// Reads `-c name=value`, `-cname=value` and `--name=value`, in order. In all three a `-` within the name stands
/// for a `_`.
pub(super) fn parse(text: &[u8]) -> Result<Vec<Parameter>, Unusable> {
    let mut words = Words { rest: text };
    let mut parameters = Vec::new();
    while let Some(word) = words.next() {
        let setting = match word.as_slice() {
            b"-c" => words.next().ok_or(Unusable)?,
            [b'-', b'c', setting @ ..] | [b'-', b'-', setting @ ..] => setting.to_vec(),
            _ => return Err(Unusable),
        };
        let equals = setting.iter().position(|&byte| byte == b'=').filter(|&at| at > 0).ok_or(Unusable)?;
        let name = setting[..equals].iter().map(|&byte| if byte == b'-' { b'_' } else { byte });
        parameters.push(Parameter { name: name.collect(), value: setting[equals + 1..].into() });
    }
    Ok(parameters)
}

/// Words between white space; a backslash takes the meaning from the byte behind it.
struct Words<'a> {
    rest: &'a [u8],
}

impl Iterator for Words<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let start = self.rest.iter().position(|&byte| !is_space(byte))?;
        let mut word = Vec::new();
        let mut escaped = false;
        let mut bytes = self.rest[start..].iter();
        for &byte in bytes.by_ref() {
            if escaped {
                word.push(byte);
                escaped = false;
            } else if is_space(byte) {
                break;
            } else if byte == b'\\' {
                escaped = true;
            } else {
                word.push(byte);
            }
        }
        self.rest = bytes.as_slice();
        Some(word)
    }
}

/// As C's `isspace`, which counts the vertical tab too.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}
