//! The commands whose business is the session: what each one does, from its own grammar.
//!
//! What does not fit the grammar is `Unread`: PostgreSQL will refuse it, or knows more than we do.

use super::cursor::Cursor;
use super::verb::Verb;
use super::{Discard, Effect, Opaque, Statement, Transaction, calls, databases, set};
use crate::lexer::Token;
use crate::name::is_temp_schema;
use crate::name::{Name, Part};

/// Gives the effects of a statement, in order.
pub(super) fn each<'a>(statement: &Statement<'a>, visit: &mut impl FnMut(Effect<'a>)) {
    let mut cursor = Cursor::new(statement);
    while cursor.eat_symbol(b'(') {}
    let Some(Token::Word(word)) = cursor.token else { return visit(Effect::Unread) };
    let verb = Verb::of(word);
    cursor.advance();
    let runs_calls = match command(verb, &mut cursor, visit) {
        None => {
            visit(Effect::Unread);
            true
        }
        Some(runs_calls) => runs_calls,
    };
    if runs_calls {
        calls::each(statement, verb, visit);
    } else if has_unread(Cursor::new(statement)) {
        visit(Effect::Unread);
    }
}

fn has_unread(mut cursor: Cursor<'_>) -> bool {
    while let Some(token) = cursor.token {
        if token == Token::Unread {
            return true;
        }
        cursor.advance();
    }
    false
}

/// What the command itself does, and whether the functions in it are called when it runs.
fn command<'a>(verb: Verb, cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) -> Option<bool> {
    match verb {
        Verb::Plain => {}
        Verb::Alter => databases::alter(cursor, visit),
        Verb::Unknown => return None,
        Verb::Set => set::set(cursor, visit)?,
        Verb::Reset => set::reset(cursor, visit)?,
        Verb::Begin | Verb::Commit | Verb::Rollback | Verb::Savepoint | Verb::Release => {
            visit(Effect::Transaction(transaction(verb, cursor)?));
        }
        Verb::Prepare => {
            prepare(cursor, visit)?;
            return Some(false);
        }
        Verb::Create => return Some(create(cursor, visit)),
        Verb::Drop => drop(cursor, visit),
        Verb::Declare => declare(cursor, visit)?,
        Verb::Explain => explain(cursor, visit),
        Verb::Do => visit(Effect::Opaque(Opaque::Do)),
        Verb::Call => visit(Effect::Opaque(Opaque::Call)),
        Verb::Load => visit(Effect::Load),
        Verb::Notify => visit(Effect::Notify),
        Verb::Execute => visit(Effect::Execute(cursor.name()?)),
        Verb::Discard => visit(Effect::Discard(discard(cursor)?)),
        Verb::Listen | Verb::Unlisten | Verb::Close | Verb::Deallocate => {
            let effect = of_one_name(verb, cursor)?;
            cursor.token.is_none().then_some(())?;
            visit(effect);
        }
    }
    Some(true)
}

fn of_one_name<'a>(verb: Verb, cursor: &mut Cursor<'a>) -> Option<Effect<'a>> {
    if verb == Verb::Deallocate {
        let mut ahead = *cursor;
        if ahead.eat("prepare") && ahead.token.is_some() {
            *cursor = ahead;
        }
    }
    Some(match verb {
        Verb::Listen => Effect::Listen(cursor.name()?),
        Verb::Unlisten if cursor.eat_symbol(b'*') => Effect::UnlistenAll,
        Verb::Unlisten => Effect::Unlisten(cursor.name()?),
        Verb::Close if cursor.eat("all") => Effect::CloseAll,
        Verb::Close => Effect::Close(cursor.name()?),
        _ if cursor.eat("all") => Effect::DeallocateAll,
        _ => Effect::Deallocate(cursor.name()?),
    })
}

fn discard(cursor: &mut Cursor<'_>) -> Option<Discard> {
    let words = [
        ("all", Discard::All),
        ("plans", Discard::Plans),
        ("sequences", Discard::Sequences),
        ("temp", Discard::Temp),
        ("temporary", Discard::Temp),
    ];
    let found = words.iter().find(|(word, _)| cursor.eat(word))?;
    cursor.token.is_none().then_some(found.1)
}

fn transaction<'a>(verb: Verb, cursor: &mut Cursor<'a>) -> Option<Transaction<'a>> {
    if matches!(verb, Verb::Commit | Verb::Rollback) && cursor.eat("prepared") {
        return Some(Transaction::FinishPrepared);
    }
    if verb == Verb::Savepoint {
        return Some(Transaction::Savepoint(cursor.name()?));
    }
    if verb == Verb::Release {
        return Some(Transaction::Release(savepoint(cursor)?));
    }
    let _ = cursor.eat("work") || cursor.eat("transaction");
    if verb == Verb::Begin {
        return Some(Transaction::Begin);
    }
    if verb == Verb::Rollback && cursor.eat("to") {
        return Some(Transaction::RollbackTo(savepoint(cursor)?));
    }
    let chain = cursor.eat_all(&["and", "chain"]);
    if !chain {
        cursor.eat_all(&["and", "no", "chain"]);
    }
    cursor.token.is_none().then_some(())?;
    Some(if verb == Verb::Commit { Transaction::Commit { chain } } else { Transaction::Rollback { chain } })
}

