//! Signals as a stream of nouns. Does not know what they make the process do.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// A signal that means something to us; PgBouncer's manual says what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Reload.
    Hup,
    /// End once all clients have gone.
    Term,
    /// End once all servers are free.
    Int,
    /// End at once.
    Quit,
    /// Pause.
    Usr1,
    /// Resume.
    Usr2,
}

impl Signal {
    /// As it stands in the log: `got SIGHUP`.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Hup => "SIGHUP",
            Signal::Term => "SIGTERM",
            Signal::Int => "SIGINT",
            Signal::Quit => "SIGQUIT",
            Signal::Usr1 => "SIGUSR1",
            Signal::Usr2 => "SIGUSR2",
        }
    }
}

/// The signals that come to the process from now on.
pub struct Signals {
    hup: unix::Signal,
    term: unix::Signal,
    int: unix::Signal,
    quit: unix::Signal,
    usr1: unix::Signal,
    usr2: unix::Signal,
}

impl Signals {
    /// Begins to listen, within a tokio runtime. From now on none of them ends the process by itself.
    pub fn new() -> io::Result<Signals> {
        ignore_pipe();
        let signals = Signals {
            hup: unix::signal(SignalKind::hangup())?,
            term: unix::signal(SignalKind::terminate())?,
            int: unix::signal(SignalKind::interrupt())?,
            quit: unix::signal(SignalKind::quit())?,
            usr1: unix::signal(SignalKind::user_defined1())?,
            usr2: unix::signal(SignalKind::user_defined2())?,
        };
        mask(libc::SIG_UNBLOCK);
        Ok(signals)
    }

    /// Waits for the next signal. If several have come, those that end the process come first.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            _ = self.quit.recv() => Signal::Quit,
            _ = self.term.recv() => Signal::Term,
            _ = self.int.recv() => Signal::Int,
            _ = self.hup.recv() => Signal::Hup,
            _ = self.usr1.recv() => Signal::Usr1,
            _ = self.usr2.recv() => Signal::Usr2,
        }
    }
}

const OURS: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGTERM, libc::SIGINT, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// From now on, in this thread and those that it starts, signals wait until [`Signals::new`]: without that a SIGHUP
/// of somebody who has seen the pidfile would end a process that is not ready to reload yet.
pub fn hold() {
    mask(libc::SIG_BLOCK);
}

fn mask(how: libc::c_int) {
    // SAFETY: the set is made by sigemptyset before anything reads it, and lives until the calls return.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        for number in OURS {
            libc::sigaddset(&raw mut set, number);
        }
        libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut());
    }
}

/// Makes a write to a closed socket an error instead of the process's end.
pub fn ignore_pipe() {
    // SAFETY: sets a disposition and installs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn signals_come_as_nouns_and_one_that_is_early_waits() {
        hold();
        // SAFETY: to this thread, which does not take it yet; without `hold` it would end the process.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR2) }, 0);
        let mut signals = Signals::new().unwrap();
        assert_eq!(signals.next().await, Signal::Usr2);
        for (number, noun) in [
            (libc::SIGHUP, Signal::Hup),
            (libc::SIGTERM, Signal::Term),
            (libc::SIGINT, Signal::Int),
            (libc::SIGQUIT, Signal::Quit),
            (libc::SIGUSR1, Signal::Usr1),
            (libc::SIGUSR2, Signal::Usr2),
        ] {
            // SAFETY: to this process, which handles it since `Signals::new`.
            assert_eq!(unsafe { libc::raise(number) }, 0);
            assert_eq!(signals.next().await, noun);
        }
    }
}
