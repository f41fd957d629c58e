//! The channels of a client for which somebody else listens: what it wants heard, and when it may be told.
//!
//! Before a LISTEN is sent, the listener must hear its channel: so that from the moment at which the client is told
//! that it listens, nothing passes it by. Then the LISTEN runs on the client's server like any statement, and counts or
//! is undone by what the server says, as settings are (`state`). Between two transactions the server is told to
//! listen no more, and the client's channels are what is left.

use std::sync::Arc;

use client::Client;
use model::StateMode;
use server::Server;
use sql::name::Name;
use sql::state::{Effect, Effects, FunctionKind};
use wire::client::{Parse, tag};
use wire::server::TransactionStatus;
use wire::{Header, encode};

use crate::from_client::{Message, Pair, is_sendable};
use crate::link::Link;
use crate::out::Out;
use crate::policy::Policy;
use crate::state::State;
use crate::state::scan::scan;

/// The name of a channel, as PostgreSQL knows it.
pub type Channel = Arc<[u8]>;

/// What a client that listens has to keep. Others have none.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    /// Heard for the client, whether it listens on them or is about to.
    heard: Vec<Channel>,
    /// What the listener was told last.
    settled: Option<Arc<Vec<Channel>>>,
    wish: Wish,
    /// More is heard than was settled.
    is_ahead: bool,
    /// The client's own server may be listening on these: nobody else is to listen on them too, or what is sent comes
    /// twice.
    own: Vec<Channel>,
    /// The client asks its session what it listens on.
    shows: bool,
    /// Nobody waits any more for what was asked for.
    is_orphan: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    None,
    /// To be asked for.
    New(Vec<Channel>),
    /// Asked for.
    Asked(Vec<Channel>),
    /// Heard, and the statement that waits for it will come again.
    Heard,
    /// They are not heard: the statement goes, and its client listens by itself.
    Refused,
}

/// What becomes of a statement that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// It may go.
    Heard,
    /// Not yet.
    Awaited,
}

/// On which channels a statement may listen by somebody else.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hears<'a> {
    /// These.
    These(&'a [Channel]),
    /// Any, if it is sent: its channels will be asked for then.
    Any,
}

impl Hears<'_> {
    pub(crate) fn hears(self, channel: &[u8]) -> bool {
        match self {
            Hears::These(channels) => channels.iter().any(|own| **own == *channel),
            Hears::Any => true,
        }
    }

    /// Whether there may be a channel to leave.
    pub(crate) fn hears_any(self) -> bool {
        match self {
            Hears::These(channels) => !channels.is_empty(),
            Hears::Any => true,
        }
    }
}

/// The channel of a LISTEN or UNLISTEN, if its name is the same wherever it is said. In a server of another encoding a
/// longer name may be cut at another place, and letters beyond ASCII may be folded.
pub(crate) fn channel(name: &Name<'_>, is_unicode: bool) -> Option<Channel> {
    let mut parts = name.parts();
    let (Some(part), None) = (parts.next(), parts.next()) else { return None };
    let name = part.to_vec();
    (!name.is_empty() && (is_unicode || name.is_ascii())).then(|| name.into())
}

impl Policy {
    /// Whether somebody else may listen for the client.
    pub(crate) fn fans_out(&self) -> bool {
        self.listen_fanout && self.scans() && self.state != StateMode::Pin
    }
}

impl Channels {
    pub(crate) fn heard(&self) -> &[Channel] {
        &self.heard
    }

    /// A statement that listens on these channels is about to be sent. `listens`: the client listens on one already, or is
    /// about to.
    fn want(&mut self, channels: &[Channel], listens: impl Fn(&Channel) -> bool) -> Hearing {
        let is_just_heard = match self.wish {
            Wish::New(_) | Wish::Asked(_) => return Hearing::Awaited,
            // It listens by itself.
            Wish::Refused => return Hearing::Heard,
            Wish::None => false,
            Wish::Heard => true,
        };
        // A channel that is still heard from a time before, on which the client listens no more, is as good as a new one:
        // what was sent since that time must not come.
        let is_heard = |channel: &Channel| {
            self.own.contains(channel)
                || (self.heard.contains(channel) && (is_just_heard || listens(channel)))
        };
        let missing: Vec<Channel> = channels.iter().filter(|&channel| !is_heard(channel)).cloned().collect();
        if missing.is_empty() {
            return Hearing::Heard;
        }
        self.wish = Wish::New(missing);
        Hearing::Awaited
    }