/// `[SAVEPOINT] name`, where the name may be that word.
fn savepoint<'a>(cursor: &mut Cursor<'a>) -> Option<Name<'a>> {
    let mut ahead = *cursor;
    if ahead.eat("savepoint") && ahead.is_name() {
        *cursor = ahead;
    }
    cursor.name()
}

fn prepare<'a>(cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) -> Option<()> {
    let mut ahead = *cursor;
    if ahead.eat("transaction") && matches!(ahead.token, Some(Token::String(_))) {
        visit(Effect::Transaction(Transaction::Prepare));
        return Some(());
    }
    let name = cursor.name()?;
    cursor.skip_parentheses();
    cursor.eat("as").then_some(())?;
    visit(Effect::Prepare { name, body: cursor.tail() });
    Some(())
}

fn declare<'a>(cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) -> Option<()> {
    let name = cursor.name()?;
    while !cursor.eat("cursor") {
        cursor.token?;
        cursor.advance();
    }
    let hold = cursor.eat_all(&["with", "hold"]);
    visit(Effect::Declare { name, hold });
    Some(())
}

/// The statement within runs if ANALYZE is said; then it does what it does alone. A statement that it names must be there.
fn explain<'a>(cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) {
    let mut runs = false;
    if cursor.is_symbol(b'(') {
        let mut ahead = *cursor;
        cursor.skip_parentheses();
        // EXPLAIN (SELECT ...) has no options.
        while ahead.at() < cursor.at() {
            runs |= ahead.is("analyze") || ahead.is("analyse");
            ahead.advance();
        }
    }
    while cursor.is("analyze") || cursor.is("analyse") || cursor.is("verbose") {
        runs |= !cursor.is("verbose");
        cursor.advance();
    }
    let mut within = |effect: Effect<'a>| match effect {
        Effect::Execute(name) if !runs => visit(Effect::Explain(name)),
        effect if runs => visit(effect),
        _ => {}
    };
    if cursor.eat("create") {
        create(cursor, &mut within);
    } else if cursor.eat("execute") {
        within(cursor.name().map_or(Effect::Unread, Effect::Execute));
    }
}

/// Behind the word CREATE. True if functions that are named in it may be called at once.
fn create<'a>(cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) -> bool {
    const DEFINITIONS: [&str; 9] =
        ["function", "procedure", "view", "rule", "trigger", "domain", "type", "policy", "aggregate"];
    if cursor.eat("database") {
        databases::create(*cursor, visit);
        return true;
    }
    cursor.eat_all(&["or", "replace"]);
    let mut ahead = *cursor;
    let _ = ahead.eat("local") || ahead.eat("global");
    let is_temp = ahead.eat("temp") || ahead.eat("temporary");
    if is_temp {
        *cursor = ahead;
    }
    let runs_calls = !DEFINITIONS.iter().any(|word| cursor.is(word));
    if !is_temp {
        let _ = cursor.eat("unlogged");
    }
    let _ = cursor.eat("recursive");
    let is_kind = cursor.is("table") || cursor.is("view") || cursor.is("sequence");
    if is_temp && is_kind {
        cursor.advance();
        cursor.eat_all(&["if", "not", "exists"]);
        match cursor.name() {
            Some(name) => visit(Effect::CreateTemp { name, on_commit_drop: drops_on_commit(*cursor) }),
            None => visit(Effect::Unread),
        }
    } else if is_temp && !cursor.is("language") {
        visit(Effect::Unread);
    }
    rest_of_create(cursor, is_temp, visit);
    runs_calls
}

/// CREATE ... AS EXECUTE, and names in the session's own schema, which may make temporary what names them.
fn rest_of_create<'a>(cursor: &mut Cursor<'a>, is_temp: bool, visit: &mut impl FnMut(Effect<'a>)) {
    while let Some(token) = cursor.token {
        if token.is_word("as") {
            cursor.advance();
            if cursor.eat("execute") {
                visit(cursor.name().map_or(Effect::Unread, Effect::Execute));
            }
            continue;
        }
        let part = match token {
            Token::Word(text) => Part::Word(text),
            Token::Quoted(text) => Part::Quoted(text),
            _ => {
                cursor.advance();
                continue;
            }
        };
        if is_temp || !is_temp_schema(part) {
            cursor.advance();
        } else if let Some(name) = cursor.name().filter(Name::is_in_temp_schema) {
            visit(Effect::CreateTemp { name, on_commit_drop: false });
        }
    }
}

fn drops_on_commit(mut cursor: Cursor<'_>) -> bool {
    while cursor.token.is_some() {
        // AS ends the options of a table; ON COMMIT stands before it.
        if cursor.eat_all(&["on", "commit", "drop"]) {
            return true;
        }
        if cursor.is_symbol(b'(') {
            cursor.skip_parentheses();
            continue;
        }
        if cursor.is("as") {
            return false;
        }
        cursor.advance();
    }
    false
}

/// Behind the word DROP: an effect for each object, if they are of a kind that can be temporary.
fn drop<'a>(cursor: &mut Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) {
    const KINDS: [&str; 8] =
        ["table", "view", "sequence", "function", "procedure", "routine", "type", "domain"];
    if cursor.eat("database") {
        return databases::drop(cursor, visit);
    }
    if !KINDS.iter().any(|kind| cursor.eat(kind)) {
        return;
    }
    cursor.eat_all(&["if", "exists"]);
    while let Some(name) = cursor.name() {
        visit(Effect::Drop(name));
        cursor.skip_parentheses();
        if !cursor.eat_symbol(b',') {
            return;
        }
    }
}
