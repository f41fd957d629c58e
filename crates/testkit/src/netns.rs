//! Network namespaces on a bridge, so that a part of a cluster can be cut off from another: takes root.
//!
//! Each has one address; the machine itself has two there, so that what runs for everybody (etcd) can be cut off and
//! clients not.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use crate::install::{on_path, run_quietly};
use crate::os;
use crate::postgres::server_user;

/// The namespaces. They go with their owner.
pub struct Network {
    bridge: String,
    count: usize,
    subnet: [u8; 3],
}

impl Network {
    /// Makes so many; `None` where that is not allowed, or the tools are not there.
    pub fn start(count: usize) -> Option<Network> {
        if !os::is_root() || !on_path("ip") || !on_path("setpriv") {
            return None;
        }
        let pid = std::process::id();
        let subnet = [10, 200 + (pid % 50) as u8, (pid / 50 % 250) as u8];
        // Names of links are short.
        let network = Network { bridge: format!("hw{}", pid % 1_000_000), count, subnet };
        network.make().ok().map(|()| network)
    }

    /// The address of clients, and of nobody else.
    pub fn clients(&self) -> Ipv4Addr {
        self.last(1)
    }

    /// The address of what runs for all.
    pub fn common(&self) -> Ipv4Addr {
        self.last(2)
    }

    /// The address of one namespace.
    pub fn address(&self, at: usize) -> Ipv4Addr {
        self.last(11 + at as u8)
    }

    /// A program in a namespace, as the user that servers run as.
    pub fn command(&self, at: usize, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(at), "setpriv", "--pdeathsig", "TERM"]);
        if let Some(user) = server_user() {
            command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid));
            command.arg("--clear-groups");
        }
        command.arg(program);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C").env("TZ", "UTC");
        command
    }

    /// From now on nothing from this namespace reaches the other ones, nor what runs for all; clients it still does.
    pub fn cut_off(&self, at: usize) {
        self.route(at, "add");
    }

    /// Undoes [`Network::cut_off`].
    pub fn heal(&self, at: usize) {
        self.route(at, "del");
    }

    /// From now on clients hear nothing from this namespace; all others do.
    pub fn hide(&self, at: usize) {
        self.lead_nowhere(at, "add", self.clients());
    }

    /// Undoes [`Network::hide`].
    pub fn show(&self, at: usize) {
        self.lead_nowhere(at, "del", self.clients());
    }

    fn route(&self, at: usize, verb: &str) {
        let others = (0..self.count).filter(|other| *other != at).map(|other| self.address(other));
        others.chain([self.common()]).for_each(|address| self.lead_nowhere(at, verb, address));
    }

    fn lead_nowhere(&self, at: usize, verb: &str, address: Ipv4Addr) {
        let (space, route) = (self.space(at), format!("{address}/32"));
        ip(&["-n", &space, "route", verb, "blackhole", &route]).expect("a namespace of ours");
    }

    fn make(&self) -> Result<(), String> {
        ip(&["link", "add", &self.bridge, "type", "bridge"])?;
        for address in [self.clients(), self.common()] {
            ip(&["addr", "add", &format!("{address}/24"), "dev", &self.bridge])?;
        }
        ip(&["link", "set", &self.bridge, "up"])?;
        for at in 0..self.count {
            let (space, link) = (self.space(at), format!("{}v{at}", self.bridge));
            ip(&["netns", "add", &space])?;
            ip(&["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &space])?;
            ip(&["link", "set", &link, "master", &self.bridge, "up"])?;
            ip(&["-n", &space, "addr", "add", &format!("{}/24", self.address(at)), "dev", "eth0"])?;
            ip(&["-n", &space, "link", "set", "eth0", "up"])?;
            ip(&["-n", &space, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    fn last(&self, last: u8) -> Ipv4Addr {
        let [one, two, three] = self.subnet;
        Ipv4Addr::new(one, two, three, last)
    }

    fn space(&self, at: usize) -> String {
        format!("{}n{at}", self.bridge)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for at in 0..self.count {
            // The link first: a namespace goes only when the last of its sockets is over.
            let _ = ip(&["link", "del", &format!("{}v{at}", self.bridge)]);
            let _ = ip(&["netns", "del", &self.space(at)]);
        }
        let _ = ip(&["link", "del", &self.bridge]);
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    run_quietly(Command::new("ip").args(arguments))
}
