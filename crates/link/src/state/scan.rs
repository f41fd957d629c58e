//! From the text of a statement to what it will do to its session.

use std::sync::Arc;

use client::{Client, Dialect};
use model::{StateMode, Statement};
use sql::name::Name;
use sql::state::{
    Argument, Effect, Effects, FunctionKind, Opaque, Options, Reason, Set, SetConfig, Transaction, Value,
};

use crate::channels::{self, Channel, Hears};

use super::deed::{Deed, Kinds, Pending};
use crate::by_sql::Renamed;
use crate::policy::Policy;

/// A portal of a statement that does something.
#[derive(Clone, Debug)]
pub(crate) struct Portal {
    pub(crate) name: Box<[u8]>,
    pub(crate) text: Arc<[u8]>,
    /// What its Bind said of parameters.
    pub(crate) values: Box<[u8]>,
    /// What it prepares by SQL, to go with the client.
    pub(crate) made: Renamed,
}

/// Reads a text with what its client and its policy make of it.
pub(crate) fn scan<'a>(text: &'a [u8], dialect: Dialect, policy: &'a Policy) -> Effects<'a> {
    let options = Options {
        standard_conforming_strings: dialect.standard_conforming_strings,
        is_ascii_safe: dialect.is_ascii_safe,
        functions: &policy.functions,
    };
    sql::state::scan(text, options)
}

/// What a message comes to: its deeds with what they depend on.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) mode: StateMode,
    /// The ends of transactions and savepoints are of interest.
    pub(crate) is_touched: bool,
    /// Somebody asks his session for what it last had of a sequence.
    pub(crate) sequences_are_read: bool,
    /// What a Bind said of parameters.
    pub(crate) values: &'a [u8],
    /// Texts of statements that were prepared by PREPARE and do something.
    pub(crate) texts: &'a [(Box<[u8]>, Arc<[u8]>)],
    /// What it prepares by SQL, to go with the client, and what it drops of that.
    pub(crate) makes: &'a [(usize, Arc<Statement>)],
    pub(crate) drops: &'a [(usize, u64)],
    /// From this statement on it is not run.
    pub(crate) ends_at: usize,
    /// Where somebody else listens for the client.
    pub(crate) hears: Hears<'a>,
    /// Names mean the same to the client and to every server.
    pub(crate) is_unicode: bool,
    pub(crate) client: &'a Client,
    pub(crate) dialect: Dialect,
    pub(crate) policy: &'a Policy,
}

/// Deeper than this nothing is followed: a PREPARE of an EXECUTE is no SQL.
const DEPTH_MAX: usize = 2;

