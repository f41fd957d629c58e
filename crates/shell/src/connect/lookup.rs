//! auth_query: one connection per authentication database, kept for the next question.
//!
//! The connection is nobody's but this file's: nothing that a client sent reaches it but the user's name, as a
//! parameter. Does not know what is done with what was found.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use parking_lot::Mutex;
use server::login::{Found, LookupError};
use tokio::time::Instant;

use super::{ConnectContext, ConnectError, ConnectOrder, Deadline, Stage, Stream, open, talk};

/// The connections to authentication databases.
pub struct Lookups {
    context: ConnectContext,
    places: Mutex<HashMap<Key, Arc<Place>>>,
}

/// What makes two orders go to the same database as the same user.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    host: String,
    port: u16,
    database: String,
    user: String,
}

/// One question at a time is asked in it.
type Place = tokio::sync::Mutex<Option<Kept>>;

struct Kept {
    stream: Stream,
    used: Instant,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum LookupFailure {
    /// No connection.
    Connect(ConnectError),
    /// The connection was lost in the middle.
    Lost(io::Error),
    /// The query failed, or answered something else than a user and a secret.
    Query(LookupError),
    /// The time is up.
    Timeout,
}

impl fmt::Display for LookupFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupFailure::Connect(error) => error.fmt(f),
            LookupFailure::Lost(error) => write!(f, "auth_query: server conn crashed? ({error})"),
            LookupFailure::Query(error) => error.fmt(f),
            LookupFailure::Timeout => f.write_str("auth_query: timeout"),
        }
    }
}

impl std::error::Error for LookupFailure {}

impl Lookups {
    /// No connection yet.
    pub fn new(context: ConnectContext) -> Lookups {
        Lookups { context, places: Mutex::new(HashMap::new()) }
    }

    /// Asks the database of `order` for `user`; `None` if it knows none. All of it, the wait for others'
    /// questions included, takes `limit` at most; zero is no limit.
    pub async fn find(
        &self,
        order: &ConnectOrder,
        query: &str,
        user: &str,
        limit: Duration,
    ) -> Result<Option<Found>, LookupFailure> {
        let asked = async { Ok(self.ask(order, query, user).await) };
        match Deadline::after(limit).within(Stage::Login, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(LookupFailure::Timeout),
        }
    }

    /// Closes connections that were not used for this long: all of them for zero, as after a reload.
    pub fn close_idle(&self, idle: Duration) {
        self.places.lock().retain(|_, place| match place.try_lock() {
            Ok(kept) => kept.as_ref().is_some_and(|kept| kept.used.elapsed() < idle),
            // Somebody asks right now; what he uses is as new as can be.
            Err(_) => !idle.is_zero(),
        });
    }

    /// Closes the connections to databases of this name that nobody asks on.
    pub fn leave_database(&self, name: &str) {
        let is_asked = |place: &Place| place.try_lock().is_err();
        self.places.lock().retain(|key, place| key.database != name || is_asked(place));
    }

    async fn ask(
        &self,
        order: &ConnectOrder,
        query: &str,
        user: &str,
    ) -> Result<Option<Found>, LookupFailure> {
        let place = self.place(order);
        let mut place = place.lock().await;
        // Taken out: if this is given up in the middle, the connection goes, too.
        if let Some(mut kept) = place.take() {
            match talk::ask(&mut kept.stream, query, user).await {
                // It may have been closed long ago, perhaps with a word of farewell. A new one decides.
                Err(LookupFailure::Lost(_)) => {}
                Err(LookupFailure::Query(LookupError::Failed(failed))) if failed.severity == "FATAL" => {}
                Ok(found) => {
                    *place = Some(Kept { used: Instant::now(), ..kept });
                    return Ok(found);
                }
                Err(failure) => return Err(failure),
            }
        }
        let mut stream = open(order, &self.context).await.map_err(LookupFailure::Connect)?.stream;
        let found = talk::ask(&mut stream, query, user).await?;
        *place = Some(Kept { stream, used: Instant::now() });
        Ok(found)
    }

    fn place(&self, order: &ConnectOrder) -> Arc<Place> {
        let key = Key {
            host: order.host.to_string(),
            port: order.port,
            database: order.database.clone(),
            user: order.user.clone(),
        };
        let mut places = self.places.lock();
        if places.len() >= PLACES_MAX {
            // Whoever asks right now holds a second reference.
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        Arc::clone(places.entry(key).or_default())
    }
}

/// Databases beyond this push out the connections that nobody uses: clients choose names of databases.
const PLACES_MAX: usize = 64;
