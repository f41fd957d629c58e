//! Messages as words, both ways: `P(s1,select 1) S` and `1 T D(x) C(SELECT 1) Z(I)`.

use wire::Header;
use wire::encode::{self, Severity};
use wire::server::{ErrorFields, TransactionStatus};

/// A word's letters and what it has in parentheses.
fn split(word: &str) -> (&str, &str) {
    match word.split_once('(') {
        Some((letters, rest)) => (letters, rest.strip_suffix(')').expect("a parenthesis is not closed")),
        None => (word, ""),
    }
}

/// The words of a line: blanks within parentheses do not separate.
pub fn words(line: &str) -> Vec<&str> {
    let mut depth = 0;
    line.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && c == ' '
    })
    .filter(|word| !word.is_empty())
    .collect()
}

fn pair(text: &str) -> (&str, &str) {
    text.split_once(',').unwrap_or((text, ""))
}

/// A server's name for a statement is written `#1`.
fn full(name: &str) -> String {
    name.strip_prefix('#').map_or(name.to_owned(), |number| format!("howdah_{number}"))
}

fn short(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.strip_prefix("howdah_").map_or(name.to_string(), |number| format!("#{number}"))
}

/// The rest of a Parse of this text, without types.
pub fn statement(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0, 0, 0]].concat()
}

/// What a client sends.
pub fn client_bytes(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for word in words(line) {
        let (letters, text) = split(word);
        let (first, second) = pair(text);
        match letters {
            "Q" => drop(encode::query(&mut out, text.as_bytes())),
            "P" => drop(encode::parse(&mut out, full(first).as_bytes(), &statement(second))),
            "B" => drop(encode::bind_text(&mut out, second.as_bytes(), full(first).as_bytes(), &[])),
            "D" => drop(encode::target(&mut out, b'D', b'S', full(text).as_bytes())),
            "Dp" => drop(encode::target(&mut out, b'D', b'P', text.as_bytes())),
            "C" => drop(encode::target(&mut out, b'C', b'S', full(text).as_bytes())),
            "Cp" => drop(encode::target(&mut out, b'C', b'P', text.as_bytes())),
            "E" => drop(encode::message(&mut out, b'E', |out| {
                encode::cstr(out, first.as_bytes());
                out.extend_from_slice(&second.parse().unwrap_or(0_u32).to_be_bytes());
            })),
            "d" => drop(encode::message(&mut out, b'd', |out| out.extend_from_slice(text.as_bytes()))),
            "f" => drop(encode::message(&mut out, b'f', |out| encode::cstr(out, text.as_bytes()))),
            "S" | "H" | "X" | "c" | "F" => drop(encode::message(&mut out, letters.as_bytes()[0], |_| {})),
            _ => panic!("no client says {word}"),
        }
    }
    out
}

/// A question about the session's state: the letters of its kinds, and the settings whose values it asks for.
fn census(text: &str) -> String {
    let words = text.split(" UNION ALL ").map(|part| {
        let letter = part.strip_prefix("SELECT '").and_then(|part| part.get(..1)).expect("a letter");
        let name = part.strip_prefix("SELECT 'v',E'").and_then(|part| part.split('\'').next());
        name.unwrap_or(letter).to_owned()
    });
    format!("census {}", words.collect::<String>())
}

/// What a client sent, in words.
pub fn client_words(bytes: &[u8]) -> String {
    say(bytes, |tag, body| {
        let mut parts = body.split(|&byte| byte == 0);
        let mut part = || parts.next().unwrap_or_default();
        match tag {
            b'Q' if body.starts_with(b"SELECT '") => ("Q".into(), census(&String::from_utf8_lossy(part()))),
            b'Q' | b'f' => (char::from(tag).into(), String::from_utf8_lossy(part()).into()),
            b'P' => {
                let name = short(part());
                ("P".into(), format!("{name},{}", String::from_utf8_lossy(part())))
            }
            b'B' => {
                let portal = String::from_utf8_lossy(part()).to_string();
                let statement = short(part());
                ("B".into(), if portal.is_empty() { statement } else { format!("{statement},{portal}") })
            }
            b'C' | b'D' => {
                let mark = if body[0] == b'P' { "p" } else { "" };
                (format!("{}{mark}", char::from(tag)), short(&part()[1..]))
            }
            b'E' => {
                let portal = String::from_utf8_lossy(part()).to_string();
                let rows = u32::from_be_bytes(*body.last_chunk().expect("an Execute has a count"));
                ("E".into(), if rows == 0 { portal } else { format!("{portal},{rows}") })
            }
            b'd' => ("d".into(), String::from_utf8_lossy(body).into()),
            _ => (char::from(tag).into(), String::new()),
        }
    })
}

