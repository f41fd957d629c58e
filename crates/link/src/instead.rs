//! Errors that a server was made to raise, so that it skips and aborts as it should: the words that the client is told.

use model::Refusal;
use server::Instead;

use crate::from_server::{Ear, Fate};
use crate::stale;

impl Ear<'_> {
    /// The error that the server was made to raise, in the words that PostgreSQL has for the real one.
    pub(crate) fn say_instead(&mut self, instead: Instead, name: &[u8]) -> Fate {
        let (code, text) = match instead {
            Instead::DuplicateStatement => {
                let refusal = Refusal::DuplicateStatement(String::from_utf8_lossy(name).into_owned());
                (refusal.sqlstate().to_owned(), refusal.to_string())
            }
            Instead::UnknownStatement => {
                let refusal = Refusal::UnknownStatement(String::from_utf8_lossy(name).into_owned());
                (refusal.sqlstate().to_owned(), refusal.to_string())
            }
            Instead::State => crate::noted::refused(name),
            Instead::StatementTooLarge => {
                let text = "prepared statement is larger than may be kept (prepared_statement_size_max)";
                (wire::sqlstate::PROGRAM_LIMIT_EXCEEDED.to_owned(), text.to_owned())
            }
            Instead::StalePlan => {
                (wire::sqlstate::FEATURE_NOT_SUPPORTED.to_owned(), stale::STALE_PLAN.to_owned())
            }
            Instead::NoUnnamedStatement => (
                wire::sqlstate::INVALID_SQL_STATEMENT_NAME.to_owned(),
                "unnamed prepared statement does not exist".to_owned(),
            ),
        };
        self.out
            .to_client
            .make(|bytes| wire::encode::report(bytes, wire::encode::Severity::Error, &code, &text, None));
        Fate::Swallow
    }
}
