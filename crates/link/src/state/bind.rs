//! The parameters of a Bind, as far as a statement's effect depends on them.

/// The value of parameter `number`, from 1: text as it is. `body`: the Bind behind its two names.
pub(crate) fn text(body: &[u8], number: u16) -> Option<&[u8]> {
    value(body, number).map(|(value, _)| value)
}

/// As PostgreSQL reads a boolean, in either format.
pub(crate) fn boolean(body: &[u8], number: u16) -> Option<bool> {
    let (value, is_binary) = value(body, number)?;
    match (value, is_binary) {
        ([byte], true) => Some(*byte != 0),
        (_, true) => None,
        (b"t" | b"true" | b"on" | b"1" | b"yes" | b"y", false) => Some(true),
        (b"f" | b"false" | b"off" | b"0" | b"no" | b"n", false) => Some(false),
        _ => None,
    }
}

fn value(body: &[u8], number: u16) -> Option<(&[u8], bool)> {
    let wanted = usize::from(number).checked_sub(1)?;
    let (formats, rest) = word(body)?;
    let format_bytes = rest.get(..formats * 2)?;
    let format = match formats {
        0 => 0,
        1 => format_bytes[1],
        _ => *format_bytes.get(wanted * 2 + 1)?,
    };
    let (count, mut rest) = word(rest.get(formats * 2..)?)?;
    if wanted >= count {
        return None;
    }
    for at in 0..=wanted {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        let Ok(length) = usize::try_from(length) else {
            if at == wanted {
                return None; // NULL
            }
            rest = behind;
            continue;
        };
        let value = behind.get(..length)?;
        if at == wanted {
            return Some((value, format == 1));
        }
        rest = &behind[length..];
    }
    None
}

fn word(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<2>()?;
    Some((usize::from(u16::from_be_bytes(*word)), rest))
}
