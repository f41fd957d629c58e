//! A real Patroni: three members with a PostgreSQL each, on a real etcd; all of it gone with its owner.
//!
//! Decides how it is set up: quick to notice things, and no acknowledged commit is lost (`synchronous_mode`).

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::etcd::Etcd;
use crate::howdah::{ADMIN, ADMIN_PASSWORD};
use crate::http::{self, Answer};
use crate::install::{Version, cache, say};
use crate::login::Login;
use crate::netns::Network;
use crate::os::{self, Signal};
use crate::postgres::{SUPERUSER, as_server_user, server_user};
use crate::python::{python, python_packages};
use crate::raw::Raw;
use crate::temp::{TempDir, free_port};
use crate::wait::{eventually, holds_within};

/// The cluster. Dropped, it is killed; if a test fails, its logs are kept, and it is said where.
pub struct Patroni {
    etcd: Etcd,
    home: TempDir,
    programs: PathBuf,
    packages: PathBuf,
    members: Vec<Member>,
    /// Each member is in a namespace of its own, if there are any. Dropped last.
    network: Option<Network>,
}

struct Member {
    port: u16,
    rest_port: u16,
    process: Mutex<Option<Child>>,
}

impl Patroni {
    /// Starts it, and waits until there is a leader and the others follow.
    pub fn start() -> Patroni {
        Patroni::launch_all(None)
    }

    /// The same, with each member in a namespace of its own, that can be cut off.
    pub fn start_in(network: Network) -> Patroni {
        Patroni::launch_all(Some(network))
    }

    fn launch_all(network: Option<Network>) -> Patroni {
        let programs = Version::V15.programs();
        let packages = python_packages(&PACKAGES);
        let member = |_| Member { port: free_port(), rest_port: free_port(), process: Mutex::new(None) };
        let members = (0..MEMBERS).map(member).collect();
        let etcd = Etcd::start(network.as_ref().map_or(Ipv4Addr::LOCALHOST, Network::common));
        let patroni = Patroni { etcd, home: TempDir::new(), programs, packages, members, network };
        for at in 0..MEMBERS {
            patroni.write_config(at, "{}");
            patroni.launch(at);
        }
        patroni.wait_for_members(MEMBERS);
        patroni
    }

    /// As `topology` of a database has it.
    pub fn topology(&self) -> String {
        let url = |at: usize| format!("http://{}:{}", self.host(at), self.members[at].rest_port);
        let urls: Vec<String> = (0..self.members.len()).map(url).collect();
        format!("patroni:{}", urls.join(","))
    }

    /// PostgreSQL's ports.
    pub fn ports(&self) -> Vec<u16> {
        self.members.iter().map(|member| member.port).collect()
    }

    pub fn port(&self, member: usize) -> u16 {
        self.members[member].port
    }

    /// A client program, e.g. `pgbench`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// A session on one member's PostgreSQL.
    #[track_caller]
    pub fn session(&self, member: usize) -> Raw {
        Raw::login(self.address(member), &Login::new(SUPERUSER, SUPERUSER))
    }

    /// Asks one member's REST.
    pub fn rest(&self, member: usize, method: &str, path: &str, body: &str) -> std::io::Result<Answer> {
        let address = (self.host(member), self.members[member].rest_port).into();
        http::request_to(address, method, path, body)
    }

    /// Who says that it leads, if somebody does.
    pub fn leader(&self) -> Option<usize> {
        (0..MEMBERS).find(|member| self.is_leader(*member))
    }

    /// Whether a member says that it leads.
    pub fn is_leader(&self, member: usize) -> bool {
        self.says_yes(member, "/leader")
    }

    /// Where members can be cut off from one another, and from clients. Only if it was started in one.
    pub fn network(&self) -> &Network {
        self.network.as_ref().expect("namespaces")
    }

    fn host(&self, member: usize) -> Ipv4Addr {
        self.network.as_ref().map_or(Ipv4Addr::LOCALHOST, |network| network.address(member))
    }

    fn address(&self, member: usize) -> SocketAddr {
        (self.host(member), self.port(member)).into()
    }

    /// Waits until somebody leads, and so many members in all are fit, one of them as synchronous standby.
    #[track_caller]
    pub fn wait_for_members(&self, count: usize) {
        let is_complete = || {
            let Some(leader) = self.leader() else { return false };
            let fit = (0..MEMBERS).filter(|member| self.says_yes(*member, "/replica")).count() + 1;
            let is_safe = count == 1 || (0..MEMBERS).any(|member| self.says_yes(member, "/sync"));
            let Ok(mut session) = Raw::try_login(self.address(leader), &Login::new(SUPERUSER, SUPERUSER))
            else {
                return false;
            };
            fit >= count && is_safe && session.value(STREAMING) >= (count - 1).to_string()
        };
        let is_ready = holds_within(START_LIMIT, is_complete);
        assert!(is_ready, "the cluster is not complete:\n{}", self.logs());
    }

