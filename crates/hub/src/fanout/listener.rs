//! One listener: its connection, as it is known here, and who listens by it.

use std::sync::Arc;
use std::time::Duration;

use console::ListenerRow;
use model::{ClientId, Moment, PoolId};
use rustc_hash::FxHashMap;

use super::{Channel, Command, Done, ListenerId, Next, ServerEnd, Target};

/// A listener that nobody needs is kept for so long.
const GRACE: Duration = Duration::from_secs(10);
/// A connection that was silent for so long must show that it lives.
const CHECK_AFTER: Duration = Duration::from_secs(30);
/// The pause after the first connection that fails; it doubles with each.
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const RETRY_MOST: Duration = Duration::from_secs(1);
/// A connection that lived for less than this counts as one that failed.
const SHORT_LIFE: Duration = Duration::from_secs(5);
/// So many channels are named in one command.
const COMMAND_CHANNELS_MAX: usize = 256;

pub(super) struct Listener<C> {
    pub(super) target: Target,
    state: State,
    channels: FxHashMap<Channel, Heard<C>>,
    members: FxHashMap<ClientId, Member<C>>,
    /// Channels of which the connection may have to be told something.
    changed: Vec<Channel>,
    /// The channels of the command that is not answered yet.
    said: Vec<Channel>,
    /// Members that wait for a channel.
    waiting: Vec<Waiting>,
    /// How many commands and checks were sent.
    rounds: u64,
    /// As many there must be for all that wait.
    rounds_wanted: u64,
    unused_since: Moment,
    /// Without members it ends at once, not after a while: its database is to be left.
    is_dismissed: bool,
    /// Connections that failed in a row.
    failures: u32,
    /// Of the connection, while there is one.
    end: Option<ServerEnd>,
    notifications: u64,
    losses: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No connection; one is to be tried at this moment.
    Down(Moment),
    Connecting,
    Up {
        since: Moment,
        heard_at: Moment,
        /// A command or check is not answered yet.
        is_busy: bool,
    },
}

/// A member that waits until its channels are heard, and what was sent on them before it came is through: that is so
/// when the connection has answered what it was sent since.
struct Waiting {
    client: ClientId,
    /// The number of that command or check.
    round: u64,
}

/// A channel: what the connection knows of it, and who listens.
struct Heard<C> {
    ear: Ear,
    /// It was heard when a connection was lost.
    was_lost: bool,
    /// It is among those that have changed.
    is_listed: bool,
    clients: FxHashMap<ClientId, C>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ear {
    Closed,
    /// LISTEN is said and not answered.
    Opening,
    Open,
    /// UNLISTEN is said and not answered.
    Closing,
}

struct Member<C> {
    handle: C,
    pool: PoolId,
    channels: Vec<Channel>,
}

/// What became of a client's wish.
pub(super) enum Added {
    Waits,
    TooMany,
}

impl<C> Heard<C> {
    fn new() -> Heard<C> {
        Heard { ear: Ear::Closed, was_lost: false, is_listed: false, clients: FxHashMap::default() }
    }

    /// Once, however often clients come and go before the connection is told.
    fn list(&mut self, channel: &Channel, changed: &mut Vec<Channel>) {
        if !std::mem::replace(&mut self.is_listed, true) {
            changed.push(Arc::clone(channel));
        }
    }

    fn is_nothing(&self) -> bool {
        self.ear == Ear::Closed && self.clients.is_empty() && !self.is_listed
    }

    fn is_settled(&self) -> bool {
        match self.ear {
            Ear::Open => !self.clients.is_empty(),
            Ear::Closed => self.clients.is_empty(),
            Ear::Opening | Ear::Closing => false,
        }
    }
}

impl<C: Clone> Listener<C> {
    pub(super) fn new(now: Moment, target: Target) -> Listener<C> {
        Listener {
            target,
            state: State::Down(now),
            channels: FxHashMap::default(),
            members: FxHashMap::default(),
            changed: Vec::new(),
            said: Vec::new(),
            waiting: Vec::new(),
            rounds: 0,
            rounds_wanted: 0,
            unused_since: now,
            is_dismissed: false,
            failures: 0,
            end: None,
            notifications: 0,
            losses: 0,
        }
    }

