//! One token of look-ahead over a statement, and the spans between tokens.

use super::Statement;
use crate::lexer::{Lexer, Token};
use crate::name::Name;

#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    /// The one that is looked at.
    pub(super) token: Option<Token<'a>>,
    /// Where the one before it ended.
    end_before: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(statement: &Statement<'a>) -> Cursor<'a> {
        let mut lexer = Lexer::new(statement.text, statement.options.standard_conforming_strings);
        let token = lexer.next();
        Cursor { lexer, token, end_before: 0 }
    }

    pub(super) fn advance(&mut self) {
        self.end_before = self.lexer.at;
        self.token = self.lexer.next();
    }

    /// Where the token before this one ended.
    pub(super) fn at(&self) -> usize {
        self.end_before
    }

    pub(super) fn is(&self, word: &str) -> bool {
        self.token.is_some_and(|token| token.is_word(word))
    }

    pub(super) fn is_symbol(&self, symbol: u8) -> bool {
        self.token == Some(Token::Symbol(symbol))
    }

    pub(super) fn is_name(&self) -> bool {
        matches!(self.token, Some(Token::Word(_) | Token::Quoted(_)))
    }

    pub(super) fn eat(&mut self, word: &str) -> bool {
        let is = self.is(word);
        if is {
            self.advance();
        }
        is
    }

    pub(super) fn eat_symbol(&mut self, symbol: u8) -> bool {
        let is = self.is_symbol(symbol);
        if is {
            self.advance();
        }
        is
    }

    /// All of these words, or none.
    pub(super) fn eat_all(&mut self, words: &[&str]) -> bool {
        let mut ahead = *self;
        let found = words.iter().all(|word| ahead.eat(word));
        if found {
            *self = ahead;
        }
        found
    }

    /// `a`, `"a"`, `a.b.c`.
    pub(super) fn name(&mut self) -> Option<Name<'a>> {
        let start = self.lexer.start;
        loop {
            if !self.is_name() {
                return None;
            }
            self.advance();
            if !self.eat_symbol(b'.') {
                return Some(Name::written(&self.lexer.text[start..self.end_before]));
            }
        }
    }

    /// All from here to the last token.
    pub(super) fn tail(&mut self) -> &'a [u8] {
        if self.token.is_none() {
            return b"";
        }
        let start = self.lexer.start;
        while self.token.is_some() {
            self.advance();
        }
        &self.lexer.text[start..self.end_before]
    }

    /// Behind the parenthesis that is open here, if one is.
    pub(super) fn skip_parentheses(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.token {
            match token {
                Token::Symbol(b'(') => depth += 1,
                Token::Symbol(b')') => depth = depth.saturating_sub(1),
                _ if depth == 0 => return,
                _ => {}
            }
            let is_end = depth == 0;
            self.advance();
            if is_end {
                return;
            }
        }
    }
}
