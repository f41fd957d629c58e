//! Prepared statements and portals of a console session.
//!
//! A step that returns a failure has sent nothing. Knows neither roles nor who carries a command out.

use std::collections::HashMap;

use model::{Column, Table};
use wire::client::{BindHead, Parse, Target};
use wire::encode;

use crate::command::Command;
use crate::failure::Failure;
use crate::grammar;
use crate::render;
use crate::render::Formats;
use crate::reply::Reply;

/// Statements, and portals, that one session may keep. Drivers' caches hold some hundreds.
const OBJECTS_MAX: usize = 1_000;

#[derive(Default)]
pub(super) struct Extended {
    /// By name, the unnamed one's being empty.
    statements: HashMap<Vec<u8>, Statement>,
    portals: HashMap<Vec<u8>, Portal>,
}

/// A statement; `None` is an empty one.
type Statement = Option<Command>;

struct Portal {
    statement: Statement,
    formats: Formats,
    state: PortalState,
}

enum PortalState {
    Bound,
    /// Stopped by the row limit of an Execute, before the row of this number.
    Suspended(Table, usize),
    Done,
}

/// Which rows an Execute asks for.
pub(super) struct Rows {
    portal: Vec<u8>,
    /// At most so many; `None` is all.
    max: Option<usize>,
}

impl Extended {
    /// Parse: makes a statement.
    pub(super) fn parse(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let parse = Parse::read(body).map_err(|_| Failure::BrokenMessage("Parse"))?;
        if parse.name.is_empty() {
            self.statements.remove(parse.name);
        } else if self.statements.contains_key(parse.name) {
            return Err(Failure::DuplicateStatement(lossy(parse.name)));
        }
        let text = parse.query();
        // What follows the text's zero byte: the number of parameter types, and the types.
        if parse.rest.get(text.len() + 1..) != Some(&[0, 0]) {
            return Err(Failure::ParametersNotTaken);
        }
        let statement = grammar::parse(&String::from_utf8_lossy(text))?;
        if self.statements.len() >= OBJECTS_MAX {
            return Err(Failure::TooManyObjects);
        }
        self.statements.insert(parse.name.to_vec(), statement);
        out.extend_from_slice(&encode::PARSE_COMPLETE);
        Ok(())
    }

    /// Bind: makes a portal of a statement.
    pub(super) fn bind(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let broken = || Failure::BrokenMessage("Bind");
        let head = BindHead::peek(body).ok_or_else(broken)?;
        let statement = self
            .statements
            .get(head.statement)
            .ok_or_else(|| Failure::NoSuchStatement(lossy(head.statement)))?
            .clone();
        let columns = columns(&statement);
        let rest = body.get(head.size()..).ok_or_else(broken)?;
        // The formats of values, of which there may be one that holds for none of them.
        let (_, rest) = counted(rest).ok_or_else(broken)?;
        let rest = match rest.split_first_chunk::<2>().ok_or_else(broken)? {
            ([0, 0], rest) => rest,
            _ => return Err(Failure::ParametersNotTaken),
        };
        let (codes, rest) = counted(rest).ok_or_else(broken)?;
        if !rest.is_empty() {
            return Err(broken());
        }
        let formats = Formats::from_codes(codes, columns.len())?;
        if head.portal.is_empty() {
            self.portals.remove(head.portal);
        } else if self.portals.contains_key(head.portal) {
            return Err(Failure::DuplicatePortal(lossy(head.portal)));
        }
        if self.portals.len() >= OBJECTS_MAX {
            return Err(Failure::TooManyObjects);
        }
        let portal = Portal { statement, formats, state: PortalState::Bound };
        self.portals.insert(head.portal.to_vec(), portal);
        out.extend_from_slice(&encode::BIND_COMPLETE);
        Ok(())
    }

    /// Describe: tells a statement's or portal's columns, which nothing need be carried out for.
    pub(super) fn describe(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        match wire::client::target(body).map_err(|_| Failure::BrokenMessage("Describe"))? {
            (Target::Statement, name) => {
                let statement =
                    self.statements.get(name).ok_or_else(|| Failure::NoSuchStatement(lossy(name)))?;
                render::no_parameters(out);
                render::description(out, columns(statement), &Formats::default());
            }
            (Target::Portal, name) => {
                let portal = self.portals.get(name).ok_or_else(|| Failure::NoSuchPortal(lossy(name)))?;
                render::description(out, columns(&portal.statement), &portal.formats);
            }
        }
        Ok(())
    }

