//! `howdah check --state`: which session state the statements of a file make, and how to do without it.
//!
//! What a statement does is for the crate `sql` to say; here it is only put into words.

use std::fmt::Write as _;
use std::process::ExitCode;

use sql::state::{Class, Discard, Effect, FunctionKind, Functions, Opaque, Options, Transaction, scan};

/// `named`: functions of one's own that make state.
pub fn check(path: &str, named: &[String]) -> ExitCode {
    let functions = Functions::with(named.iter().map(String::as_str));
    match std::fs::read(path) {
        Ok(text) => {
            print!("{}", report(path, &text, &functions));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("howdah: {path}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A line for each effect, and for each statement that has none; then the counts.
fn report(path: &str, text: &[u8], functions: &Functions) -> String {
    let mut report = String::new();
    let (mut carried, mut pins, mut unseen, mut none) = (0, 0, 0, 0);
    let mut line = 1;
    let mut counted_to = 0;
    for statement in scan(text, Options { functions, ..Options::default() }).statements() {
        line += newlines(&text[counted_to..statement.offset]);
        counted_to = statement.offset;
        let mut has_state = false;
        let mut say = |effect: Effect<'_>| {
            let class = effect.class();
            has_state |= matches!(class, Class::Carried | Class::Pins(_) | Class::Unseen);
            let (kind, rest) = match class {
                Class::None => ("none", String::new()),
                Class::Ends => ("none", ": ends state".to_owned()),
                Class::Carried => ("carried", String::new()),
                Class::Unseen => ("the server is asked", format!("; instead: {}", unseen_hint(&effect))),
                Class::Pins(reason) => {
                    let (what, until, instead) = reason.says();
                    ("pins", format!(" until {until}: {what}; instead: {instead}"))
                }
            };
            carried += usize::from(class == Class::Carried);
            pins += usize::from(matches!(class, Class::Pins(_)));
            unseen += usize::from(class == Class::Unseen);
            let _ = writeln!(report, "{path}:{line}: {}: {kind}{rest}", told(&effect));
        };
        let mut is_plain = true;
        statement.each(&mut |effect| {
            is_plain = false;
            say(effect);
        });
        none += usize::from(!has_state);
        if is_plain {
            let _ = writeln!(report, "{path}:{line}: {}: none", first_words(statement.text));
        }
    }
    let _ = writeln!(
        report,
        "{path}: {carried} carried, {pins} pin, {unseen} of which the server is asked; {none} statements without state"
    );
    report
}

pub fn newlines(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == b'\n').count()
}

/// The beginning of a statement, on one line.
pub fn first_words(text: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 40;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * CHARACTERS_MAX)]).into_owned();
    let words: Vec<_> = text.split_whitespace().take(6).collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(CHARACTERS_MAX).collect()
}

fn unseen_hint(effect: &Effect<'_>) -> &'static str {
    match effect {
        Effect::Opaque(Opaque::RunsText) => "run the query itself",
        _ => "make state in statements of its own, or end it within",
    }
}

fn told(effect: &Effect<'_>) -> String {
    let of = |what: &str, name: &sql::name::Name<'_>| {
        let name = String::from_utf8_lossy(&name.to_vec()).into_owned();
        format!("{what} {}", name.escape_debug())
    };
    match effect {
        Effect::Set(set) => of(if set.is_local { "SET LOCAL" } else { "SET" }, &set.name),
        Effect::Reset { name, .. } => of("RESET", name),
        Effect::ResetAll => "RESET ALL".to_owned(),
        Effect::SetConfig(_) => "set_config".to_owned(),
        Effect::SetTransaction => "SET TRANSACTION or CONSTRAINTS".to_owned(),
        Effect::Transaction(transaction) => transaction_told(transaction).to_owned(),
        Effect::Discard(Discard::All) => "DISCARD ALL".to_owned(),
        Effect::Discard(Discard::Plans) => "DISCARD PLANS".to_owned(),
        Effect::Discard(Discard::Sequences) => "DISCARD SEQUENCES".to_owned(),
        Effect::Discard(Discard::Temp) => "DISCARD TEMP".to_owned(),
        Effect::Prepare { name, .. } => of("PREPARE", name),
        Effect::Execute(name) => of("EXECUTE", name),
        Effect::Explain(name) => of("EXPLAIN EXECUTE", name),
        Effect::Deallocate(name) => of("DEALLOCATE", name),
        Effect::DeallocateAll => "DEALLOCATE ALL".to_owned(),
        Effect::Declare { name, .. } => of("DECLARE", name),
        Effect::Close(name) => of("CLOSE", name),
        Effect::CloseAll => "CLOSE ALL".to_owned(),
        Effect::Listen(name) => of("LISTEN", name),
        Effect::Unlisten(name) => of("UNLISTEN", name),
        Effect::UnlistenAll => "UNLISTEN *".to_owned(),
        Effect::Notify => "NOTIFY".to_owned(),
        Effect::Load => "LOAD".to_owned(),
        Effect::CreateTemp { name, .. } => of("temporary", name),
        Effect::Drop(name) => of("DROP", name),
        Effect::Database(name) => of("database", name),
        Effect::Call { kind: FunctionKind::HiddenSet, .. } => {
            "a setting behind a function or view".to_owned()
        }
        Effect::Call { name, .. } => String::from_utf8_lossy(&name.to_vec()).into_owned(),
        Effect::Opaque(Opaque::Do) => "DO".to_owned(),
        Effect::Opaque(Opaque::Call) => "CALL".to_owned(),
        Effect::Opaque(Opaque::RunsText) => "a function that runs text".to_owned(),
        Effect::Unread => "not read".to_owned(),
    }
}

fn transaction_told(transaction: &Transaction<'_>) -> &'static str {
    match transaction {
        Transaction::Begin => "BEGIN",
        Transaction::Commit { .. } => "COMMIT",
        Transaction::Rollback { .. } => "ROLLBACK",
        Transaction::Savepoint(_) => "SAVEPOINT",
        Transaction::RollbackTo(_) => "ROLLBACK TO SAVEPOINT",
        Transaction::Release(_) => "RELEASE SAVEPOINT",
        Transaction::Prepare => "PREPARE TRANSACTION",
        Transaction::FinishPrepared => "COMMIT or ROLLBACK PREPARED",
    }
}

#[cfg(test)]
mod tests;