/// What a server sends.
pub fn server_bytes(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for word in words(line) {
        let (letters, text) = split(word);
        let (code, message) = text.split_once(' ').unwrap_or((text, ""));
        match letters {
            "C" => encode::command_complete(&mut out, text.as_bytes()),
            "D" if text.matches(',').count() == 2 => {
                let columns =
                    text.split(',').map(|part| Some(part.as_bytes()).filter(|part| !part.is_empty()));
                encode::data_row(&mut out, columns.collect::<Vec<_>>().into_iter());
            }
            "D" => encode::data_row(&mut out, [Some(text.as_bytes())].into_iter()),
            "E" => encode::report(&mut out, Severity::Error, code, message, None),
            "Fatal" => encode::report(&mut out, Severity::Fatal, code, message, None),
            "N" => encode::report(&mut out, Severity::Notice, "00000", text, None),
            "A" => encode::notification(&mut out, 1, code.as_bytes(), message.as_bytes()),
            "S" => {
                let (name, value) = text.split_once('=').expect("name=value");
                encode::parameter_status(&mut out, name.as_bytes(), value.as_bytes());
            }
            "Z" => {
                let status = TransactionStatus::from_byte(text.as_bytes()[0]).expect("I, T or E");
                encode::ready_for_query(&mut out, status);
            }
            "d" => drop(encode::message(&mut out, b'd', |out| out.extend_from_slice(text.as_bytes()))),
            // Columns by their names, or an empty body; parameters by anything.
            "T" if !text.is_empty() => drop(encode::message(&mut out, b'T', |out| columns(out, text))),
            "t" if !text.is_empty() => {
                encode::message(&mut out, b't', |out| out.extend_from_slice(text.as_bytes()));
            }
            _ => {
                assert!(letters.len() == 1 && text.is_empty(), "no server says {word}");
                encode::message(&mut out, letters.as_bytes()[0], |_| {});
            }
        }
    }
    out
}

/// Columns of these names, all of one table and type.
fn columns(out: &mut Vec<u8>, names: &str) {
    out.extend_from_slice(&(names.split(',').count() as u16).to_be_bytes());
    for name in names.split(',') {
        encode::cstr(out, name.as_bytes());
        out.extend_from_slice(&[0, 0, 0, 9, 0, 1, 0, 0, 0, 23, 0, 4, 255, 255, 255, 255, 0, 0]);
    }
}

/// What a server sent, in words.
pub fn server_words(bytes: &[u8]) -> String {
    say(bytes, |tag, body| {
        let text = || String::from_utf8_lossy(body).trim_end_matches('\0').to_owned();
        match tag {
            b'E' | b'N' => {
                let fields = ErrorFields::parse(body);
                let field =
                    |field: Option<&[u8]>| String::from_utf8_lossy(field.unwrap_or_default()).to_string();
                let message = field(fields.message);
                match (tag, fields.is_fatal()) {
                    (b'N', _) => ("N".into(), message),
                    (_, is_fatal) => (
                        if is_fatal { "Fatal" } else { "E" }.into(),
                        format!("{} {message}", field(fields.code)).trim_end().to_owned(),
                    ),
                }
            }
            b'A' => {
                let text = String::from_utf8_lossy(&body[4..]).trim_end_matches('\0').replace('\0', " ");
                ("A".into(), text)
            }
            b'D' => ("D".into(), String::from_utf8_lossy(body.get(6..).unwrap_or_default()).into()),
            b'S' => ("S".into(), text().replace('\0', "=")),
            b'C' | b'Z' | b'd' | b't' => (char::from(tag).into(), text()),
            b'T' => {
                // Every name is followed by eighteen bytes of numbers.
                let mut rest = body.get(2..).unwrap_or_default();
                let mut names = Vec::new();
                while let Some(end) = rest.iter().position(|&byte| byte == 0) {
                    names.push(String::from_utf8_lossy(&rest[..end]).into_owned());
                    rest = rest.get(end + 19..).unwrap_or_default();
                }
                ("T".into(), names.join(","))
            }
            _ => (char::from(tag).into(), String::new()),
        }
    })
}

fn say(mut bytes: &[u8], word: impl Fn(u8, &[u8]) -> (String, String)) -> String {
    let mut line = Vec::new();
    while let Some(header) = Header::peek(bytes) {
        let Some((message, rest)) = bytes.split_at_checked(header.total() as usize) else { break };
        let (letters, text) = word(header.tag, &message[5..]);
        line.push(if text.is_empty() { letters } else { format!("{letters}({text})") });
        bytes = rest;
    }
    if !bytes.is_empty() {
        line.push(format!("+{} bytes", bytes.len()));
    }
    line.join(" ")
}