impl Reading<'_> {
    pub(crate) fn pending(&self, effects: &Effects<'_>) -> Pending {
        let mut pending = Pending::default();
        for (number, statement) in effects.statements().enumerate().take(self.ends_at) {
            let before = pending.makes();
            if self.sequences_are_read && statement.may_draw() {
                pending.push(number, Deed::Doubt(Kinds::SEQUENCES));
            }
            statement.each(&mut |effect| self.deeds(&effect, number, 0, &mut pending));
            if pending.makes() > before && pending.verb.is_empty() {
                pending.verb = verb(statement.text);
            }
        }
        pending
    }

    fn deeds(&self, effect: &Effect<'_>, number: usize, depth: usize, pending: &mut Pending) {
        let mut push = |deed| pending.push(number, deed);
        match *effect {
            Effect::Set(set) => self.set(&set, &mut push),
            Effect::SetConfig(set) => self.set_config(&set, &mut push),
            Effect::Reset { is_local: true, .. } | Effect::SetTransaction => {}
            Effect::Notify | Effect::Database(_) => {}
            Effect::Reset { name, .. } => push(Deed::Reset(setting(&name))),
            Effect::ResetAll => push(Deed::ResetAll),
            Effect::Transaction(transaction) => {
                if self.is_touched || !pending.is_empty() {
                    transaction_deed(transaction).into_iter().for_each(|deed| pending.push(number, deed));
                }
            }
            Effect::Discard(what) => push(Deed::Discard(what)),
            Effect::Prepare { name, .. } => match self.makes.iter().find(|(of, _)| *of == number) {
                Some((_, statement)) => push(Deed::Name(name.to_vec().into(), Arc::clone(statement))),
                None => {
                    push(Deed::Prepare(name.to_vec().into()));
                    push(Deed::Doubt(Kinds::PREPARED));
                }
            },
            Effect::Explain(_) => {}
            Effect::Deallocate(name) => {
                for (_, id) in self.drops.iter().filter(|(of, _)| *of == number) {
                    push(Deed::Drop(*id));
                }
                push(Deed::Deallocate(name.to_vec().into()));
                push(Deed::MayEnd(Kinds::PREPARED));
            }
            Effect::DeallocateAll => {
                push(Deed::DeallocateAll);
                push(Deed::MayEnd(Kinds::PREPARED));
            }
            Effect::Execute(name) => self.execute(&name.to_vec(), number, depth, pending),
            Effect::Declare { hold: true, .. } => push(Deed::Doubt(Kinds::CURSORS)),
            Effect::Declare { .. } => {}
            Effect::Close(_) | Effect::CloseAll => push(Deed::MayEnd(Kinds::CURSORS)),
            Effect::Listen(name) => push(match self.channel(&name) {
                Some(channel) => Deed::Listen(channel),
                None => Deed::Doubt(Kinds::LISTEN),
            }),
            Effect::Unlisten(name) => {
                push(Deed::MayEnd(Kinds::LISTEN));
                self.channel(&name).into_iter().for_each(|channel| push(Deed::Unlisten(channel)));
            }
            Effect::UnlistenAll => {
                push(Deed::MayEnd(Kinds::LISTEN));
                if self.hears.hears_any() {
                    push(Deed::UnlistenAll);
                }
            }
            Effect::Load => push(Deed::Pin(Reason::Library)),
            Effect::CreateTemp { on_commit_drop: true, .. } => {}
            Effect::CreateTemp { .. } => push(Deed::Doubt(Kinds::TEMP)),
            Effect::Drop(_) => push(Deed::MayEnd(Kinds::TEMP)),
            Effect::Call { kind, .. } => self.call(kind, &mut push),
            Effect::Opaque(Opaque::Do | Opaque::Call | Opaque::RunsText) | Effect::Unread => {
                push(Deed::Doubt(Kinds::ALL));
                if self.sequences_are_read {
                    push(Deed::Doubt(Kinds::SEQUENCES));
                }
            }
        }
    }

    /// What a statement does that is run by its name.
    fn execute(&self, name: &[u8], number: usize, depth: usize, pending: &mut Pending) {
        let text = self.texts.iter().find(|(other, _)| **other == *name);
        let text = text.map(|(_, text)| &**text);
        // What was prepared by the protocol is run by SQL as well.
        let made = pending.find(|deed| match deed {
            Deed::Name(other, statement) if **other == *name => Some(Arc::clone(statement)),
            _ => None,
        });
        let known = made.as_ref().map(|(_, statement)| statement).or(self.client.statement(name));
        let text = text.or_else(|| known.map(|statement| statement.text()));
        if let Some(text) = text.filter(|_| depth < DEPTH_MAX) {
            // Its parameters are those of the EXECUTE.
            let within = Reading { values: &[], ..*self };
            let effects = scan(text, self.dialect, self.policy);
            if self.sequences_are_read && effects.may_draw() {
                pending.push(number, Deed::Doubt(Kinds::SEQUENCES));
            }
            effects.each(|_, effect| within.deeds(&effect, number, depth + 1, pending));
        }
    }

    /// The channel, if somebody else listens on it for the client.
    fn channel(&self, name: &Name<'_>) -> Option<Channel> {
        if !self.policy.fans_out() {
            return None;
        }
        channels::channel(name, self.is_unicode).filter(|channel| self.hears.hears(channel))
    }

    fn set(&self, set: &Set<'_>, push: &mut impl FnMut(Deed)) {
        let name = setting(&set.name);
        if set.is_local || is_of_transaction(&name) {
            return;
        }
        if *name == *b"seed" {
            return push(Deed::Pin(Reason::Seed));
        }
        if self.pins_setting(&name) {
            push(Deed::Pin(Reason::Setting));
        }
        push(match set.value {
            // What a backslash means is a matter of settings that may differ when it is set again.
            Value::Written(text) if !text.contains(&b'\\') => {
                Deed::Set { name, value: text.into(), written: true }
            }
            Value::Written(_) | Value::TimeZone(_) | Value::Unread => Deed::Ask(name),
        });
    }

    fn set_config(&self, set: &SetConfig<'_>, push: &mut impl FnMut(Deed)) {
        let is_local = match set.is_local {
            Argument::Boolean(value) => Some(value),
            Argument::Parameter(number) => super::bind::boolean(self.values, number),
            _ => None,
        };
        if is_local == Some(true) {
            return;
        }
        if set.name == Argument::Listed {
            return push(Deed::Doubt(Kinds::SETTINGS));
        }
        let Some(name) = self.text(set.name) else { return push(Deed::Pin(Reason::UnreadSetting)) };
        let name = canonical(&name.to_ascii_lowercase());
        if is_of_transaction(&name) {
            return;
        }
        if *name == *b"seed" {
            return push(Deed::Pin(Reason::Seed));
        }
        if self.pins_setting(&name) {
            push(Deed::Pin(Reason::Setting));
        }
        let is_certain = set.is_certain && is_local == Some(false);
        push(match self.text(set.value).filter(|_| is_certain) {
            Some(value) => Deed::Set { name, value, written: false },
            None => Deed::Ask(name),
        });
    }

    /// Whether a setting keeps its server. Other poolers carry no more than what every server reports.
    fn pins_setting(&self, name: &[u8]) -> bool {
        self.mode == StateMode::Pin || (self.policy.servers_forget && !CARRIED_BY_OTHERS.contains(&name))
    }

    /// What an argument is, if that is known here.
    fn text(&self, argument: Argument<'_>) -> Option<Box<[u8]>> {
        match argument {
            Argument::Literal(literal) => literal.plain.map(Box::from),
            Argument::Parameter(number) => super::bind::text(self.values, number).map(Box::from),
            Argument::Boolean(_) | Argument::Listed | Argument::Unread => None,
        }
    }

    fn call(&self, kind: FunctionKind, push: &mut impl FnMut(Deed)) {
        match kind {
            FunctionKind::SetConfig | FunctionKind::HiddenSet => push(Deed::Doubt(Kinds::SETTINGS)),
            FunctionKind::LockTake => push(Deed::Doubt(Kinds::LOCKS)),
            FunctionKind::LockRelease | FunctionKind::LockReleaseAll => push(Deed::MayEnd(Kinds::LOCKS)),
            FunctionKind::SequenceAdvance if self.sequences_are_read => push(Deed::Pin(Reason::Sequence)),
            FunctionKind::SequenceAdvance | FunctionKind::SequenceRead => {}
            FunctionKind::ConnectionOpen => push(Deed::Pin(Reason::Connection)),
            FunctionKind::ConnectionClose => push(Deed::Unpin(Reason::Connection)),
            FunctionKind::SlotCreate => push(Deed::Pin(Reason::Slot)),
            FunctionKind::SlotDrop => push(Deed::Unpin(Reason::Slot)),
            FunctionKind::BackupStart => push(Deed::Pin(Reason::Backup)),
            FunctionKind::BackupStop => push(Deed::Unpin(Reason::Backup)),
            FunctionKind::OriginSetup => push(Deed::Pin(Reason::Origin)),
            FunctionKind::OriginReset => push(Deed::Unpin(Reason::Origin)),
            FunctionKind::Seed => push(Deed::Pin(Reason::Seed)),
            FunctionKind::Named => push(Deed::Pin(Reason::NamedFunction)),
            FunctionKind::RunsText => push(Deed::Doubt(Kinds::ALL)),
            FunctionKind::LargeObject | FunctionKind::Notify | FunctionKind::ListenRead => {}
        }
    }
}