    pub(super) fn add(
        &mut self,
        (client, handle, pool): (ClientId, C, PoolId),
        wanted: &[Channel],
        limit: usize,
    ) -> Added {
        let known = self.members.get(&client).map_or(&[][..], |member| &member.channels);
        let mut new: Vec<&Channel> = wanted.iter().filter(|channel| !known.contains(channel)).collect();
        new.sort();
        new.dedup();
        if known.len() + new.len() > limit {
            return Added::TooMany;
        }
        self.is_dismissed = false;
        let member = self.members.entry(client).or_insert(Member { handle, pool, channels: Vec::new() });
        for channel in new {
            let known = self.channels.get_key_value(channel);
            let shared = Arc::clone(known.map_or(channel, |(known, _)| known));
            let heard = self.channels.entry(Arc::clone(&shared)).or_insert_with(Heard::new);
            heard.clients.insert(client, member.handle.clone());
            if !heard.is_settled() {
                heard.list(&shared, &mut self.changed);
            }
            member.channels.push(shared);
        }
        let waits = self.waiting.iter_mut().find(|waiting| waiting.client == client);
        let round = self.rounds + 1;
        match waits {
            Some(waiting) => waiting.round = round,
            None => self.waiting.push(Waiting { client, round }),
        }
        self.rounds_wanted = self.rounds_wanted.max(round);
        Added::Waits
    }

    /// True if the connection has something to be told.
    pub(super) fn settle(&mut self, now: Moment, client: ClientId, channels: &[Channel]) -> bool {
        let Some(member) = self.members.get_mut(&client) else { return false };
        let (kept, dropped): (Vec<_>, Vec<_>) =
            std::mem::take(&mut member.channels).into_iter().partition(|channel| channels.contains(channel));
        member.channels = kept;
        let is_gone = member.channels.is_empty();
        for channel in dropped {
            self.remove(client, channel);
        }
        if is_gone {
            self.members.remove(&client);
            self.waiting.retain(|waiting| waiting.client != client);
            if self.members.is_empty() {
                self.unused_since = now;
            }
        }
        !self.changed.is_empty() || self.members.is_empty()
    }

    fn remove(&mut self, client: ClientId, channel: Channel) {
        let Some(heard) = self.channels.get_mut(&channel) else { return };
        heard.clients.remove(&client);
        if !heard.clients.is_empty() {
            return;
        }
        if heard.is_nothing() {
            self.channels.remove(&channel);
        } else {
            heard.list(&channel, &mut self.changed);
        }
    }

    /// True if it is to end now.
    pub(super) fn dismiss(&mut self) -> bool {
        self.is_dismissed = true;
        self.members.is_empty()
    }

    pub(super) fn next(&mut self, now: Moment) -> Next {
        let grace = if self.is_dismissed { Duration::ZERO } else { GRACE };
        let ends_at = if self.members.is_empty() { self.unused_since + grace } else { Moment::NEVER };
        if ends_at <= now {
            return Next::End;
        }
        let wants_round = self.rounds < self.rounds_wanted && !self.waiting.is_empty();
        match &mut self.state {
            State::Connecting => Next::Rest(ends_at),
            State::Down(retry_at) if *retry_at > now => Next::Rest(ends_at.min(*retry_at)),
            State::Down(_) => match self.pool_to_try() {
                Some(pool) => {
                    self.state = State::Connecting;
                    Next::Connect(pool)
                }
                None => Next::Rest(ends_at),
            },
            State::Up { is_busy: true, .. } => Next::Rest(ends_at),
            State::Up { heard_at, is_busy, .. } => {
                let check_at = *heard_at + CHECK_AFTER;
                if !self.changed.is_empty() {
                    *is_busy = true;
                    return self.say(now, ends_at);
                }
                if check_at <= now || wants_round {
                    *is_busy = true;
                    self.rounds += 1;
                    return Next::Check;
                }
                Next::Rest(ends_at.min(check_at))
            }
        }
    }

