//! Where one statement of a query string ends and the next begins.

use super::{Effect, Options};
use crate::lexer::{Lexer, Token};

/// The statements of a query string; empty ones are left out, as PostgreSQL does.
#[derive(Clone)]
pub struct Statements<'a> {
    lexer: Lexer<'a>,
    options: Options<'a>,
    /// Nothing in it can be trusted: all of it is one statement.
    is_unread: bool,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// From its first word to its last, without the semicolon.
    pub text: &'a [u8],
    /// Where it begins in the query string.
    pub offset: usize,
    pub(super) options: Options<'a>,
    pub(super) is_unread: bool,
}

impl<'a> Statements<'a> {
    pub(super) fn new(text: &'a [u8], options: Options<'a>) -> Statements<'a> {
        let is_unread = !options.is_ascii_safe && !text.is_ascii();
        let lexer = Lexer::new(text, options.standard_conforming_strings);
        Statements { lexer, options, is_unread }
    }
}

impl<'a> Iterator for Statements<'a> {
    type Item = Statement<'a>;

    fn next(&mut self) -> Option<Statement<'a>> {
        let whole = self.lexer.text;
        if self.is_unread {
            if self.lexer.at > 0 {
                return None;
            }
            self.lexer.at = whole.len();
            return Some(Statement { text: whole, offset: 0, options: self.options, is_unread: true });
        }
        let mut token = self.lexer.next()?;
        while token == Token::Symbol(b';') {
            token = self.lexer.next()?;
        }
        let offset = self.lexer.start;
        let mut end = self.lexer.at;
        let mut nesting = Nesting::default();
        loop {
            nesting.take(token);
            let Some(next) = self.lexer.next() else { break };
            if next == Token::Symbol(b';') && nesting.is_outside() {
                break;
            }
            end = self.lexer.at;
            token = next;
        }
        Some(Statement { text: &whole[offset..end], offset, options: self.options, is_unread: false })
    }
}

impl<'a> Statement<'a> {
    /// Whether it may draw from a sequence that it does not name, for the default of a column.
    pub fn may_draw(&self) -> bool {
        let mut lexer = Lexer::new(self.text, self.options.standard_conforming_strings);
        std::iter::from_fn(|| lexer.next()).any(|token| match token {
            Token::Unread => true,
            token => ["insert", "merge", "copy"].iter().any(|word| token.is_word(word)),
        })
    }

    /// Gives each effect, in order.
    pub fn each(&self, visit: &mut impl FnMut(Effect<'a>)) {
        if self.is_unread {
            return visit(Effect::Unread);
        }
        super::commands::each(self, visit);
    }
}

/// In what a semicolon does not end the statement: CREATE RULE has parentheses, a routine BEGIN ATOMIC ... END.
#[derive(Default)]
struct Nesting {
    parentheses: usize,
    /// BEGIN ATOMIC and each CASE within, until their END.
    blocks: usize,
    head: Head,
    /// The last token makes a name of the next, whatever it is elsewhere.
    is_name_next: bool,
    after_begin: bool,
}

/// How far the statement begins as the definition of a routine.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Head {
    #[default]
    Nothing,
    Create,
    Or,
    Replace,
    Routine,
    Else,
}

impl Nesting {
    fn is_outside(&self) -> bool {
        self.parentheses == 0 && self.blocks == 0
    }

    fn take(&mut self, token: Token<'_>) {
        match token {
            Token::Symbol(b'(') => self.parentheses += 1,
            Token::Symbol(b')') => self.parentheses = self.parentheses.saturating_sub(1),
            _ => {}
        }
        match self.head {
            Head::Routine => self.in_routine(token),
            Head::Else => {}
            head => self.head = head.next(token),
        }
    }

    fn in_routine(&mut self, token: Token<'_>) {
        let is = |word| token.is_word(word) && !self.is_name_next;
        if self.blocks == 0 {
            self.blocks = usize::from(self.after_begin && is("atomic"));
        } else if is("case") {
            self.blocks += 1;
        } else if is("end") {
            self.blocks -= 1;
        }
        self.after_begin = token.is_word("begin");
        self.is_name_next = token.is_symbol(b'.') || token.is_word("as");
    }
}

impl Head {
    fn next(self, token: Token<'_>) -> Head {
        let is = |word| token.is_word(word);
        match self {
            Head::Nothing if is("create") => Head::Create,
            Head::Create if is("or") => Head::Or,
            Head::Or if is("replace") => Head::Replace,
            Head::Create | Head::Replace if is("function") || is("procedure") => Head::Routine,
            _ => Head::Else,
        }
    }
}
