//! The fixtures that tests are made of: real servers, the pooler, scripted clients, liars and bad networks.
//!
//! They decide how things are started, watched and cleaned away, never what is right: that is the tests' part.
//! Nothing here uses the pooler's own crates, so that what it reads and writes is judged by a second opinion.
//!
//! # A whole test
//!
//! ```no_run
//! use testkit::{Howdah, Postgres, message};
//!
//! # let binary = "howdah"; // in a test of the crate howdah: env!("CARGO_BIN_EXE_howdah")
//! let server = Postgres::shared_wanted(); // PostgreSQL 15, or what HOWDAH_TEST_PG asks for
//! server.create_role("select_one", "secret");
//! server.create_database("select_one", "select_one"); // of this test alone
//! let howdah = Howdah::new(binary)
//!     .database("select_one", &server.connection("select_one"))
//!     .setting("default_pool_size", "1")
//!     .user("select_one", "secret")
//!     .start();
//! let mut client = howdah.session("select_one", "select_one");
//! assert_eq!(client.value("select 1"), "1");
//! client.send(message::all(&[
//!     message::parse("", "select 2", &[]),
//!     message::bind("", "", &[]),
//!     message::execute("", 0),
//!     message::sync(),
//! ]));
//! assert_eq!(client.answers(1), "1 2 D C(SELECT 1) ZI");
//! assert_eq!(howdah.admin_value("SHOW POOLS", &[("database", "select_one")], "sv_idle"), "1");
//! ```
//!
//! # What there is
//!
//! - [`Postgres`]: `Postgres::shared(version)` for most tests; `PostgresOptions::new(version)...start()` for those
//!   that stop, kill, freeze or configure it. It ends with the test process, whatever happens to that.
//! - [`Howdah`]: the pooler with an ini from a builder (or a whole text), its log, its console, its memory.
//! - [`Raw`] with [`Login`], [`Tls`] and [`message`]: a client that sends bytes and reports what came, in the short
//!   form of [`message::letters`]: `1 2 T D C(SELECT 1) ZI`, `E(26000) ZI`, `EOF` and `RST` for an end.
//! - [`Patroni`]: three members of a real one on three of a real etcd, to be switched over, killed and tagged.
//! - [`HttpServer`] and [`http`]: an engine that lies, and a load balancer that asks.
//! - [`Network`]: namespaces that can be cut off from one another, for those who are root.
//! - [`DnsServer`]: a name server that answers, fails or is silent.
//! - [`FakeServer`]: a server that says what a test makes it say; [`reply`] has its messages.
//! - [`Chaos`]: a proxy that delays, cuts to pieces, resets, swallows, half-closes.
//! - [`Pgbench`]: the real one, with its report.
//! - [`Certificates`]: a throw-away authority and its certificates, as PEM files.
//! - [`wait::eventually`]: the only way that tests wait for anything.
//!
//! Everything that a fixture waits for has a limit; after it the fixture panics with all that was seen, and on a
//! failing test the ends of the logs are printed.
#![deny(unsafe_code)]
// Tier 4: fixtures are files, clocks, processes and sockets.
#![allow(clippy::disallowed_methods)]

// What tests start.
pub mod etcd;
pub mod howdah;
pub mod patroni;
pub mod postgres;

// What they speak with.
pub mod login;
pub mod message;
pub mod http;
pub mod pgbench;
pub mod raw;
pub mod stream;

// What they do harm with.
pub mod chaos;
pub mod dns;
pub mod exposition;
pub mod fake_server;
pub mod netns;
pub mod reply;

// What the rest stands on.
pub mod install;
pub mod os;
pub mod python;
pub mod temp;
pub mod tls;
pub mod wait;

pub use chaos::{Chaos, Direction, Faults};
pub use dns::{DnsMode, DnsServer};
pub use fake_server::{FakeServer, FakeSession, Opening};
pub use howdah::{Howdah, HowdahOptions, cell, eventually_shown};
pub use http::{Habit, HttpServer};
pub use install::Version;
pub use login::Login;
pub use message::{Message, letters};
pub use netns::Network;
pub use os::Signal;
pub use patroni::Patroni;
pub use pgbench::Pgbench;
pub use postgres::{Postgres, PostgresOptions, StopMode};
pub use raw::{CancelKey, End, Event, Raw, Refusal, Row, send_cancel};
pub use stream::{Address, Tls, TlsMemory};
pub use temp::{TempDir, free_port};
pub use tls::Certificates;
pub use wait::eventually;