    /// The next user to log in as: another one after each failure, because not every one may be let in.
    fn pool_to_try(&self) -> Option<PoolId> {
        let mut pools: Vec<PoolId> = self.members.values().map(|member| member.pool).collect();
        pools.sort();
        pools.dedup();
        let turn = self.failures as usize % pools.len().max(1);
        pools.get(turn).copied()
    }

    fn say(&mut self, now: Moment, ends_at: Moment) -> Next {
        let mut command = Command::default();
        while self.said.len() < COMMAND_CHANNELS_MAX
            && let Some(channel) = self.changed.pop()
        {
            let Some(heard) = self.channels.get_mut(&channel) else { continue };
            heard.is_listed = false;
            match (heard.ear, heard.clients.is_empty()) {
                (Ear::Closed, false) => {
                    heard.ear = Ear::Opening;
                    command.listen.push(Arc::clone(&channel));
                }
                (Ear::Open, true) => {
                    heard.ear = Ear::Closing;
                    command.unlisten.push(Arc::clone(&channel));
                }
                (Ear::Closed, true) => {
                    self.channels.remove(&channel);
                    continue;
                }
                _ => continue,
            }
            self.said.push(channel);
        }
        if !self.said.is_empty() {
            self.rounds += 1;
            return Next::Say(command);
        }
        if self.rounds < self.rounds_wanted && !self.waiting.is_empty() {
            self.rounds += 1;
            return Next::Check;
        }
        if let State::Up { is_busy, heard_at, .. } = &mut self.state {
            *is_busy = false;
            return Next::Rest(ends_at.min((*heard_at + CHECK_AFTER).max(now)));
        }
        Next::Rest(ends_at)
    }

    pub(super) fn opened(&mut self, now: Moment, end: ServerEnd) {
        self.end = Some(end);
        self.state = State::Up { since: now, heard_at: now, is_busy: false };
        for (channel, heard) in &mut self.channels {
            heard.list(channel, &mut self.changed);
        }
    }

    pub(super) fn done(&mut self, now: Moment) -> Done<C> {
        if let State::Up { heard_at, is_busy, .. } = &mut self.state {
            *heard_at = now;
            *is_busy = false;
        }
        let mut missed: Vec<ClientId> = Vec::new();
        for channel in std::mem::take(&mut self.said) {
            let Some(heard) = self.channels.get_mut(&channel) else { continue };
            heard.ear = match heard.ear {
                Ear::Opening | Ear::Open => Ear::Open,
                Ear::Closing | Ear::Closed => Ear::Closed,
            };
            if heard.ear == Ear::Open && std::mem::take(&mut heard.was_lost) {
                missed.extend(heard.clients.keys());
            }
            if heard.is_nothing() {
                self.channels.remove(&channel);
            } else if !heard.is_settled() {
                heard.list(&channel, &mut self.changed);
            }
        }
        missed.sort();
        missed.dedup();
        let Listener { channels, members, waiting, rounds, .. } = self;
        let mut heard = Vec::new();
        waiting.retain(|Waiting { client, round }| {
            let Some(member) = members.get(client) else { return false };
            let waits = *round > *rounds || !is_heard(channels, member);
            if !waits {
                heard.push(member.handle.clone());
            }
            waits
        });
        let handle = |client| members.get(client).map(|member: &Member<C>| member.handle.clone());
        Done { heard, missed: missed.iter().filter_map(handle).collect() }
    }

    pub(super) fn failed(&mut self, now: Moment) -> Vec<C> {
        self.down(now);
        let waiting = std::mem::take(&mut self.waiting);
        let handle = |waiting: &Waiting| Some(self.members.get(&waiting.client)?.handle.clone());
        waiting.iter().filter_map(handle).collect()
    }

