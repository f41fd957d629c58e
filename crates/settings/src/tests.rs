//! Tests of the whole: text in, settings or problems out. One file a subject.

mod docs;
mod effective;
mod faults;
mod junk;
mod keys;
mod reading;
mod reloads;
mod urls;
mod values;

use std::collections::BTreeMap;

use crate::{Outcome, Settings, read};

/// Reads `text` as `pgbouncer.ini`, with other files beside it.
pub(crate) fn read_with(text: &[u8], others: &[(&str, &str)]) -> Outcome {
    let mut files: BTreeMap<&str, &[u8]> =
        others.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    files.insert("pgbouncer.ini", text);
    read("pgbouncer.ini", &|path: &str| {
        files.get(path).map(|text| text.to_vec()).ok_or_else(|| "no such file".to_owned())
    })
}

/// Settings that must be without problems.
pub(crate) fn good(text: &str) -> Settings {
    match read_with(text.as_bytes(), &[]).settings {
        Ok(settings) => settings,
        Err(problems) => panic!("{text}\n{}", lines(&problems)),
    }
}

/// One line for each.
pub(crate) fn lines<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}
