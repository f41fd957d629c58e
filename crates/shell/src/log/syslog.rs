//! Lines for syslog, as datagrams to `/dev/log` (RFC 3164, the form that libc's `syslog` sends). Never waits.

use std::io;
use std::os::unix::net::UnixDatagram;

use super::Syslog;
use super::line::{Entry, Severity};

/// `syslog_facility`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facility(u8);

impl Facility {
    /// `daemon`, the default.
    pub const DAEMON: Facility = Facility(3);

    /// The facility of this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Facility> {
        let code = match name {
            "user" => 1,
            "daemon" => 3,
            "auth" => 4,
            "authpriv" => 10,
            "local0" => 16,
            "local1" => 17,
            "local2" => 18,
            "local3" => 19,
            "local4" => 20,
            "local5" => 21,
            "local6" => 22,
            "local7" => 23,
            _ => return None,
        };
        Some(Facility(code))
    }
}

/// The way to the syslog daemon, made anew when the daemon has been.
pub(super) struct Connection {
    syslog: Syslog,
    socket: Option<UnixDatagram>,
}

impl Connection {
    pub(super) fn new(syslog: Syslog) -> Connection {
        Connection { syslog, socket: None }
    }

    pub(super) fn send(&mut self, entry: &Entry) -> io::Result<()> {
        let datagram = datagram(&self.syslog, entry, std::process::id());
        if let Some(socket) = &self.socket
            && socket.send(datagram.as_bytes()).is_ok()
        {
            return Ok(());
        }
        self.socket = None;
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect("/dev/log")?;
        socket.send(datagram.as_bytes())?;
        self.socket = Some(socket);
        Ok(())
    }
}

pub(super) fn datagram(syslog: &Syslog, entry: &Entry, process_id: u32) -> String {
    let severity = match entry.severity {
        Severity::Fatal => 2,
        Severity::Error => 3,
        Severity::Warning => 4,
        Severity::Log => 6,
        Severity::Debug | Severity::Noise => 7,
    };
    let priority = u32::from(syslog.facility.0) * 8 + severity;
    // The daemon adds the time. A newline would begin a line that looks like another's.
    let text = entry.text.replace(|character: char| character.is_control(), " ");
    format!("<{priority}>{}[{process_id}]: {text}", syslog.ident)
}
