//! The messages of a server, for servers that lie: right ones to begin with, wrong ones by hand.

use crate::message::{count_of, message, string, value};

pub fn authentication_ok() -> Vec<u8> {
    authentication(0, &[])
}

/// Any authentication request: its code and what follows.
pub fn authentication(code: i32, rest: &[u8]) -> Vec<u8> {
    let mut body = code.to_be_bytes().to_vec();
    body.extend_from_slice(rest);
    message(b'R', &body)
}

/// AuthenticationSASL with these mechanisms.
pub fn authentication_sasl(mechanisms: &[&str]) -> Vec<u8> {
    let mut rest = Vec::new();
    mechanisms.iter().for_each(|mechanism| string(&mut rest, mechanism));
    rest.push(0);
    authentication(10, &rest)
}

pub fn parameter_status(name: &str, setting: &str) -> Vec<u8> {
    let mut body = Vec::new();
    string(&mut body, name);
    string(&mut body, setting);
    message(b'S', &body)
}

pub fn backend_key_data(pid: u32, secret: &[u8]) -> Vec<u8> {
    let mut body = pid.to_be_bytes().to_vec();
    body.extend_from_slice(secret);
    message(b'K', &body)
}

/// ReadyForQuery with the status `I`, `T` or `E`.
pub fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

/// RowDescription of text columns.
pub fn row_description(columns: &[&str]) -> Vec<u8> {
    const TEXT: u32 = 25;
    let mut body = count_of(columns.len()).to_vec();
    for column in columns {
        string(&mut body, column);
        // No table, no column of it; then type, size, modifier and text format.
        body.extend_from_slice(&[0; 6]);
        body.extend_from_slice(&TEXT.to_be_bytes());
        body.extend_from_slice(&(-1_i16).to_be_bytes());
        body.extend_from_slice(&(-1_i32).to_be_bytes());
        body.extend_from_slice(&[0; 2]);
    }
    message(b'T', &body)
}

pub fn data_row(values: &[Option<&str>]) -> Vec<u8> {
    let mut body = count_of(values.len()).to_vec();
    values.iter().for_each(|text| value(&mut body, text.map(str::as_bytes)));
    message(b'D', &body)
}

pub fn command_complete(tag: &str) -> Vec<u8> {
    let mut body = Vec::new();
    string(&mut body, tag);
    message(b'C', &body)
}

pub fn error(severity: &str, sqlstate: &str, text: &str) -> Vec<u8> {
    fields(b'E', severity, sqlstate, text)
}

pub fn notice(text: &str) -> Vec<u8> {
    fields(b'N', "NOTICE", "00000", text)
}

/// NotificationResponse.
pub fn notification(pid: u32, channel: &str, payload: &str) -> Vec<u8> {
    let mut body = pid.to_be_bytes().to_vec();
    string(&mut body, channel);
    string(&mut body, payload);
    message(b'A', &body)
}

pub fn parse_complete() -> Vec<u8> {
    message(b'1', &[])
}

pub fn bind_complete() -> Vec<u8> {
    message(b'2', &[])
}

/// The answer to `select` of one value, ReadyForQuery included.
pub fn one_value(text: &str) -> Vec<u8> {
    [row_description(&["value"]), data_row(&[Some(text)]), command_complete("SELECT 1"), ready(b'I')].concat()
}

/// What a healthy server says after the password: parameters, key, ReadyForQuery.
pub fn welcome(pid: u32) -> Vec<u8> {
    let mut bytes = authentication_ok();
    for (name, setting) in PARAMETERS {
        bytes.extend(parameter_status(name, setting));
    }
    bytes.extend(backend_key_data(pid, &pid.wrapping_mul(7919).to_be_bytes()));
    bytes.extend(ready(b'I'));
    bytes
}

fn fields(tag: u8, severity: &str, sqlstate: &str, text: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (letter, field) in [("S", severity), ("V", severity), ("C", sqlstate), ("M", text)] {
        body.extend_from_slice(letter.as_bytes());
        string(&mut body, field);
    }
    body.push(0);
    message(tag, &body)
}

const PARAMETERS: [(&str, &str); 8] = [
    ("server_version", "15.0 (fake)"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
];