    pub(super) fn lost(&mut self, now: Moment) -> Vec<C> {
        self.losses += 1;
        if let State::Up { since, .. } = self.state
            && now.since(since) >= SHORT_LIFE
        {
            self.failures = 0;
        }
        if self.failures > 0 {
            return self.failed(now);
        }
        self.down(now);
        // The first is tried again at once, and who waits goes on waiting.
        self.state = State::Down(now);
        Vec::new()
    }

    pub(super) fn retry(&mut self, now: Moment) {
        if matches!(self.state, State::Down(_)) {
            self.failures = 0;
            self.state = State::Down(now);
        }
    }

    /// True if it leads elsewhere now.
    pub(super) fn retarget(
        &mut self,
        leads: &impl Fn(PoolId) -> Option<Target>,
        strays: &mut Vec<C>,
    ) -> bool {
        let encoding = self.target.encoding.clone();
        let target_of = |pool| leads(pool).map(|target| Target { encoding: encoding.clone(), ..target });
        let mut members: Vec<(Option<Target>, &C)> =
            self.members.values().map(|member| (target_of(member.pool), &member.handle)).collect();
        let is_new = !members.is_empty() && members.iter().all(|(to, _)| to.as_ref() != Some(&self.target));
        let target = if is_new { members.iter().find_map(|(to, _)| to.clone()) } else { None };
        let target = target.unwrap_or_else(|| self.target.clone());
        members.retain(|(to, _)| to.as_ref() != Some(&target));
        strays.extend(members.into_iter().map(|(_, client)| client.clone()));
        std::mem::replace(&mut self.target, target.clone()) != target
    }

    fn down(&mut self, now: Moment) {
        let pause = RETRY_FIRST.saturating_mul(1 << self.failures.min(10)).min(RETRY_MOST);
        self.failures = self.failures.saturating_add(1);
        self.state = State::Down(now + pause);
        self.end = None;
        self.said.clear();
        for heard in self.channels.values_mut() {
            heard.was_lost |= matches!(heard.ear, Ear::Open | Ear::Closing) && !heard.clients.is_empty();
            heard.ear = Ear::Closed;
            heard.is_listed = false;
        }
        self.changed.clear();
        self.channels.retain(|_, heard| !heard.is_nothing());
    }

    pub(super) fn notified(&mut self, now: Moment) {
        self.notifications += 1;
        if let State::Up { heard_at, .. } = &mut self.state {
            *heard_at = now;
        }
    }

    pub(super) fn clients_of(&self, channel: &[u8]) -> Option<(&Channel, impl Iterator<Item = &C>)> {
        let (channel, heard) = self.channels.get_key_value(channel)?;
        Some((channel, heard.clients.values()))
    }

    pub(super) fn pools(&self) -> impl Iterator<Item = PoolId> {
        self.members.values().map(|member| member.pool)
    }

    pub(super) fn row(&self, id: ListenerId) -> ListenerRow {
        let state = match self.state {
            State::Up { .. } => "listening",
            State::Connecting | State::Down(_) if self.losses > 0 => "lost",
            State::Connecting | State::Down(_) => "connecting",
        };
        let first = self.target.places.first().map_or(0, |place| place.port);
        ListenerRow {
            id: id.0.get(),
            database: self.target.dbname.clone(),
            addr: self.end.as_ref().map(|end| end.addr.clone()),
            port: self.end.as_ref().map_or(first, |end| end.port),
            remote_pid: self.end.as_ref().map_or(0, |end| end.process_id),
            client_encoding: String::from_utf8_lossy(&self.target.encoding).into_owned(),
            state,
            clients: self.members.len() as u64,
            channels: self.channels.values().filter(|heard| !heard.clients.is_empty()).count() as u64,
            notifications: self.notifications,
            losses: self.losses,
        }
    }
}

fn is_heard<C>(channels: &FxHashMap<Channel, Heard<C>>, member: &Member<C>) -> bool {
    let is_open = |channel| channels.get(channel).is_some_and(|heard: &Heard<C>| heard.ear == Ear::Open);
    member.channels.iter().all(is_open)
}
