//! What can stand anywhere in a statement: calls of functions, SELECT INTO, an UPDATE of pg_settings.

use super::cursor::Cursor;
use super::verb::Verb;
use super::{Argument, Effect, FunctionKind, Opaque, SetConfig, Statement};
use crate::lexer::Token;
use crate::name::{Name, Part};

/// Gives the effects of all calls in a statement, in the order of the text.
pub(super) fn each<'a>(statement: &Statement<'a>, verb: Verb, visit: &mut impl FnMut(Effect<'a>)) {
    let functions = statement.options.functions;
    let mut cursor = Cursor::new(statement);
    let mut before = Before::default();
    let mut depth = 0_usize;
    let mut is_alone = None;
    while let Some(token) = cursor.token {
        let here = cursor;
        cursor.advance();
        let part = match token {
            Token::Word(text) => Part::Word(text),
            Token::Quoted(text) if !text.iter().any(u8::is_ascii_uppercase) => Part::Quoted(text),
            Token::Unread => {
                visit(Effect::Unread);
                before = Before::default();
                continue;
            }
            _ => {
                depth += usize::from(token.is_symbol(b'('));
                depth = depth.saturating_sub(usize::from(token.is_symbol(b')')));
                before.take(token);
                continue;
            }
        };
        if part.is("into") && !before.is_into_of_another && !before.after_point {
            into(cursor, visit);
        }
        let (Part::Word(text) | Part::Quoted(text)) = part;
        if part.is("pg_settings") && before.is_updated {
            visit(Effect::Call { kind: FunctionKind::HiddenSet, name: part });
        } else if cursor.is_symbol(b'(')
            && functions.may_count(text)
            && !before.is_stored_default(verb)
            && let Some(kind) = functions.kind(text)
        {
            // Asked once for all calls of a statement.
            let mut is_alone = || *is_alone.get_or_insert_with(|| stands_alone(statement));
            visit(call(here, kind, part, || depth == 0 && is_alone(), || reads_settings_alone(statement)));
        }
        before.take(token);
    }
}

/// What the words before a name make of it.
#[derive(Default)]
struct Before {
    /// `UPDATE [ONLY] [pg_catalog.]`
    is_updated: bool,
    /// INSERT or MERGE.
    is_into_of_another: bool,
    after_point: bool,
    after_default: bool,
    after_set: bool,
    after_set_default: bool,
}

impl Before {
    fn take(&mut self, token: Token<'_>) {
        let goes_on = token.is_word("only")
            || token.is_word("pg_catalog")
            || token == Token::Quoted(b"pg_catalog")
            || token.is_symbol(b'.');
        self.is_updated = token.is_word("update") || self.is_updated && goes_on;
        self.is_into_of_another = token.is_word("insert") || token.is_word("merge");
        self.after_point = token.is_symbol(b'.');
        // DEFAULT pg_catalog.nextval(...) is as much a default.
        let of_schema = self.after_default && goes_on;
        self.after_set_default =
            self.after_set && token.is_word("default") || self.after_set_default && of_schema;
        self.after_default = token.is_word("default") || of_schema;
        self.after_set = token.is_word("set");
    }

    /// The default of a column is called when a row is made, not here.
    fn is_stored_default(&self, verb: Verb) -> bool {
        verb == Verb::Create && self.after_default || verb == Verb::Alter && self.after_set_default
    }
}

fn call<'a>(
    here: Cursor<'a>,
    kind: FunctionKind,
    name: Part<'a>,
    is_certain: impl FnOnce() -> bool,
    is_listed: impl FnOnce() -> bool,
) -> Effect<'a> {
    match kind {
        FunctionKind::SetConfig => {
            let mut cursor = here;
            cursor.advance();
            Effect::SetConfig(set_config(&mut cursor, is_certain(), is_listed))
        }
        FunctionKind::RunsText => Effect::Opaque(Opaque::RunsText),
        FunctionKind::Notify => Effect::Notify,
        _ => Effect::Call { kind, name },
    }
}

