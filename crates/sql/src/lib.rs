//! A lexer of SQL that knows just enough to see what a statement does to a session
