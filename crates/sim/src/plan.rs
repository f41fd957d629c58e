//! What one seed decides beforehand: how many pools and clients, of which kind, and how rough it gets.

use std::sync::Arc;
use std::time::Duration;

use hub::FanoutLimits;
use link::Policy;
use model::{PoolMode, StateMode};
use pool::Limits;

use crate::rng::Rng;
use crate::script::{Theme, Traits};

/// How PostgreSQL meets who wants to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Fair,
    Refuses,
    LoginFails,
    NotNow,
    Slow,
}

/// One pool.
#[derive(Clone, Debug)]
pub(crate) struct HomePlan {
    pub(crate) limits: Limits,
    pub(crate) policy: Arc<Policy>,
    pub(crate) traits: Traits,
    pub(crate) query_wait: Duration,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) homes: Vec<HomePlan>,
    pub(crate) clients: u64,
    pub(crate) exchanges: u64,
    pub(crate) is_rough: bool,
    /// Behind the pools are nodes that come and go.
    pub(crate) is_cluster: bool,
    /// The most servers of all pools together.
    pub(crate) database_max: Option<u32>,
    pub(crate) delay_max: u64,
    pub(crate) think_max: u64,
    /// The room of a socket, in bytes.
    pub(crate) capacity: usize,
    /// The size of a read, in bytes.
    pub(crate) scratch: usize,
    pub(crate) misfortune_gap: u64,
    /// Of those who listen for others.
    pub(crate) fanout: FanoutLimits,
    /// The most notifications that wait for one client.
    pub(crate) notes_max: usize,
    /// How many misfortunes in a hundred are theirs.
    pub(crate) deaf_listeners: u64,
}

impl Plan {
    pub(crate) fn new(rng: &mut Rng) -> Plan {
        let is_rough = rng.chance(70);
        let is_cluster = is_rough && rng.chance(35);
        let count = rng.pick(&[1, 1, 1, 2, 2, 4]);
        let theme = rng.pick(&[
            Theme::Nothing,
            Theme::Nothing,
            Theme::Names,
            Theme::Sequences,
            Theme::Channels,
            Theme::Channels,
        ]);
        let homes: Vec<HomePlan> = (0..count).map(|_| home(rng, is_rough, is_cluster, theme)).collect();
        let count = homes.len() as u32;
        let is_about_channels = theme == Theme::Channels;
        Plan {
            database_max: (count > 1 && rng.chance(50)).then(|| count + rng.below(4) as u32),
            homes,
            clients: if rng.chance(10) { rng.between(15, 40) } else { rng.between(3, 12) },
            exchanges: rng.pick(if theme == Theme::Nothing { &[3, 8, 8, 20] } else { &[8, 8, 20, 20] }),
            deaf_listeners: if is_about_channels { 25 } else { 4 },
            is_rough,
            is_cluster,
            delay_max: rng.pick(&[0, 100, 1_000]),
            think_max: rng.pick(&[0, 500, 3_000]),
            capacity: rng.pick(&[64, 1_000, 65_536, 65_536]),
            scratch: rng.pick(&[7, 100, 2_048, 65_536, 65_536]),
            misfortune_gap: rng.pick(&[500, 2_000, 8_000]),
            fanout: FanoutLimits { listeners: rng.pick(&[1, 9, 9]), channels: rng.pick(&[1, 2, 9, 9]) },
            notes_max: if is_rough { rng.pick(&[2, 1_000, 1_000]) } else { usize::MAX },
        }
    }
}

pub(crate) fn limits(rng: &mut Rng) -> Limits {
    let millis = Duration::from_millis;
    Limits {
        size: rng.pick(&[1, 1, 2, 3, 5]),
        min_size: rng.pick(&[0, 0, 1, 2]),
        reserve_size: rng.pick(&[0, 0, 1]),
        reserve_timeout: rng.pick(&[millis(0), millis(3), millis(3)]),
        lifetime: rng.pick(&[millis(0), millis(10), millis(60), millis(3_600_000)]),
        idle_timeout: rng.pick(&[millis(0), millis(5), millis(50)]),
        check_delay: rng.pick(&[None, Some(millis(0)), Some(millis(3)), Some(millis(30_000))]),
        login_retry: rng.pick(&[millis(0), millis(20), millis(100)]),
        failover_timeout: Duration::from_secs(120),
        round_robin: rng.chance(30),
        pinned_max: rng.pick(&[0, 0, 1, 1, 2]),
    }
}

pub(crate) fn policy(rng: &mut Rng, mode: PoolMode, state: StateMode, is_rough: bool) -> Policy {
    let millis = Duration::from_millis;
    let some =
        |rng: &mut Rng| if is_rough && rng.chance(20) { millis(rng.between(2, 30)) } else { millis(0) };
    Policy {
        mode,
        state,
        prepared_max: rng.pick(&[1, 2, 3, 10, 200]),
        reset_always: rng.chance(20),
        check_query: rng.pick(&[None, Some(&b""[..]), Some(&b"SHOW TimeZone"[..])]).map(Arc::from),
        query_timeout: some(rng),
        idle_transaction_timeout: some(rng),
        transaction_timeout: some(rng),
        client_idle_timeout: some(rng),
        ..Policy::default()
    }
}

fn home(rng: &mut Rng, is_rough: bool, is_cluster: bool, theme: Theme) -> HomePlan {
    let mode = rng.pick(&[
        PoolMode::Transaction,
        PoolMode::Transaction,
        PoolMode::Transaction,
        PoolMode::Session,
        PoolMode::Statement,
    ]);
    let state = rng.pick(&[
        StateMode::Off,
        StateMode::Carry,
        StateMode::Carry,
        StateMode::Carry,
        StateMode::Pin,
        StateMode::Refuse,
    ]);
    let (mode, state) = match theme {
        Theme::Channels if rng.chance(70) => (PoolMode::Transaction, StateMode::Carry),
        _ => (mode, state),
    };
    let mut policy = policy(rng, mode, state, is_rough);
    policy.rides_out = is_cluster;
    // Where state is refused a LISTEN is not, unless nobody can listen for the client: which of the two, no ideal foresees.
    policy.listen_fanout = rng.chance(75) && state != StateMode::Refuse;
    let maps = rng.chance(85);
    if !maps {
        policy.prepared_max = 0;
    }
    let is_session = mode == PoolMode::Session;
    HomePlan {
        limits: limits(rng),
        traits: Traits {
            statements: is_session || (maps && !policy.reset_always),
            blocks: mode != PoolMode::Statement,
            discards: true,
            theme,
            fans_out: policy.listen_fanout && state == StateMode::Carry && !is_session,
            // Who has a server of its own may do with it what it likes.
            state: if is_session && state != StateMode::Off { StateMode::Carry } else { state },
        },
        policy: Arc::new(policy),
        query_wait: if is_rough {
            rng.pick(&[Duration::ZERO, Duration::from_millis(20)])
        } else {
            Duration::ZERO
        },
    }
}
