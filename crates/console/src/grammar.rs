//! The console's language: `WORD [WORD]` or `SET key =|TO value`, as PgBouncer has it, and comments.

use model::ClientId;

use crate::command::{Command, Parameter, Scope, Show, Shutdown};
use crate::failure::Failure;

/// Bytes that a command's word may have, quotes included.
const WORD_SIZE_MAX: usize = 15;
/// Bytes that an argument or a key may have, quotes included.
const ARGUMENT_SIZE_MAX: usize = 63;
/// Bytes that a host and its port may have.
const PLACE_SIZE_MAX: usize = 263;
/// Bytes that a value may have, quotes included.
const VALUE_SIZE_MAX: usize = 255;

/// Reads one statement; `None` is an empty one: nothing, comments, or a semicolon alone.
pub fn parse(text: &str) -> Result<Option<Command>, Failure> {
    let invalid = || Failure::invalid_command(text);
    if let Some(command) = on_node(text) {
        return command.map(Some);
    }
    let mut tokens = Tokens { rest: text };
    let mut statement = Vec::new();
    loop {
        match tokens.next().map_err(|Unreadable| invalid())? {
            Some(Token::Semicolon) if tokens.next() == Ok(None) => break,
            Some(Token::Semicolon) => return Err(invalid()),
            Some(token) if statement.len() < TOKENS_MAX => statement.push(token),
            Some(_) => return Err(invalid()),
            None => break,
        }
    }
    match statement.as_slice() {
        [] => Ok(None),
        [Token::Word(word)] => command(*word, Word::EMPTY, invalid).map(Some),
        [Token::Word(word), Token::Word(argument)] => command(*word, *argument, invalid).map(Some),
        [Token::Word(set), Token::Word(key), is, value] if set.is("set") && is.is_assignment() => {
            assignment(*key, *value, invalid).map(Some)
        }
        [Token::Word(select), Token::Word(function), Token::Open, Token::Close]
            if select.is("select") && function.is("version") =>
        {
            Ok(Some(Command::Show(Show::Version)))
        }
        _ => Err(invalid()),
    }
}

fn command(word: Word, argument: Word, invalid: impl Fn() -> Failure) -> Result<Command, Failure> {
    if word.raw.len() > WORD_SIZE_MAX || argument.raw.len() > ARGUMENT_SIZE_MAX {
        return Err(Failure::BadArguments);
    }
    let argument = argument.text();
    let alone = |command| if argument.is_empty() { Ok(command) } else { Err(invalid()) };
    let scope = || if argument.is_empty() { Scope::All } else { Scope::Database(argument.clone()) };
    let database = || {
        if argument.is_empty() { Err(Failure::DatabaseRequired) } else { Ok(argument.clone()) }
    };
    match word.text().to_ascii_lowercase().as_str() {
        "show" => show(&argument).ok_or_else(invalid),
        "select" if argument == "1" => Ok(Command::SelectOne),
        "select" => show(&argument).ok_or_else(invalid),
        "discard" if argument.eq_ignore_ascii_case("all") => Ok(Command::DiscardAll),
        "reload" => alone(Command::Reload),
        "pause" => Ok(Command::Pause(scope())),
        "resume" => Ok(Command::Resume(scope())),
        "suspend" => alone(Command::Suspend),
        "kill" => Ok(Command::Kill(scope())),
        "kill_client" => client_id(&argument).map(Command::KillClient),
        "disable" => database().map(Command::Disable),
        "enable" => database().map(Command::Enable),
        "reconnect" => Ok(Command::Reconnect(scope())),
        "wait_close" => Ok(Command::WaitClose(scope())),
        "shutdown" => match argument.to_ascii_lowercase().as_str() {
            "" => Ok(Command::Shutdown(Shutdown::Immediate)),
            "wait_for_servers" => Ok(Command::Shutdown(Shutdown::WaitForServers)),
            "wait_for_clients" => Ok(Command::Shutdown(Shutdown::WaitForClients)),
            _ => Err(invalid()),
        },
        _ => Err(invalid()),
    }
}

/// `DRAIN NODE place` and `UNDRAIN NODE place`: a place has dots, colons and brackets, and needs no quotes for them.
fn on_node(text: &str) -> Option<Result<Command, Failure>> {
    let mut tokens = Tokens { rest: text };
    let mut word = || match tokens.next() {
        Ok(Some(Token::Word(word))) => Some(word),
        _ => None,
    };
    let verb = word().filter(|word| word.is("drain") || word.is("undrain"))?;
    word().filter(|word| word.is("node"))?;
    let rest = tokens.rest.trim();
    let rest = rest.strip_suffix(';').unwrap_or(rest).trim_end();
    let place = Word { raw: rest }.text();
    let is_of_places = |c: char| !c.is_whitespace() && !c.is_control() && !"'\";".contains(c);
    if place.is_empty() || place.len() > PLACE_SIZE_MAX || !place.chars().all(is_of_places) {
        return Some(Err(Failure::invalid_command(text)));
    }
    Some(Ok(if verb.is("drain") { Command::DrainNode(place) } else { Command::UndrainNode(place) }))
}

