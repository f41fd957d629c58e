//! One cell of the matrix: a kind of state, an ending, a protocol; played twice and compared.

use super::kind::{Ending, Holds, Kind, Protocol};
use super::player::{Player, is_ended};
use super::sides::{Direct, Lane, Moment, Pooled, Side, View};
use super::stage::Stage;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Transaction,
    Session,
}

#[derive(Clone, Copy)]
pub struct Cell {
    pub kind: &'static Kind,
    pub ending: Ending,
    pub protocol: Protocol,
    pub mode: Mode,
}

impl Cell {
    /// If PostgreSQL has such a case at all.
    pub fn makes_sense(&self) -> bool {
        let in_block = matches!(self.ending, Ending::Commit | Ending::Rollback | Ending::Error);
        self.kind.protocols.contains(&self.protocol) && !(self.kind.is_alone && in_block)
    }
}

/// What was heard, chapter by chapter.
type Story = Vec<(&'static str, Vec<String>)>;

/// The cell holds, or what is wrong.
pub fn check(stage: &Stage, lane: &mut Lane, cell: Cell, alone: &(View, View)) -> Result<(), String> {
    let kind = cell.kind;
    let direct = tell(&mut Direct { stage, lane, kind }, cell).map_err(|why| format!("directly: {why}"))?;
    let entry = match cell.mode {
        Mode::Transaction => Pooled::entry(kind, lane),
        Mode::Session => Pooled::session_entry(lane),
    };
    let pooled = tell(&mut Pooled { stage, lane, kind, entry, plain: &alone.0, other: &alone.1 }, cell)?;
    for ((chapter, direct_heard), (_, heard)) in direct.iter().zip(&pooled) {
        let holds = match *chapter {
            SERVER_GONE => is_ended(direct_heard) && is_right_after_loss(cell, heard, &direct),
            _ => heard == direct_heard,
        };
        if !holds {
            return Err(format!("{chapter}: heard\n    {heard:?}\n  in place of\n    {direct_heard:?}"));
        }
    }
    Ok(())
}

/// A client whose server is gone is told so, or has all that it had: never less without a word.
fn is_right_after_loss(cell: Cell, heard: &[String], direct: &Story) -> bool {
    let may_end = cell.ending == Ending::ServerKilledMidway
        || cell.kind.holds == Holds::Pins
        || cell.mode == Mode::Session;
    // Who listens is warned that the connection which did it for him was lost with the others.
    let unwarned: Vec<&String> =
        heard.iter().filter(|line| !line.contains("M=notifications may have been lost")).collect();
    let is_same = |before: &Vec<String>| before.iter().eq(unwarned.iter().copied());
    let as_before = direct.iter().any(|(chapter, before)| *chapter == LOOKED && is_same(before));
    as_before || may_end && is_ended(heard)
}

/// Plays the owner's part, and gives the others their turns.
fn tell(side: &mut dyn Side, cell: Cell) -> Result<Story, String> {
    let (kind, protocol) = (cell.kind, cell.protocol);
    let mut owner = side.login(protocol)?;
    let mut story = vec![("as it is made", make(&mut owner, cell)?)];
    side.others(Moment::Made)?;
    story.push((LOOKED, owner.each(kind.look)?));
    match cell.ending {
        Ending::Alone | Ending::Commit | Ending::Rollback | Ending::Error => {
            side.others(Moment::Looked)?;
            story.push(("in a transaction block", owner.block(kind.look, "commit")?));
            story.push(("as it is ended", owner.each(kind.end)?));
            if !kind.end.is_empty() {
                side.others(Moment::Ended)?;
            }
            story.push(("after its end", owner.each(kind.look)?));
            owner.raw.close();
            side.others(Moment::Gone)?;
            return Ok(story);
        }
        Ending::ClientKilled => {
            story.push(("in its last transaction", owner.each("begin\nselect 1")?));
            owner.raw.reset();
        }
        Ending::ServerKilled => {
            // The owner may have its server a little longer than it knows, while that is asked what there is.
            side.others(Moment::Looked)?;
            side.kill_servers()?;
            story.push((SERVER_GONE, owner.each(kind.look)?));
            owner.raw.close();
        }
        Ending::ServerKilledMidway => {
            story.push(("before the server goes", owner.each("begin\nselect 1")?));
            side.kill_servers()?;
            story.push((SERVER_GONE, owner.each("select 2")?));
            drop(owner);
        }
    }
    side.others(Moment::Gone)?;
    let mut next = side.login(protocol)?;
    if !kind.is_private {
        story.push(("in a session after it", next.each(kind.look)?));
    }
    next.raw.close();
    side.others(Moment::Gone)?;
    Ok(story)
}

fn make(owner: &mut Player, cell: Cell) -> Result<Vec<String>, String> {
    let make = cell.kind.make;
    match cell.ending {
        _ if cell.kind.is_alone => owner.each(make),
        Ending::Alone => owner.each(make),
        Ending::Rollback => owner.block(make, "rollback"),
        Ending::Error => owner.block(&format!("{make}\nselect 1/0"), "commit"),
        _ => owner.block(make, "commit"),
    }
}

const LOOKED: &str = "in the next transactions";
const SERVER_GONE: &str = "after the server's end";
