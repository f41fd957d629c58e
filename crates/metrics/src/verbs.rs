//! What a statement begins with, as a label: one of few words, whatever clients say.

/// The words that are told apart.
const VERBS: [&str; 27] = [
    "ALTER",
    "CALL",
    "CLOSE",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DISCARD",
    "DO",
    "DROP",
    "EXECUTE",
    "EXPLAIN",
    "FETCH",
    "INSERT",
    "LISTEN",
    "LOAD",
    "LOCK",
    "MERGE",
    "PREPARE",
    "RESET",
    "SELECT",
    "SET",
    "UNLISTEN",
    "UPDATE",
    "VALUES",
    "WITH",
];

/// The first word of what is said of a statement, or `other`.
pub(crate) fn verb(statement: &str) -> &'static str {
    let word = statement.split_whitespace().next().unwrap_or_default();
    VERBS.into_iter().find(|verb| verb.eq_ignore_ascii_case(word)).unwrap_or("other")
}