    /// Close: forgets a statement or portal, if it is there.
    pub(super) fn close(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        match wire::client::target(body).map_err(|_| Failure::BrokenMessage("Close"))? {
            (Target::Statement, name) => drop(self.statements.remove(name)),
            (Target::Portal, name) => drop(self.portals.remove(name)),
        }
        out.extend_from_slice(&encode::CLOSE_COMPLETE);
        Ok(())
    }

    /// Execute: goes on with a portal. A command that must be carried out first is returned, and
    /// [`Extended::answer`] sends its rows.
    pub(super) fn execute(
        &mut self,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(Command, Rows)>, Failure> {
        let (name, max) = read_execute(body).ok_or(Failure::BrokenMessage("Execute"))?;
        let portal = self.portals.get_mut(name).ok_or_else(|| Failure::NoSuchPortal(lossy(name)))?;
        let Some(command) = portal.statement.clone() else {
            out.extend_from_slice(&encode::EMPTY_QUERY);
            return Ok(None);
        };
        let rows = Rows { portal: name.to_vec(), max };
        match portal.state {
            PortalState::Bound => return Ok(Some((command, rows))),
            PortalState::Suspended(..) => portal.send(&command, rows.max, out),
            PortalState::Done if command.columns().is_empty() => {
                return Err(Failure::PortalDone(lossy(name)));
            }
            PortalState::Done => super::complete(out, &command),
        }
        Ok(None)
    }

    /// Sends the outcome of a command that [`Extended::execute`] returned.
    pub(super) fn answer(
        &mut self,
        rows: &Rows,
        command: &Command,
        reply: Reply,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        // Nothing was fed since the Execute, so that the portal is there.
        let Some(portal) = self.portals.get_mut(&rows.portal) else { return Ok(()) };
        portal.state = PortalState::Done;
        match reply {
            Reply::Failed(failure) => return Err(failure),
            Reply::Table(table) => {
                portal.state = PortalState::Suspended(table, 0);
                portal.send(command, rows.max, out);
            }
            Reply::Noticed(notice) => {
                render::notice(out, notice);
                super::complete(out, command);
            }
            Reply::Done => super::complete(out, command),
        }
        Ok(())
    }

    /// A transaction ends.
    pub(super) fn close_portals(&mut self) {
        self.portals.clear();
    }

    /// `DISCARD ALL`.
    pub(super) fn close_statements(&mut self) {
        self.statements.clear();
    }

    /// A Query message ends the unnamed statement, and as a transaction of its own all portals.
    pub(super) fn forget_unnamed(&mut self) {
        self.statements.remove(b"".as_slice());
        self.portals.clear();
    }
}

impl Portal {
    /// Sends the next rows, and how it ended: PortalSuspended if it was the limit that ended it.
    fn send(&mut self, command: &Command, max: Option<usize>, out: &mut Vec<u8>) {
        let PortalState::Suspended(table, next) = &mut self.state else { return };
        let left = table.rows.get(*next..).unwrap_or_default();
        let count = max.map_or(left.len(), |max| max.min(left.len()));
        super::rows(out, &table.columns, &self.formats, &left[..count]);
        *next += count;
        if max == Some(count) {
            render::portal_suspended(out);
        } else {
            super::complete(out, command);
            self.state = PortalState::Done;
        }
    }
}

fn columns(statement: &Statement) -> &'static [Column] {
    statement.as_ref().map_or(&[], Command::columns)
}

/// A count and so many numbers of two bytes.
fn counted(bytes: &[u8]) -> Option<(impl ExactSizeIterator<Item = u16> + '_, &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<2>()?;
    let (numbers, rest) = rest.split_at_checked(2 * usize::from(u16::from_be_bytes(*count)))?;
    Some((numbers.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])), rest))
}

/// An Execute's portal and its row limit; none or a negative one is no limit.
fn read_execute(body: &[u8]) -> Option<(&[u8], Option<usize>)> {
    let (rest, max) = body.split_last_chunk::<4>()?;
    let (zero, name) = rest.split_last()?;
    if *zero != 0 || name.contains(&0) {
        return None;
    }
    let max = usize::try_from(i32::from_be_bytes(*max)).ok().filter(|&max| max > 0);
    Some((name, max))
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