fn show(name: &str) -> Option<Command> {
    let named = |other: &str| name.eq_ignore_ascii_case(other);
    if named("help") {
        return Some(Command::ShowHelp);
    }
    if named("fds") {
        return Some(Command::ShowFds);
    }
    if let Some(show) = Show::ALL.into_iter().find(|show| named(show.name())) {
        return Some(Command::Show(show));
    }
    parameter(name).map(Command::ShowParameter)
}

fn parameter(name: &str) -> Option<Parameter> {
    Parameter::ALL.into_iter().find(|parameter| name.eq_ignore_ascii_case(parameter.name()))
}

/// The `id` of SHOW CLIENTS in decimal, or its `ptr`, which is the same number in hexadecimal.
fn client_id(argument: &str) -> Result<ClientId, Failure> {
    let digits_only = |digits: &str| digits.bytes().all(|b| b.is_ascii_hexdigit());
    let id = match argument.strip_prefix("0x").or_else(|| argument.strip_prefix("0X")) {
        Some(digits) if digits_only(digits) => u64::from_str_radix(digits, 16),
        None if digits_only(argument) => argument.parse(),
        _ => return Err(Failure::InvalidClientPointer),
    };
    id.map(ClientId).map_err(|_| Failure::InvalidClientPointer)
}

fn assignment(key: Word, value: Token, invalid: impl Fn() -> Failure) -> Result<Command, Failure> {
    let value = match value {
        Token::Word(word) => word,
        Token::Text(text) => text,
        Token::Open | Token::Close | Token::Equals | Token::Semicolon => return Err(invalid()),
    };
    let key_text = key.text();
    let fits = key.raw.len() <= ARGUMENT_SIZE_MAX && value.raw.len() <= VALUE_SIZE_MAX;
    if !fits || key_text.is_empty() {
        return Err(Failure::BadArguments);
    }
    Ok(match parameter(&key_text) {
        Some(parameter) => Command::SetIgnored(parameter),
        None => Command::Set { key: key_text, value: value.text() },
    })
}

/// The longest statement has four: `SET key = value`.
const TOKENS_MAX: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// `word` or `"word"`.
    Word(Word<'a>),
    /// `'text'`.
    Text(Word<'a>),
    Equals,
    Open,
    Close,
    Semicolon,
}

impl Token<'_> {
    fn is_assignment(self) -> bool {
        match self {
            Token::Equals => true,
            Token::Word(word) => word.is("to"),
            Token::Text(_) | Token::Open | Token::Close | Token::Semicolon => false,
        }
    }
}

/// A word or text as written, with its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word<'a> {
    raw: &'a str,
}

impl Word<'_> {
    const EMPTY: Word<'static> = Word { raw: "" };

    /// Whether it is this keyword, in any case and without quotes.
    fn is(self, keyword: &str) -> bool {
        self.raw.eq_ignore_ascii_case(keyword)
    }

    /// Without quotes, and with doubled quotes made single.
    fn text(self) -> String {
        for (quote, doubled, single) in [('"', "\"\"", "\""), ('\'', "''", "'")] {
            let inner = self.raw.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
            if let Some(inner) = inner {
                return inner.replace(doubled, single);
            }
        }
        self.raw.to_owned()
    }
}

/// No token begins here, or the one that does has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unreadable;

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Result<Option<Token<'a>>, Unreadable> {
        self.skip_blank()?;
        let Some(first) = self.rest.bytes().next() else { return Ok(None) };
        let token = match first {
            b'=' => self.symbol(Token::Equals),
            b';' => self.symbol(Token::Semicolon),
            b'(' => self.symbol(Token::Open),
            b')' => self.symbol(Token::Close),
            b'"' => Token::Word(self.quoted(b'"')?),
            b'\'' => Token::Text(self.quoted(b'\'')?),
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
                let end = self.rest.bytes().position(|b| !is_part(b)).unwrap_or(self.rest.len());
                Token::Word(self.take(end))
            }
            _ => return Err(Unreadable),
        };
        Ok(Some(token))
    }

    fn symbol(&mut self, token: Token<'a>) -> Token<'a> {
        self.take(1);
        token
    }

    /// A quoted word or text, up to the first quote that is not doubled.
    fn quoted(&mut self, quote: u8) -> Result<Word<'a>, Unreadable> {
        let bytes = self.rest.as_bytes();
        let mut at = 1;
        while at < bytes.len() {
            if bytes[at] != quote {
                at += 1;
            } else if bytes.get(at + 1) == Some(&quote) {
                at += 2;
            } else {
                return Ok(self.take(at + 1));
            }
        }
        Err(Unreadable)
    }

    /// `end` is beside an ASCII byte or at the end of the text, thus at a boundary of characters.
    fn take(&mut self, end: usize) -> Word<'a> {
        let (raw, rest) = self.rest.split_at(end);
        self.rest = rest;
        Word { raw }
    }

    /// Blanks and both kinds of comments.
    fn skip_blank(&mut self) -> Result<(), Unreadable> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
            if let Some(comment) = self.rest.strip_prefix("--") {
                self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.split_once("*/").ok_or(Unreadable)?.1;
            } else {
                return Ok(());
            }
        }
    }
}
