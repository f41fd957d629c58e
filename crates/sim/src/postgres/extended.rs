//! The extended protocol: statements, portals, and what each message of it is answered.

use std::rc::Rc;

use wire::client::{BindHead, Parse, Target};
use wire::encode;

use super::{Outcome, Portal, Postgres, REFUSED, sql, state};

/// SQLSTATE and words.
type Refused = (&'static str, String);

impl Postgres {
    pub(super) fn extended(&mut self, tag: u8, body: &[u8]) -> Result<(), Refused> {
        match tag {
            b'P' => self.parse(body),
            b'B' => self.bind(body),
            b'D' | b'C' => {
                let (kind, name) =
                    wire::client::target(body).map_err(|_| ("08P01", "bad target".to_owned()))?;
                if tag == b'C' {
                    match kind {
                        Target::Statement => drop(self.statements.remove(name)),
                        Target::Portal => drop(self.portals.remove(name)),
                    }
                    self.out.extend_from_slice(&encode::CLOSE_COMPLETE);
                    return Ok(());
                }
                self.describe(kind, name)
            }
            b'E' => {
                let end = body.iter().position(|&byte| byte == 0).unwrap_or(body.len());
                let most = body
                    .get(end + 1..end + 5)
                    .map_or(0, |word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]) as usize);
                self.execute_portal(&body[..end], most)
            }
            _ => Err(("08P01", "unexpected message".to_owned())),
        }
    }

    fn parse(&mut self, body: &[u8]) -> Result<(), Refused> {
        let parse = Parse::read(body).map_err(|_| ("08P01", "bad Parse".to_owned()))?;
        if parse.name.is_empty() {
            self.statements.remove(&b""[..]);
        }
        let text = parse.query();
        self.refuse_if_failed(text)?;
        if text.starts_with(b"SYNTAX") {
            return Err(("42601", "syntax error".to_owned()));
        }
        if self.statements.contains_key(parse.name) {
            let name = String::from_utf8_lossy(parse.name);
            return Err(("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        self.keep_statement(parse.name, text, false);
        self.out.extend_from_slice(&encode::PARSE_COMPLETE);
        Ok(())
    }

    fn statement(&self, name: &[u8]) -> Result<Rc<[u8]>, Refused> {
        self.statements.get(name).map(|statement| Rc::clone(&statement.text)).ok_or_else(|| {
            ("26000", format!("prepared statement \"{}\" does not exist", String::from_utf8_lossy(name)))
        })
    }

    fn bind(&mut self, body: &[u8]) -> Result<(), Refused> {
        let head = BindHead::peek(body).ok_or(("08P01", "bad Bind".to_owned()))?;
        let text = self.statement(head.statement)?;
        if self.refuses && state::keeps_server(&text) {
            return Err((REFUSED, "session state is refused".to_owned()));
        }
        self.refuse_if_failed(&text)?;
        // No formats, the count of values, one length, the value: as the scripts write it.
        let value = body.get(head.size() + 8..body.len().saturating_sub(2)).unwrap_or_default().to_vec();
        if !head.portal.is_empty() && self.portals.contains_key(head.portal) {
            return Err(("42P03", "portal already exists".to_owned()));
        }
        self.portals.insert(head.portal.to_vec(), Portal { text, value, sent: 0 });
        self.out.extend_from_slice(&encode::BIND_COMPLETE);
        Ok(())
    }

    fn describe(&mut self, kind: Target, name: &[u8]) -> Result<(), Refused> {
        let text = match kind {
            Target::Statement => self.statement(name)?,
            Target::Portal => {
                let portal = self.portals.get(name).ok_or(("34000", "no portal".to_owned()))?;
                Rc::clone(&portal.text)
            }
        };
        if self.has_rows(&text) {
            self.refuse_if_failed(&text)?;
        }
        if kind == Target::Statement {
            encode::message(&mut self.out, b't', |out| out.extend_from_slice(&[0, 1, 0, 0, 0, 25]));
        }
        if self.has_rows(&text) {
            self.row_description();
        } else {
            self.out.extend_from_slice(&encode::NO_DATA);
        }
        Ok(())
    }

    fn execute_portal(&mut self, name: &[u8], most: usize) -> Result<(), Refused> {
        let portal = self.portals.get(name).ok_or(("34000", "no portal".to_owned()))?;
        let (text, value, sent) = (Rc::clone(&portal.text), portal.value.clone(), portal.sent);
        self.refuse_if_failed(&text)?;
        // What a PREPARE says of parameters is not about its own.
        let text = if text.starts_with(b"PREPARE") { text.to_vec() } else { sql::with_value(&text, &value) };
        let (outcome, now_sent) = self.execute(&text, false, sent, most);
        if let Some(portal) = self.portals.get_mut(name) {
            portal.sent = now_sent;
        }
        match outcome {
            Outcome::Error(code, text) => Err((code, text)),
            Outcome::Suspended => {
                encode::message(&mut self.out, b's', |_| {});
                Ok(())
            }
            Outcome::Complete | Outcome::Runs | Outcome::Copies => Ok(()),
        }
    }
}