impl Pending {
    /// How much of it makes state that a server may have to be kept for.
    fn makes(&self) -> usize {
        self.count(|deed| matches!(deed, Deed::Doubt(_) | Deed::Pin(_) | Deed::Ask(_) | Deed::Set { .. }))
    }
}

fn transaction_deed(transaction: Transaction<'_>) -> Option<Deed> {
    Some(match transaction {
        Transaction::Begin | Transaction::FinishPrepared => return None,
        Transaction::Commit { .. } | Transaction::Rollback { .. } | Transaction::Prepare => Deed::End,
        Transaction::Savepoint(name) => Deed::Savepoint(name.to_vec().into()),
        Transaction::RollbackTo(name) => Deed::RollbackTo(name.to_vec().into()),
        Transaction::Release(name) => Deed::Release(name.to_vec().into()),
    })
}

/// Settings that a pooler between us and the server keeps for each of its clients, as PgBouncer does.
const CARRIED_BY_OTHERS: [&[u8]; 5] =
    [b"application_name", b"client_encoding", b"datestyle", b"standard_conforming_strings", b"timezone"];

/// A setting's name as PostgreSQL compares it.
fn setting(name: &Name<'_>) -> Box<[u8]> {
    canonical(&name.to_vec().to_ascii_lowercase())
}

fn canonical(name: &[u8]) -> Box<[u8]> {
    // The names that PostgreSQL still takes for others (`map_old_guc_names`).
    match name {
        b"sort_mem" => b"work_mem"[..].into(),
        b"vacuum_mem" => b"maintenance_work_mem"[..].into(),
        _ => name.into(),
    }
}

/// Ends with the transaction, however it is set.
fn is_of_transaction(name: &[u8]) -> bool {
    matches!(name, b"transaction_isolation" | b"transaction_read_only" | b"transaction_deferrable")
}

/// The first word, in capitals.
fn verb(text: &[u8]) -> Box<str> {
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
    let word: Vec<u8> =
        text.iter().skip_while(|byte| !is_letter(byte)).take_while(is_letter).take(16).copied().collect();
    String::from_utf8_lossy(&word.to_ascii_uppercase()).into()
}