    /// Has another member lead, as `patronictl switchover --force` does; answers who.
    #[track_caller]
    pub fn switch_over(&self) -> usize {
        let leader = self.leader().expect("somebody leads");
        let order = format!("{{\"leader\": \"{}\"}}", name(leader));
        let answer = self.rest(leader, "POST", "/switchover", &order).expect("Patroni answers");
        assert_eq!(answer.status, 200, "{}\n{}", answer.body, self.logs());
        let mut next = None;
        eventually(START_LIMIT, || {
            next = self.leader().filter(|next| *next != leader);
            next.is_some()
        });
        next.expect("waited for")
    }

    /// From now on poolers on these ports are told of a stop before it comes: each member has itself drained in all of
    /// them, and back when it is up again.
    pub fn announce_to(&self, poolers: &[u16]) {
        let ports: Vec<String> = poolers.iter().map(u16::to_string).collect();
        self.home.write("poolers", ports.join("\n"));
    }

    /// Gives a member other tags (JSON), and waits until everybody is told.
    #[track_caller]
    pub fn set_tags(&self, member: usize, tags: &str) {
        self.write_config(member, tags);
        let answer = self.rest(member, "POST", "/reload", "").expect("Patroni answers");
        assert!(answer.status < 300, "{answer:?}");
    }

    /// `kill -9` of Patroni and of PostgreSQL.
    pub fn kill(&self, member: usize) {
        let postmaster = self.postmaster(member);
        self.kill_process(member);
        if let Some(pid) = postmaster {
            // It may have ended by itself.
            let _ = os::send_signal(pid, Signal::Kill);
        }
    }

    /// `kill -9` of PostgreSQL alone: Patroni is there to start it again.
    pub fn kill_postgres(&self, member: usize) {
        let pid = self.postmaster(member).expect("PostgreSQL runs");
        os::send_signal(pid, Signal::Kill).expect("started by us");
    }

    /// The ends of all logs.
    pub fn logs(&self) -> String {
        let end = |at: usize| {
            let text = fs::read(self.home.join(&format!("{}.log", name(at)))).unwrap_or_default();
            String::from_utf8_lossy(&text[text.len().saturating_sub(3000)..]).into_owned()
        };
        let members: Vec<String> = (0..self.members.len()).map(end).collect();
        format!("{}\n=== etcd\n{}", members.join("\n---\n"), self.etcd.log())
    }

    fn says_yes(&self, member: usize, path: &str) -> bool {
        self.rest(member, "GET", path, "").is_ok_and(|answer| answer.status == 200)
    }

    fn postmaster(&self, member: usize) -> Option<u32> {
        let text = fs::read_to_string(self.directory(member).join("data/postmaster.pid")).ok()?;
        text.lines().next()?.trim().parse().ok()
    }

    fn kill_process(&self, member: usize) {
        let mut process = self.lock(member);
        if let Some(mut child) = process.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn lock(&self, member: usize) -> MutexGuard<'_, Option<Child>> {
        // The child is there or not, whatever panicked.
        self.members[member].process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn directory(&self, member: usize) -> PathBuf {
        self.home.join(&name(member))
    }

    /// JSON, which is YAML too.
    fn write_config(&self, at: usize, tags: &str) {
        let directory = self.directory(at);
        if !directory.exists() {
            fs::create_dir(&directory).expect("own directory");
            give(&directory);
        }
        let hook = directory.join("hook.sh");
        fs::write(&hook, self.hook(at)).expect("own directory");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("own file");
        let path = directory.join("patroni.json");
        let text = self.config(at, tags);
        fs::write(&path, text).expect("own directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("own file");
        give(&path);
    }

    fn config(&self, at: usize, tags: &str) -> String {
        let Member { port, rest_port, .. } = &self.members[at];
        let hosts: Vec<String> =
            self.etcd.addresses().iter().map(|address| format!("\"{address}\"")).collect();
        let directory = self.directory(at);
        let directory = directory.display();
        let role = |name: &str| format!("{{\"username\": \"{name}\", \"password\": \"test\"}}");
        let (superuser, replicator) = (role(SUPERUSER), role("replicator"));
        format!(
            r#"{{"scope": "howdah", "name": "{name}",
"restapi": {{"listen": "{host}:{rest_port}", "connect_address": "{host}:{rest_port}"}},
"etcd3": {{"hosts": [{hosts}]}},
"bootstrap": {{
  "dcs": {{"ttl": 20, "loop_wait": 1, "retry_timeout": 3, "synchronous_mode": true,
    "maximum_lag_on_failover": 33554432,
    "postgresql": {{"use_pg_rewind": true, "parameters": {{"max_connections": 150}}}}}},
  "initdb": [{{"encoding": "UTF8"}}, {{"locale": "C"}}, "no-sync"]}},
"postgresql": {{
  "listen": "{host}:{port}", "connect_address": "{host}:{port}",
  "data_dir": "{directory}/data", "bin_dir": "{programs}", "pgpass": "{directory}/pgpass",
  "authentication": {{"superuser": {superuser}, "replication": {replicator}, "rewind": {superuser}}},
  "pg_hba": ["local all all trust", "host all all {host}/24 trust",
    "host replication all {host}/24 trust"],
  "basebackup": [{{"checkpoint": "fast"}}],
  "before_stop": "{directory}/hook.sh stop",
  "callbacks": {{"on_start": "{directory}/hook.sh", "on_role_change": "{directory}/hook.sh"}},
  "parameters": {{"unix_socket_directories": "{directory}", "fsync": "off", "shared_buffers": "32MB",
    "wal_keep_size": "128MB", "autovacuum": "off", "jit": "off"}}}},
"watchdog": {{"mode": "off"}},
"tags": {tags}}}
"#,
            name = name(at),
            host = self.host(at),
            hosts = hosts.join(", "),
            programs = self.programs.display(),
        )
    }

