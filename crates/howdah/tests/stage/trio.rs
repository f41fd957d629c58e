//! A primary, two standbys of it, and a pooler whose reads may go there.
#![allow(dead_code)] // not every test needs all of it

use std::time::Duration;

use testkit::{Howdah, HowdahOptions, Login, Postgres, PostgresOptions, Raw, Version, cell, eventually};

use crate::stage::bare;

/// How long a test waits for what must come.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A primary and two standbys of it.
pub struct Trio {
    pub primary: Postgres,
    pub standbys: [Postgres; 2],
}

impl Trio {
    pub fn start() -> Trio {
        let primary = PostgresOptions::new(Version::wanted()).setting("wal_keep_size", "128MB").start();
        let standbys = [primary.standby(), primary.standby()];
        Trio { primary, standbys }
    }

    pub fn entry(&self, attrs: &str, more: &str) -> String {
        let ports = [self.primary.port(), self.standbys[0].port(), self.standbys[1].port()];
        let ports = ports.map(|port| port.to_string()).join(",");
        let hosts = "127.0.0.1,127.0.0.1,127.0.0.1";
        format!("host={hosts} port={ports} dbname=postgres target_session_attrs={attrs} {more}")
    }

    pub fn pooler(&self, more: &str) -> HowdahOptions {
        bare()
            .database("db", &self.entry("read-write", more))
            .user("postgres", "")
            .setting("pool_mode", "transaction")
            .setting("default_pool_size", "10")
            .setting("monitor_user", "postgres")
    }

    pub fn is_standby(&self, port: &str) -> bool {
        self.standbys.iter().any(|standby| standby.port().to_string() == port)
    }

    /// All that was written is replayed everywhere.
    pub fn settle(&self) {
        let written =
            self.primary.sql("select pg_current_wal_insert_lsn()")[0][0].clone().expect("a position");
        for standby in &self.standbys {
            let sql = format!("select pg_last_wal_replay_lsn() >= '{written}'::pg_lsn");
            eventually(LIMIT, || standby.sql(&sql)[0][0].as_deref() == Some("t"));
        }
    }
}

pub fn login() -> Login {
    Login::new("postgres", "db")
}

pub const PORT: &str = "select inet_server_port()";

/// A client, once its reads go to standbys.
#[track_caller]
pub fn reader(trio: &Trio, howdah: &Howdah) -> Raw {
    let mut client = howdah.login(&login());
    wait_until_split(trio, &mut client);
    client
}

#[track_caller]
pub fn wait_until_split(trio: &Trio, client: &mut Raw) {
    eventually(LIMIT, || trio.is_standby(&hinted(client)));
}

pub fn hinted(client: &mut Raw) -> String {
    client.value(&format!("/* howdah: standby */ {PORT}"))
}

/// How many went there for that reason, of all pools together.
pub fn routed(howdah: &Howdah, to: &str, reason: &str) -> u64 {
    let is_it =
        |row: &&Vec<(String, String)>| cell(row, "to") == Some(to) && cell(row, "reason") == Some(reason);
    let rows = howdah.admin("SHOW ROUTES");
    let count = |row: &Vec<(String, String)>| cell(row, "count").and_then(|count| count.parse::<u64>().ok());
    // Of what was never met there is no row.
    rows.iter().filter(is_it).map(|row| count(row).expect("a number")).sum()
}

pub fn place(server: &Postgres) -> String {
    format!("127.0.0.1:{}", server.port())
}