    /// The statement that was to listen is sent, or will not come.
    pub(crate) fn forget_wish(&mut self) {
        match self.wish {
            Wish::Asked(_) => self.is_orphan = true,
            Wish::None | Wish::New(_) | Wish::Heard | Wish::Refused => self.wish = Wish::None,
        }
    }
}

impl Pair<'_> {
    /// Whether a statement that may listen can be sent now.
    pub(crate) fn hear(&mut self, effects: &Effects<'_>) -> Hearing {
        if !self.policy.fans_out() {
            return Hearing::Heard;
        }
        let is_unicode = self.is_unicode();
        let mut wanted = Vec::new();
        effects.each(|_, effect| {
            if let Effect::Listen(name) = effect {
                wanted.extend(channel(&name, is_unicode));
            }
        });
        if wanted.is_empty() {
            return Hearing::Heard;
        }
        let channels = self.channels.get_or_insert_default();
        if channels.wish == Wish::None && self.state.as_ref().is_none_or(|state| state.is_free()) {
            channels.own.clear();
        }
        let (client, state) = (&*self.client, &*self.state);
        channels.want(&wanted, |channel| {
            client.listens_on(channel) || state.as_ref().is_some_and(|state| state.will_listen(channel))
        })
    }

    /// A statement that asks on which channels its session listens: from now on the client's servers do.
    pub(crate) fn show(&mut self, effects: &Effects<'_>) {
        let Some(channels) = self.channels else { return };
        effects.each(|_, effect| {
            channels.shows |= matches!(effect, Effect::Call { kind: FunctionKind::ListenRead, .. });
        });
        if channels.shows {
            listen_here(self.client, self.server, self.state, self.out);
        }
    }

    /// As `show`, for a statement that is only prepared yet: in its batch it would be too late.
    #[cold]
    pub(crate) fn show_parsed(&mut self, message: Message<'_>) {
        if self.policy.fans_out()
            && let Ok(parse) = Parse::read(message.body)
        {
            let policy = self.policy;
            self.show(&scan(parse.query(), self.client.dialect, policy));
        }
    }

    /// A statement is sent: so is the one that waited.
    pub(crate) fn heard(&mut self) {
        if let Some(channels) = self.channels {
            channels.forget_wish();
        }
    }

    /// Whether names mean the same to the client and to every server.
    pub(crate) fn is_unicode(&self) -> bool {
        [&b"client_encoding"[..], b"server_encoding"]
            .iter()
            .all(|name| self.client.parameters.value(name) == Some(b"UTF8"))
    }
}

/// Makes a server listen as its client does, in a message of our own, where none of the client's is under way. What it
/// then notifies is dropped, and when its transaction is over it is told to listen no more.
fn listen_here(client: &Client, server: &mut Server, state: &mut Option<Box<State>>, out: &mut Out) {
    let Some(own) = &client.channels else { return };
    let is_between = server.status == TransactionStatus::Idle
        && !server.ledger.is_unsynced()
        && server.sending == 0
        && server.ledger.iter().all(|entry| entry.swallow);
    let state = state.get_or_insert_default();
    let missing: Vec<Channel> =
        own.iter().filter(|channel| !state.unlisten.contains(channel)).cloned().collect();
    if !is_between || missing.is_empty() {
        return;
    }
    let mut text = Vec::new();
    for channel in &missing {
        text.extend_from_slice(b"LISTEN ");
        crate::carry::quote(&mut text, channel, b'"');
        text.push(b';');
    }
    server.owe_query();
    out.to_server.make(|bytes| encode::query(bytes, &text));
    state.unlisten.extend(missing);
}

impl Link {
    /// The client says something, and a server that is to be asked what it listens on must listen.
    #[cold]
    pub(crate) fn show_channels(&mut self, input: &[u8], out: &mut Out) {
        let shows = self.channels.as_ref().is_some_and(|channels| channels.shows);
        let says = |header: Header| header.tag != tag::TERMINATE && is_sendable(header, input.len());
        // Who waits for a listener says it again: until then the server would listen and stop in turns.
        if shows
            && !self.awaits_channels()
            && Header::peek(input).is_some_and(says)
            && let Some(server) = &mut self.server
        {
            listen_here(&self.client, server, &mut self.state, out);
        }
    }