    /// What Patroni runs: as the guide to clusters has it.
    fn hook(&self, at: usize) -> String {
        let (port, host) = (self.port(at), self.host(at));
        let (home, programs) = (self.home.path().display(), self.programs.display());
        format!(
            r#"#!/bin/sh
poolers=$(cat {home}/poolers 2>/dev/null)
console() {{
    {programs}/psql -qAX "host=127.0.0.1 port=$1 user={ADMIN} password={ADMIN_PASSWORD} dbname=pgbouncer" -c "$2"
}}
servers() {{
    console "$1" "SHOW NODES" | awk -F '|' -v port={port} '
        NR == 1 {{ for (i = 1; i <= NF; i++) at[$i] = i; next }}
        $at["port"] == port {{ sum += $at["connections"] }}
        END {{ print sum + 0 }}'
}}
if [ "$1" != stop ]; then
    for pooler in $poolers; do console "$pooler" "UNDRAIN NODE {host}:{port}"; done
    exit 0
fi
for pooler in $poolers; do console "$pooler" "DRAIN NODE {host}:{port}"; done
turns=0 left=1
while [ "$left" != 0 ] && [ $turns -lt 50 ]; do
    turns=$((turns + 1)) left=0
    for pooler in $poolers; do left=$((left + $(servers "$pooler"))); done
    [ "$left" = 0 ] || sleep 0.1
done
"#
        )
    }

    fn launch(&self, at: usize) {
        let log = self.home.join(&format!("{}.log", name(at)));
        let log = File::options().create(true).append(true).open(log).expect("own directory");
        let directory = self.directory(at);
        let mut command = match &self.network {
            Some(network) => network.command(at, Path::new(python())),
            None => as_server_user(Path::new(python())),
        };
        command.args(["-m", "patroni"]).arg(directory.join("patroni.json")).current_dir(&directory);
        command.env("PYTHONPATH", &self.packages).env("PYTHONDONTWRITEBYTECODE", "1").env("HOME", &directory);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("an open file")).stderr(log);
        command.process_group(0);
        // In order, so that it takes its PostgreSQL with it.
        let child = os::spawn(command, Signal::Terminate).expect("python can be started");
        *self.lock(at) = Some(child);
    }

    /// Keeps what a failed test has logged.
    fn keep_logs(&self) {
        let place = cache().join(format!("patroni-logs-{}", std::process::id()));
        let _ = fs::create_dir_all(&place);
        for at in 0..self.members.len() {
            let file = format!("{}.log", name(at));
            let _ = fs::copy(self.home.join(&file), place.join(&file));
        }
        say(&format!("the logs of Patroni are in {}", place.display()));
        eprintln!("--- ends of Patroni's logs ---\n{}", self.logs());
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.keep_logs();
        }
        let postmasters: Vec<u32> = (0..self.members.len()).filter_map(|at| self.postmaster(at)).collect();
        for at in 0..self.members.len() {
            self.kill_process(at);
        }
        for pid in postmasters {
            // At once, with its sessions; one that was killed before is gone.
            if is_postgres(pid) {
                let _ = os::send_signal(pid, Signal::Quit);
                holds_within(STOP_LIMIT, || !is_postgres(pid));
            }
        }
    }
}

/// A number of a process may have gone to another one since.
fn is_postgres(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    name.trim() == "postgres" && !state.contains(") Z ")
}

/// Members are called n1, n2, n3.
fn name(at: usize) -> String {
    format!("n{}", at + 1)
}

fn give(path: &Path) {
    if let Some(owner) = server_user() {
        chown(path, Some(owner.uid), Some(owner.gid)).expect("root may");
    }
}

const MEMBERS: usize = 3;
const PACKAGES: [&str; 2] = ["patroni[etcd3]==4.1.5", "psycopg[binary]==3.3.9"];
const STREAMING: &str = "select count(*) from pg_stat_replication where state = 'streaming'";
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(20);
