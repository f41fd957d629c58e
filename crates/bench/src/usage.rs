//! What a process has used, read from /proc: CPU time of all its threads, memory.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment on the clock that pgbench's logs use, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct UnixNanos(pub u64);

impl UnixNanos {
    /// The present.
    pub fn now() -> UnixNanos {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixNanos(since.as_nanos() as u64)
    }

    /// So much later.
    pub fn after(self, duration: Duration) -> UnixNanos {
        UnixNanos(self.0.saturating_add(duration.as_nanos() as u64))
    }

    /// The time from `earlier` to here.
    pub fn since(self, earlier: UnixNanos) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// CPU time since the start of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cpu {
    /// User and system, in the scheduler's nanoseconds where it tells them.
    pub total: Duration,
    /// User alone, in ticks of 10 ms: only good over seconds.
    pub user: Duration,
    /// System alone, likewise.
    pub system: Duration,
}

/// Adds up the CPU time of the threads of a process and of its children, those that ended since included.
#[derive(Debug)]
pub struct CpuMeter {
    pid: u32,
    threads: HashMap<u32, u64>,
    ticks: HashMap<u32, (Duration, Duration)>,
    children: usize,
}

impl CpuMeter {
    /// For that process.
    pub fn new(pid: u32) -> CpuMeter {
        CpuMeter { pid, threads: HashMap::new(), ticks: HashMap::new(), children: 0 }
    }

    /// Reads it; nothing once the process is gone.
    pub fn read(&mut self) -> Option<Cpu> {
        self.read_process(self.pid)?;
        let children = children(self.pid);
        self.children = children.len();
        for child in children {
            // One that has ended meanwhile keeps what it was seen to have used.
            let _ = self.read_process(child);
        }
        let (user, system) = self
            .ticks
            .values()
            .fold(<(Duration, Duration)>::default(), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let exact = Duration::from_nanos(self.threads.values().sum());
        // A kernel without schedstat says 0; ticks must do there.
        let total = if exact.is_zero() { user + system } else { exact };
        Some(Cpu { total, user, system })
    }

    /// How many children it had when it was read last.
    pub fn children(&self) -> usize {
        self.children
    }

    fn read_process(&mut self, pid: u32) -> Option<()> {
        self.ticks.insert(pid, ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?);
        for entry in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let schedstat = fs::read_to_string(entry.path().join("schedstat")).ok();
            if let Some(nanos) = schedstat.as_deref().and_then(on_cpu_nanos) {
                self.threads.insert(tid, nanos);
            }
        }
        Some(())
    }
}

/// The children of a process's first thread: those of programs that fork.
fn children(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The memory of a process and its children together, what they share counted once, in KiB.
pub fn family_kib(pid: u32) -> Option<u64> {
    let held = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        kib(&text, "Pss:")
    };
    let own = held(pid)?;
    Some(own + children(pid).into_iter().filter_map(held).sum::<u64>())
}

/// Userland's clock ticks: 100 a second on every Linux that we run on.
const TICK: Duration = Duration::from_millis(10);

fn ticks(stat: &str) -> Option<(Duration, Duration)> {
    // The name may hold spaces and parentheses; the fields follow its last one.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok();
    Some((TICK * next()?, TICK * next()?))
}

fn on_cpu_nanos(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

/// The most memory the process has held since `forget_peak`, in KiB.
pub fn rss_peak_kib(pid: u32) -> Option<u64> {
    kib(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:")
}

/// Starts the peak afresh, where the kernel lets us.
pub fn forget_peak(pid: u32) {
    // Refused to other users; then the peak is that of the whole run.
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// The anonymous memory the process holds, in KiB.
pub fn anonymous_kib(pid: u32) -> Option<u64> {
    let exact = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
    exact.as_deref().and_then(|text| kib(text, "Anonymous:")).or_else(|| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        kib(&status, "RssAnon:")
    })
}

fn kib(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests;