    /// Whether the server may be lost without a word to the client: it does something for us alone that would leave
    /// nothing of the client's there.
    pub fn loses_nothing(&self) -> bool {
        let is_ours = self.server.as_ref().is_some_and(|server| {
            server.status == TransactionStatus::Idle
                && !server.ledger.is_unsynced()
                && server.sending == 0
                && !server.ledger.is_empty()
                && server.ledger.iter().all(|entry| entry.swallow)
        });
        is_ours
            && self.client.sending == 0
            && self.state.as_ref().is_none_or(|state| state.is_only_listening())
    }

    /// Channels that a listener must hear before the client's next statement can be sent; answered by
    /// [`Link::channels_heard`]. Each wish is told once.
    pub fn wished_channels(&mut self) -> Option<&[Channel]> {
        let channels = self.channels.as_deref_mut()?;
        if let Wish::New(wish) = &mut channels.wish {
            channels.wish = Wish::Asked(std::mem::take(wish));
            if let Wish::Asked(wish) = &channels.wish {
                return Some(wish);
            }
        }
        None
    }

    /// Whether the client's next statement waits for that.
    #[inline]
    pub fn awaits_channels(&self) -> bool {
        self.channels.as_ref().is_some_and(|channels| matches!(channels.wish, Wish::New(_) | Wish::Asked(_)))
    }

    /// The channels that were wished for are heard; or they will not be, and the client must listen by itself.
    pub fn channels_heard(&mut self, is_heard: bool) {
        let Some(channels) = &mut self.channels else { return };
        let Wish::Asked(wish) = std::mem::take(&mut channels.wish) else { return };
        channels.is_ahead = true;
        channels.wish = match is_heard {
            _ if std::mem::take(&mut channels.is_orphan) => Wish::None,
            true => Wish::Heard,
            false => Wish::Refused,
        };
        channels.heard.retain(|channel| !wish.contains(channel));
        if is_heard {
            channels.heard.extend(wish);
        } else {
            channels.own.extend(wish);
        }
    }

    /// Between two transactions: the channels of the client, if they may be others than when this was asked last.
    pub fn settled_channels(&mut self) -> Option<&[Channel]> {
        let is_between = self.may_be_notified();
        let own = &self.client.channels;
        let channels = self.channels.as_deref_mut()?;
        let is_same = match (&channels.settled, own) {
            (Some(settled), Some(own)) => Arc::ptr_eq(settled, own),
            (None, None) => true,
            _ => false,
        };
        if !is_between || channels.wish != Wish::None || (is_same && !channels.is_ahead) {
            return None;
        }
        channels.is_ahead = false;
        channels.settled.clone_from(own);
        let own = own.as_ref().map_or(&[][..], |own| own);
        channels.heard = own.to_vec();
        Some(own)
    }

    /// Whether the client listens on a channel: as the transaction under way has it, if there is one.
    pub fn listens_on(&self, channel: &[u8]) -> bool {
        self.client.listens_on(channel)
    }

    /// Whether the client listened on a channel before the transaction under way.
    pub fn listened_on(&self, channel: &[u8]) -> bool {
        match self.state.as_ref().and_then(|state| state.levels.channels_before()) {
            Some(before) => before.iter().any(|own| **own == *channel),
            None => self.listens_on(channel),
        }
    }

    /// Whether the client may be sent a notification now: as in PostgreSQL, only between two transactions, and
    /// never within another message.
    pub fn may_be_notified(&self) -> bool {
        self.server
            .as_ref()
            .is_none_or(|server| server.is_quiet() && server.status == TransactionStatus::Idle)
    }

    /// Whether the client has a transaction open and the server has nothing to do: what came until now was sent
    /// before anything that the transaction does is true.
    pub fn is_idle_in_transaction(&self) -> bool {
        self.server
            .as_ref()
            .is_some_and(|server| server.is_quiet() && server.status != TransactionStatus::Idle)
    }
}
