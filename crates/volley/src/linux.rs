//! The volley on io_uring.

use std::fmt;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};

use crate::{LOADED, Miss, SEND_BYTES_MAX, SENDS_MAX, VOLLEY_BYTES_MAX};

/// What makes a send behave as wanted: it never waits, and anything but all of its bytes counts as a failure,
/// which alone is reported.
const FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_WAITALL | libc::MSG_NOSIGNAL;
/// Calls of one volley that the kernel may refuse before it is taken for lost.
const REFUSALS_MAX: u32 = 8;

struct Load {
    fd: RawFd,
    at: u32,
    len: u32,
}

/// Sends that are made together. To be used by the thread that made it.
pub struct Volley {
    /// None once the kernel has gone back on it: then each send is a call of its own.
    ring: Option<IoUring>,
    bytes: Box<[u8]>,
    used: usize,
    loads: Vec<Load>,
    misses: Vec<Miss>,
    round: u32,
}

impl fmt::Debug for Volley {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the bytes: they are clients' data.
        f.debug_struct("Volley").field("loads", &self.loads.len()).finish_non_exhaustive()
    }
}

impl Volley {
    /// An empty one, if the kernel allows it and does what is relied on. Rounds are counted from `base`.
    ///
    /// # Errors
    /// The kernel is too old, io_uring is forbidden, there is no memory for it, or it does not do as it should.
    pub fn new(base: u32) -> io::Result<Volley> {
        // The last of these flags came with Linux 6.1, and with it a `send` that counts a short one as a failure.
        let ring = IoUring::builder()
            .dontfork()
            .setup_single_issuer()
            .setup_submit_all()
            .setup_defer_taskrun()
            .build(SENDS_MAX as u32)?;
        if !ring.params().is_feature_skip_cqe_on_success() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut volley = Volley {
            ring: Some(ring),
            bytes: vec![0; VOLLEY_BYTES_MAX].into_boxed_slice(),
            used: 0,
            loads: Vec::with_capacity(SENDS_MAX),
            misses: Vec::new(),
            round: base,
        };
        volley.prove()?;
        Ok(volley)
    }

    /// Whether a send of so many bytes can be loaded before the next shot.
    #[inline]
    pub fn has_room(&self, count: usize) -> bool {
        self.loads.len() < SENDS_MAX && count <= SEND_BYTES_MAX && count <= self.bytes.len() - self.used
    }

