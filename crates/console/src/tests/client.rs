//! A client of a session: it writes messages and reads what comes back as lines.

use crate::{Ask, Command, Progress, Reply, Role, Session, Snapshot, show};

pub(super) struct Client {
    session: Session,
    sent: Vec<u8>,
}

impl Client {
    pub(super) fn new(role: Role) -> Client {
        Client { session: Session::new(role), sent: Vec::new() }
    }

    pub(super) fn message(mut self, tag: u8, body: &[u8]) -> Client {
        wire::encode::message(&mut self.sent, tag, |out| out.extend_from_slice(body));
        self
    }

    pub(super) fn query(self, text: &str) -> Client {
        self.message(b'Q', format!("{text}\0").as_bytes())
    }

    pub(super) fn parse(self, name: &str, text: &str) -> Client {
        self.message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
    }

    pub(super) fn bind(self, portal: &str, statement: &str, formats: &[u16]) -> Client {
        let mut body = format!("{portal}\0{statement}\0\0\0\0\0").into_bytes();
        for number in [&[formats.len() as u16], formats].concat() {
            body.extend_from_slice(&number.to_be_bytes());
        }
        self.message(b'B', &body)
    }

    /// `kind` is `S` or `P`.
    pub(super) fn describe(self, kind: char, name: &str) -> Client {
        self.message(b'D', format!("{kind}{name}\0").as_bytes())
    }

    pub(super) fn close(self, kind: char, name: &str) -> Client {
        self.message(b'C', format!("{kind}{name}\0").as_bytes())
    }

    pub(super) fn execute(self, portal: &str, rows_max: i32) -> Client {
        let body = [format!("{portal}\0").as_bytes(), &rows_max.to_be_bytes()].concat();
        self.message(b'E', &body)
    }

    pub(super) fn sync(self) -> Client {
        self.message(b'S', b"")
    }

    /// Feeds all that was written; each ask is carried out by `shell`. Returns the replies as lines.
    pub(super) fn run(&mut self, mut shell: impl FnMut(&Command) -> Reply) -> Vec<String> {
        let mut out = Vec::new();
        let mut sent = std::mem::take(&mut self.sent);
        loop {
            let Progress { consumed, ask } = self.session.on_bytes(&sent, &mut out);
            sent.drain(..consumed);
            match ask {
                Some(Ask::Execute(command)) => {
                    assert!(self.session.is_waiting());
                    let reply = shell(&command);
                    self.session.answer(reply, &mut out);
                }
                Some(Ask::Close) => {
                    let mut lines = lines(&out);
                    lines.push("closed".to_owned());
                    return lines;
                }
                None => break,
            }
        }
        assert_eq!(sent, b"", "whole messages were left over");
        lines(&out)
    }

    /// [`Client::run`] with a shell that shows tables and does everything else.
    pub(super) fn check(mut self, expected: &[&str]) {
        assert_eq!(self.run(obey), expected);
    }
}

/// Tables of an empty snapshot; success for everything else.
pub(super) fn obey(command: &Command) -> Reply {
    let snapshot = Snapshot { version: "Howdah 1.2.3".to_owned(), ..Snapshot::default() };
    match command {
        Command::Show(show) => Reply::Table(show::table(*show, &snapshot)),
        _ => Reply::Done,
    }
}

pub(super) fn refuse(command: &Command) -> Reply {
    panic!("{command:?} was asked for");
}

/// Messages of a server, one a line.
fn lines(mut bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(header) = wire::Header::peek(bytes) {
        let (message, rest) = bytes.split_at(usize::try_from(header.total()).unwrap());
        lines.push(line(header.tag, &message[wire::HEADER_SIZE..]));
        bytes = rest;
    }
    assert_eq!(bytes, b"", "half a message");
    lines
}

fn line(tag: u8, body: &[u8]) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match tag {
        b'1' => "ParseComplete".to_owned(),
        b'2' => "BindComplete".to_owned(),
        b'3' => "CloseComplete".to_owned(),
        b'n' => "NoData".to_owned(),
        b's' => "PortalSuspended".to_owned(),
        b'I' => "EmptyQueryResponse".to_owned(),
        b't' => format!("ParameterDescription {body:?}"),
        b'C' => format!("CommandComplete {}", text(&body[..body.len() - 1])),
        b'Z' => format!("ReadyForQuery {}", text(body)),
        b'T' => format!("RowDescription {}", description(body)),
        b'D' => format!("DataRow {}", row(body)),
        b'E' | b'N' => {
            let fields: Vec<String> =
                body.split(|&b| b == 0).filter(|field| !field.is_empty()).map(text).collect();
            let field = |kind| fields.iter().find_map(|f| f.strip_prefix(kind)).unwrap_or("-");
            format!("{} {} {}", field('S'), field('C'), field('M'))
        }
        other => panic!("a server does not send {:?}", char::from(other)),
    }
}

/// `name:oid` of each column, with `b` behind it if it is binary.
fn description(body: &[u8]) -> String {
    let count = u16::from_be_bytes([body[0], body[1]]);
    let mut rest = &body[2..];
    let mut columns = Vec::new();
    for _ in 0..count {
        let end = rest.iter().position(|&b| b == 0).unwrap();
        let (name, fields) = (&rest[..end], &rest[end + 1..end + 19]);
        let oid = u32::from_be_bytes([fields[6], fields[7], fields[8], fields[9]]);
        let binary = if fields[17] == 1 { "b" } else { "" };
        assert_eq!(fields[..6], [0; 6], "table and column");
        assert_eq!(fields[12..16], [0xff; 4], "type modifier");
        columns.push(format!("{}:{oid}{binary}", String::from_utf8_lossy(name)));
        rest = &rest[end + 19..];
    }
    assert_eq!(rest, b"");
    columns.join(" ")
}

/// Values, quoted; those that are not printable as bytes.
fn row(body: &[u8]) -> String {
    let count = u16::from_be_bytes([body[0], body[1]]);
    let mut rest = &body[2..];
    let mut values = Vec::new();
    for _ in 0..count {
        let (length, tail) = rest.split_first_chunk::<4>().unwrap();
        rest = tail;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            values.push("NULL".to_owned());
            continue;
        };
        let (value, tail) = rest.split_at(length);
        rest = tail;
        let printable = value.iter().all(|b| b.is_ascii_graphic() || *b == b' ');
        values.push(match printable {
            true => format!("'{}'", String::from_utf8_lossy(value)),
            false => format!("{value:?}"),
        });
    }
    assert_eq!(rest, b"");
    values.join(" ")
}
