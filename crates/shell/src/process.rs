//! What the system says of this process: read when somebody asks, on a thread that may wait.

use std::time::Duration;

use metrics::Process;

/// As of now; nothing, where the system does not say it in Linux's way.
pub(crate) fn read(started_unix: u64) -> Option<Process> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kilobytes * 1024)
    };
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    // One of them is that by which they are counted.
    let open_fds = (std::fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1);
    Some(Process {
        cpu: cpu(),
        resident_bytes: field("VmRSS:")?,
        virtual_bytes: field("VmSize:")?,
        open_fds,
        max_fds: limit.split_whitespace().next()?.parse().ok(),
        started_unix,
    })
}

fn cpu() -> Duration {
    // SAFETY: zeroes are a valid `rusage`, which is only read after the call has filled it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let time = |value: libc::timeval| {
        let micros = u64::try_from(value.tv_usec).unwrap_or_default();
        Duration::from_secs(u64::try_from(value.tv_sec).unwrap_or_default()) + Duration::from_micros(micros)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_descriptors() {
        let process = read(7).expect("Linux says so");
        assert!(process.resident_bytes > 0 && process.virtual_bytes > process.resident_bytes);
        assert!(process.open_fds >= 3 && process.max_fds.is_none_or(|most| most >= process.open_fds));
        assert!(process.started_unix == 7 && process.cpu > Duration::ZERO);
    }
}
