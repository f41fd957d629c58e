//! A small DNS server that knows one name, and answers as a test makes it: well, badly, or not at all.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsMode {
    /// The address.
    Address,
    /// There is no such name.
    NxDomain,
    /// The server is in trouble.
    ServFail,
    /// Nothing at all.
    Silent,
}

/// The server. It ends with its owner.
pub struct DnsServer {
    address: SocketAddr,
    mode: Arc<AtomicU8>,
    asked: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DnsServer {
    /// On port 53 of an address of the loopback network, since a resolver can be told no other port: that takes root.
    pub fn start(name: &str, answer: Ipv4Addr) -> DnsServer {
        let free = (77..=120).find_map(|last| UdpSocket::bind((Ipv4Addr::new(127, 0, 0, last), 53)).ok());
        let socket = free.expect("port 53 of some loopback address is free, and we are root");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("an open socket");
        let address = socket.local_addr().expect("bound");
        let mode = Arc::new(AtomicU8::new(DnsMode::Address as u8));
        let (asked, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let name = labels(name);
        let (told, counted, over) = (Arc::clone(&mode), Arc::clone(&asked), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 512];
            while !over.load(Ordering::SeqCst) {
                let Ok((count, from)) = socket.recv_from(&mut buffer) else { continue };
                counted.fetch_add(1, Ordering::SeqCst);
                if let Some(reply) = reply(&buffer[..count], &name, answer, told.load(Ordering::SeqCst)) {
                    // Who asked may have gone.
                    let _ = socket.send_to(&reply, from);
                }
            }
        });
        DnsServer { address, mode, asked, is_over, thread: Some(thread) }
    }

    pub fn address(&self) -> Ipv4Addr {
        match self.address {
            SocketAddr::V4(address) => *address.ip(),
            SocketAddr::V6(_) => Ipv4Addr::LOCALHOST,
        }
    }

    pub fn set(&self, mode: DnsMode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    /// How many questions have come.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The answer to a question of one name; `None` for silence, and for what is no question.
fn reply(question: &[u8], name: &[u8], address: Ipv4Addr, mode: u8) -> Option<Vec<u8>> {
    const HEAD: usize = 12;
    let asked = question.get(HEAD..)?;
    let end = asked.iter().position(|byte| *byte == 0)? + 1;
    let section = asked.get(..end + 4)?;
    let is_known = section[..end].eq_ignore_ascii_case(name);
    let wants_v4 = section[end..end + 2] == [0, 1];
    let code = match mode {
        mode if mode == DnsMode::Silent as u8 => return None,
        mode if mode == DnsMode::ServFail as u8 => 2,
        mode if mode == DnsMode::Address as u8 && is_known => 0,
        _ => 3,
    };
    let answers = u8::from(code == 0 && wants_v4);
    let mut reply = question[..2].to_vec();
    reply.extend([0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0]);
    reply.extend(section);
    if answers > 0 {
        // The name as it stands in the question; A, IN; for one second; four bytes.
        reply.extend([0xc0, HEAD as u8, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        reply.extend(address.octets());
    }
    Some(reply)
}

fn labels(name: &str) -> Vec<u8> {
    let mut labels = Vec::new();
    for label in name.split('.') {
        labels.push(u8::try_from(label.len()).expect("a short label"));
        labels.extend(label.as_bytes());
    }
    labels.push(0);
    labels
}