/// Behind the word INTO of a SELECT.
fn into<'a>(mut cursor: Cursor<'a>, visit: &mut impl FnMut(Effect<'a>)) {
    // What may follow a table that is itself called so.
    const RESERVED: [&str; 13] = [
        "from",
        "where",
        "group",
        "having",
        "window",
        "union",
        "intersect",
        "except",
        "order",
        "limit",
        "offset",
        "fetch",
        "for",
    ];
    let mut ahead = cursor;
    let _ = ahead.eat("local") || ahead.eat("global");
    let is_temp = ahead.eat("temp") || ahead.eat("temporary");
    if is_temp && ahead.is_name() && !RESERVED.iter().any(|word| ahead.is(word)) {
        ahead.eat("table");
        visit(ahead.name().map_or(Effect::Unread, |name| Effect::CreateTemp { name, on_commit_drop: false }));
    } else if let Some(name) = cursor.name().filter(Name::is_in_temp_schema) {
        visit(Effect::CreateTemp { name, on_commit_drop: false });
    }
}

/// At the parenthesis of a call of set_config.
fn set_config<'a>(
    cursor: &mut Cursor<'a>,
    is_certain: bool,
    is_listed: impl FnOnce() -> bool,
) -> SetConfig<'a> {
    let mut list = [Argument::Unread; 3];
    cursor.advance();
    let listed = (cursor.is("name") && is_listed()).then_some(Argument::Listed);
    if listed.is_some() {
        cursor.advance();
    }
    for (at, slot) in list.iter_mut().enumerate() {
        let read = listed.filter(|_| at == 0).or_else(|| argument(cursor));
        let is_end = cursor.is_symbol(if at < 2 { b',' } else { b')' });
        let Some(read) = read.filter(|_| is_end) else { break };
        *slot = read;
        cursor.advance();
    }
    let [mut name, value, mut is_local] = list;
    if matches!(name, Argument::Literal(literal) if literal.plain.is_none()) {
        name = Argument::Unread;
    }
    if matches!(is_local, Argument::Literal(_)) {
        is_local = Argument::Unread;
    }
    SetConfig { name, value, is_local, is_certain }
}

/// A constant or a parameter, and its cast.
fn argument<'a>(cursor: &mut Cursor<'a>) -> Option<Argument<'a>> {
    let argument = match cursor.token? {
        Token::String(literal) => Argument::Literal(literal),
        Token::Parameter(digits) => {
            let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Argument::Parameter(number)
        }
        token if token.is_word("true") => Argument::Boolean(true),
        token if token.is_word("false") => Argument::Boolean(false),
        _ => return None,
    };
    cursor.advance();
    while cursor.token == Some(Token::Cast) {
        cursor.advance();
        // A type that can change a text's value, by its length or otherwise, is not followed.
        let is_kept = ["text", "varchar", "bool", "boolean"].iter().any(|kind| cursor.eat(kind));
        is_kept.then_some(())?;
    }
    Some(argument)
}

/// Whether pg_settings is the only table that a statement reads: `name` is a setting that a view shows.
fn reads_settings_alone(statement: &Statement<'_>) -> bool {
    let mut cursor = Cursor::new(statement);
    let mut froms = 0;
    let mut is_alone = cursor.is("select");
    while cursor.token.is_some() {
        if cursor.eat("from") {
            froms += 1;
            let of_catalog = cursor;
            if cursor.eat("pg_catalog") && !cursor.eat_symbol(b'.') {
                cursor = of_catalog;
            }
            is_alone &= cursor.eat("pg_settings") && (cursor.is("where") || cursor.token.is_none());
        } else {
            cursor.advance();
        }
    }
    froms == 1 && is_alone
}

/// Whether a statement is SELECT and a list of calls, constants and aliases: each call runs exactly once.
fn stands_alone(statement: &Statement<'_>) -> bool {
    let mut cursor = Cursor::new(statement);
    if !cursor.eat("select") {
        return false;
    }
    while let Some(token) = cursor.token {
        match token {
            Token::Symbol(b'(') => {
                cursor.skip_parentheses();
                continue;
            }
            Token::Symbol(b',' | b'.') | Token::String(_) | Token::Parameter(_) | Token::Digits => {}
            Token::Cast => cursor.advance(),
            Token::Word(_) if token.is_word("as") => cursor.advance(),
            Token::Word(_) if token.is_word("set_config") || token.is_word("pg_catalog") => {}
            Token::Quoted(b"set_config" | b"pg_catalog") => {}
            _ => return false,
        }
        cursor.advance();
    }
    true
}
