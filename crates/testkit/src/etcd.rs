//! A real etcd of three members on one address of this machine, gone with its owner.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::http;
use crate::install::{ensure_packages, on_path, run_quietly, with_lock};
use crate::os::{self, Signal};
use crate::postgres::{as_server_user, server_user};
use crate::python::made_once;
use crate::temp::{TempDir, free_port};
use crate::wait::holds_within;

/// The cluster. Dropped, it is killed.
pub struct Etcd {
    home: TempDir,
    address: Ipv4Addr,
    members: Vec<Member>,
}

struct Member {
    client_port: u16,
    process: Child,
}

impl Etcd {
    /// Starts it on an address of this machine, and waits until it has a leader.
    pub fn start(address: Ipv4Addr) -> Etcd {
        let program = program();
        let home = TempDir::new();
        let ports: Vec<(u16, u16)> = (0..MEMBERS).map(|_| (free_port(), free_port())).collect();
        let peers: Vec<String> = ports
            .iter()
            .enumerate()
            .map(|(at, (_, peer))| format!("e{at}=http://{address}:{peer}"))
            .collect();
        let mut etcd = Etcd { home, address, members: Vec::new() };
        for (at, (client_port, peer_port)) in ports.iter().enumerate() {
            let process = etcd.launch(&program, at, (*client_port, *peer_port), &peers.join(","));
            etcd.members.push(Member { client_port: *client_port, process });
        }
        let is_healthy = |member: &Member| {
            let answer = http::request_to((address, member.client_port).into(), "GET", "/health", "");
            answer.is_ok_and(|answer| answer.status == 200 && answer.body.contains("true"))
        };
        let is_ready = holds_within(START_LIMIT, || etcd.members.iter().all(is_healthy));
        assert!(is_ready, "etcd is not healthy:\n{}", etcd.log());
        etcd
    }

    /// `address:port` of each member.
    pub fn addresses(&self) -> Vec<String> {
        self.members.iter().map(|member| format!("{}:{}", self.address, member.client_port)).collect()
    }

    /// The ends of what its members have logged.
    pub fn log(&self) -> String {
        let end = |at: usize| {
            let text = fs::read(self.home.join(&format!("log{at}"))).unwrap_or_default();
            String::from_utf8_lossy(&text[text.len().saturating_sub(1500)..]).into_owned()
        };
        (0..MEMBERS).map(end).collect::<Vec<_>>().join("\n---\n")
    }

    fn launch(&self, program: &Path, at: usize, (client, peer): (u16, u16), peers: &str) -> Child {
        let data = self.home.join(&format!("data{at}"));
        fs::create_dir(&data).expect("own directory");
        if let Some(owner) = server_user() {
            chown(&data, Some(owner.uid), Some(owner.gid)).expect("root may");
        }
        let log = File::create(self.home.join(&format!("log{at}"))).expect("own directory");
        let mut command = as_server_user(program);
        let own = |port: u16| format!("http://{}:{port}", self.address);
        command.arg("--name").arg(format!("e{at}")).arg("--data-dir").arg(&data).current_dir(&data);
        command.args(["--listen-client-urls", &own(client), "--advertise-client-urls", &own(client)]);
        command.args(["--listen-peer-urls", &own(peer), "--initial-advertise-peer-urls", &own(peer)]);
        command.args(["--initial-cluster", peers, "--initial-cluster-state", "new"]);
        command.args(["--initial-cluster-token", "howdah-test", "--logger", "zap"]);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("an open file")).stderr(log);
        command.process_group(0);
        os::spawn(command, Signal::Kill).expect("etcd can be started")
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.process.kill();
            let _ = member.process.wait();
        }
    }
}

/// Debian's package, unpacked and not installed: that would start one that nobody asked for.
fn program() -> PathBuf {
    if on_path("etcd") {
        return PathBuf::from("/usr/bin/etcd");
    }
    let tree = made_once("etcd", |place| {
        let download = || {
            let mut command = Command::new("apt-get");
            command.args(["-q", "download", "etcd-server"]).current_dir(place);
            run_quietly(&mut command)
        };
        with_lock(|| {
            if download().is_err() {
                // The lists of packages may be missing, or old.
                ensure_packages(&["ca-certificates"]);
                download().unwrap_or_else(|why| panic!("etcd-server cannot be downloaded:\n{why}"));
            }
        });
        let package = fs::read_dir(place).expect("made above").flatten().map(|entry| entry.path());
        let package = package.into_iter().find(|path| path.extension().is_some_and(|word| word == "deb"));
        let package = package.expect("apt-get leaves one package");
        let mut unpack = Command::new("dpkg");
        unpack.arg("-x").arg(&package).arg(place);
        run_quietly(&mut unpack).unwrap_or_else(|why| panic!("the package cannot be unpacked:\n{why}"));
        let _ = fs::remove_file(&package);
    });
    tree.join("usr/bin/etcd")
}

const MEMBERS: usize = 3;
const START_LIMIT: Duration = Duration::from_secs(60);
