//! Streaming replication: standbys of a server, their promotion, and whom they follow.

use std::fs;
use std::sync::Mutex;

use super::{Postgres, SUPERUSER, as_server_user, server_user};
use crate::install;
use crate::temp::{TempDir, free_port};
use crate::wait::eventually;

impl Postgres {
    /// Starts a hot standby that follows this server, on a port of its own, and waits until it streams.
    pub fn standby(&self) -> Postgres {
        let home = TempDir::new();
        if let Some(owner) = server_user() {
            std::os::unix::fs::chown(home.path(), Some(owner.uid), Some(owner.gid)).expect("root may");
        }
        let mut backup = as_server_user(&self.program("pg_basebackup"));
        backup.args(["--host=127.0.0.1", &format!("--port={}", self.port), "--username", SUPERUSER]);
        backup.args(["--checkpoint=fast", "--wal-method=stream", "--no-sync", "--pgdata"]);
        backup.arg(home.join("data")).current_dir(home.path());
        if let Err(why) = install::run_quietly(&mut backup) {
            panic!("pg_basebackup failed:\n{why}");
        }
        let options = self.options.clone().setting("primary_conninfo", &self.conninfo());
        let standby = Postgres {
            options,
            programs: self.programs.clone(),
            port: free_port(),
            home,
            certificates: None,
            process: Mutex::new(None),
        };
        standby.write_settings();
        standby.write_signal();
        standby.launch();
        self.wait_for_standbys(1);
        standby
    }

    /// Ends recovery; returns when the server takes writes.
    pub fn promote(&self) {
        let row = self.sql("select pg_promote(true, 60)");
        assert_eq!(row[0][0].as_deref(), Some("t"), "promotion failed:\n{}", self.log());
    }

    /// Starts the stopped server again, as a standby of another one.
    pub fn start_as_standby_of(&self, primary: &Postgres) {
        self.set("primary_conninfo", &primary.conninfo());
        self.write_signal();
        self.launch();
    }

    /// Waits until so many standbys follow.
    pub fn wait_for_standbys(&self, count: usize) {
        let mut session = self.session(SUPERUSER);
        let wanted = count.to_string();
        let sql = "select count(*) from pg_stat_replication where state = 'streaming'";
        eventually(super::START_LIMIT, || session.value(sql) >= wanted);
    }

    fn conninfo(&self) -> String {
        format!("host=127.0.0.1 port={} user={SUPERUSER} application_name=standby", self.port)
    }

    fn write_signal(&self) {
        let path = self.data().join("standby.signal");
        fs::write(&path, "").expect("own directory");
        if let Some(owner) = server_user() {
            std::os::unix::fs::chown(&path, Some(owner.uid), Some(owner.gid)).expect("root may");
        }
    }
}
