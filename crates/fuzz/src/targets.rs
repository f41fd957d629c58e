//! What mutated bytes are given to.

mod console;
mod link;
mod login;
mod text;
mod wire;

use crate::corpus;
use crate::rng::Rng;

/// One decoder, or a few that read the same bytes.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Sound inputs.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Words that it may look for.
    pub dictionary: &'static [&'static [u8]],
    /// Gives it an input. It panics if a check fails.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 19] = [
    target("wire-client", corpus::client_messages, wire::client),
    target("wire-server", corpus::server_messages, wire::server),
    target("wire-startup", corpus::first_packets, wire::startup),
    target("client-login", login::client_corpus, login::client),
    target("server-login", corpus::greetings, login::server),
    target("auth-query", corpus::greetings, login::lookup),
    target("link", link::corpus, link::ops),
    target("link-cuts", link::cuts_corpus, link::cuts),
    target("settings", corpus::settings, text::settings),
    target("url", corpus::urls, text::url),
    target("userlist", corpus::userlists, text::userlist),
    target("hba", corpus::hbas, text::hba),
    target("ident", corpus::idents, text::ident),
    target("patroni", corpus::members, text::members),
    target("sql", corpus::statements, text::sql),
    target("sql-state", corpus::states, text::state),
    target("reads", corpus::queries, text::reads),
    target("console-grammar", corpus::commands, console::grammar),
    target("console-session", console::corpus, console::session),
];

const fn target(name: &'static str, corpus: fn() -> Vec<Vec<u8>>, run: fn(&[u8])) -> Target {
    Target { name, corpus, dictionary: &corpus::WORDS, run }
}

impl Target {
    /// The target of this name.
    pub fn named(name: &str) -> Option<&'static Target> {
        const ALL: &[Target] = &TARGETS;
        ALL.iter().find(|target| target.name == name)
    }
}

/// Where a stream is cut: places that follow from the input alone.
fn cuts(input: &[u8]) -> Vec<usize> {
    let mut rng = Rng::of(input);
    let mut cuts = Vec::new();
    let mut at = 0;
    while at < input.len() && cuts.len() < 500 {
        at += match rng.below(4) {
            0 => 1,
            1 => 1 + rng.below(8),
            _ => 1 + rng.below(input.len()),
        };
        cuts.push(at.min(input.len()));
    }
    cuts.push(input.len());
    cuts
}