    /// Whether nothing is loaded.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// Counts the shots: what was loaded in another round than this is on its way or missed.
    #[inline]
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Loads a send, in parts that belong together, for which there is room.
    ///
    /// The socket must stay open until the next shot, or its bytes would go to whoever is given the descriptor
    /// next; and it may be loaded once, or the second send could overtake what is left of the first.
    #[inline]
    pub fn load<'a>(&mut self, fd: RawFd, parts: impl Iterator<Item = &'a [u8]>) {
        debug_assert!(self.loads.iter().all(|load| load.fd != fd));
        let at = self.used;
        for part in parts {
            self.bytes[self.used..self.used + part.len()].copy_from_slice(part);
            self.used += part.len();
        }
        self.loads.push(Load { fd, at: at as u32, len: (self.used - at) as u32 });
        LOADED.set(Some(self.round));
    }

    /// Sends all that is loaded.
    #[inline]
    pub fn fire(&mut self) {
        let together = if self.loads.len() > 1 { self.fire_together() } else { 0 };
        for index in together..self.loads.len() {
            self.fire_alone(index);
        }
        self.loads.clear();
        LOADED.set(None);
        self.used = 0;
        self.round = self.round.wrapping_add(1);
    }

    /// Hands as many as it takes to the kernel at once, and says how many those are.
    fn fire_together(&mut self) -> usize {
        let Some(ring) = &mut self.ring else { return 0 };
        let mut submission = ring.submission();
        for (index, load) in self.loads.iter().enumerate() {
            let bytes = &self.bytes[load.at as usize..][..load.len as usize];
            let entry = opcode::Send::new(Fd(load.fd), bytes.as_ptr(), load.len)
                .flags(FLAGS)
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(index as u64);
            // SAFETY: the kernel reads the bytes within the call that submits the entry, because a send with
            // MSG_DONTWAIT is done or refused there and then; until that call returns they are not touched.
            if unsafe { submission.push(&entry) }.is_err() {
                break;
            }
        }
        let wanted = submission.len();
        drop(submission);
        let (mut taken, mut refusals) = (0, 0);
        while taken < wanted {
            match ring.submit() {
                Ok(count) if count > 0 => taken += count,
                _ if refusals < REFUSALS_MAX => refusals += 1,
                _ => break,
            }
        }
        for done in ring.completion() {
            let Some(load) = self.loads.get(done.user_data() as usize) else { continue };
            let sent = usize::try_from(done.result()).unwrap_or(0).min(load.len as usize);
            let rest = &self.bytes[load.at as usize..][sent..load.len as usize];
            if !rest.is_empty() {
                self.misses.push(Miss { fd: load.fd, rest: rest.to_vec() });
            }
        }
        if taken < wanted {
            // It holds entries that must never be submitted now.
            self.ring = None;
        }
        taken
    }

    /// A send by a call of its own.
    fn fire_alone(&mut self, index: usize) {
        let load = &self.loads[index];
        let bytes = &self.bytes[load.at as usize..][..load.len as usize];
        // SAFETY: the pointer and the length are those of a slice that lives until the call returns.
        let sent = unsafe { libc::send(load.fd, bytes.as_ptr().cast(), bytes.len(), FLAGS) };
        let rest = &bytes[usize::try_from(sent).unwrap_or(0)..];
        if !rest.is_empty() {
            self.misses.push(Miss { fd: load.fd, rest: rest.to_vec() });
        }
    }

    /// Takes what this socket did not take.
    pub fn take_miss(&mut self, fd: RawFd) -> Option<Vec<u8>> {
        let index = self.misses.iter().position(|miss| miss.fd == fd)?;
        Some(self.misses.swap_remove(index).rest)
    }

    /// Whether any socket did not take all.
    #[inline]
    pub fn has_missed(&self) -> bool {
        !self.misses.is_empty()
    }

    /// Takes all that was not taken.
    pub fn take_misses(&mut self) -> Vec<Miss> {
        std::mem::take(&mut self.misses)
    }

    /// Sends to a socket until it takes no more, and counts: what arrives and what is missed must be the whole.
    fn prove(&mut self) -> io::Result<()> {
        const PIECE: [u8; 3 << 10] = [7; 3 << 10];
        const ROUNDS_MAX: usize = 4096;
        let (near, mut far) = UnixStream::pair()?;
        let (beside, mut beside_far) = UnixStream::pair()?;
        far.set_nonblocking(true)?;
        beside_far.set_nonblocking(true)?;
        let mut room = [0; 16 << 10];
        let (mut sent, mut missed) = (0, 0);
        while missed == 0 && sent < ROUNDS_MAX * PIECE.len() {
            self.load(near.as_raw_fd(), [&PIECE[..1], &PIECE[1..]].into_iter());
            self.load(beside.as_raw_fd(), [&b"!"[..]].into_iter());
            self.fire();
            sent += PIECE.len();
            missed = self.take_miss(near.as_raw_fd()).map_or(0, |rest| rest.len());
            if beside_far.read(&mut room)? != 1 {
                return Err(io::ErrorKind::Unsupported.into());
            }
        }
        let mut arrived = 0;
        loop {
            match far.read(&mut room) {
                Ok(count) => arrived += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let is_sound = missed > 0 && self.misses.is_empty() && self.ring.is_some();
        if is_sound && arrived + missed == sent { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
    }
}
