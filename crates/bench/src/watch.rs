//! Watches a target while a load runs: its CPU time every 20 ms, so that the share of any window can be
//! told afterwards, and now and then how many server connections PostgreSQL sees of it.

use crate::session::Session;
use crate::usage::{Cpu, CpuMeter, UnixNanos, family_kib, forget_peak, rss_peak_kib};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What to watch.
#[derive(Debug)]
pub struct Watched {
    /// The target's process, if it has one.
    pub pid: Option<u32>,
    /// A session at PostgreSQL and the role whose connections to count there.
    pub servers: Option<(Session, String)>,
}

/// A watch under way.
#[derive(Debug)]
pub struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    samples: Vec<(UnixNanos, Cpu)>,
    /// The most server connections at any time.
    pub servers_max: Option<u32>,
    /// The most memory.
    pub rss_peak_kib: Option<u64>,
}

const CPU_EVERY: Duration = Duration::from_millis(20);
const SERVERS_EVERY: Duration = Duration::from_millis(250);
const FAMILY_EVERY: Duration = Duration::from_secs(1);

impl Watch {
    /// Begins.
    pub fn begin(watched: Watched) -> Watch {
        if let Some(pid) = watched.pid {
            forget_peak(pid);
        }
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        Watch { over, thread: std::thread::spawn(move || watch(watched, &told)) }
    }

    /// Ends, and says what was seen.
    pub fn end(self) -> Seen {
        self.over.store(true, Ordering::Relaxed);
        // A watcher that fell has seen nothing.
        self.thread.join().unwrap_or_default()
    }
}

fn watch(watched: Watched, over: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut meter = watched.pid.map(CpuMeter::new);
    let mut servers = watched.servers;
    let mut servers_next = Instant::now() + SERVERS_EVERY / 2;
    let mut family_next = Instant::now() + SERVERS_EVERY;
    loop {
        let last = over.load(Ordering::Relaxed);
        let began = Instant::now();
        if let Some(cpu) = meter.as_mut().and_then(CpuMeter::read) {
            seen.samples.push((UnixNanos::now(), cpu));
        }
        if Instant::now() >= servers_next
            && let Some((session, role)) = &mut servers
        {
            seen.servers_max = seen.servers_max.max(servers_of(session, role));
            servers_next = Instant::now() + SERVERS_EVERY;
        }
        let forks = meter.as_ref().is_some_and(|meter| meter.children() > 0);
        if forks && (last || Instant::now() >= family_next) {
            // Nobody keeps the peak of a family: it is the most that was seen.
            seen.rss_peak_kib = seen.rss_peak_kib.max(watched.pid.and_then(family_kib));
            family_next = Instant::now() + FAMILY_EVERY;
        }
        if last {
            if !forks {
                seen.rss_peak_kib = watched.pid.and_then(rss_peak_kib);
            }
            return seen;
        }
        // Looking at hundreds of processes must not become a load of its own.
        std::thread::sleep(CPU_EVERY.max(began.elapsed() * 20));
    }
}

/// How many connections of that role PostgreSQL has now.
pub fn servers_of(session: &mut Session, role: &str) -> Option<u32> {
    let sql = format!("select count(*) from pg_stat_activity where usename in ('{role}', '{role}_scram')");
    session.query(&sql).ok()?.first()?.parse().ok()
}

impl Seen {
    /// The CPU time between two moments, in a straight line between the samples around each.
    pub fn cpu_between(&self, from: UnixNanos, until: UnixNanos) -> Option<Cpu> {
        let (from, until) = (self.cpu_at(from)?, self.cpu_at(until)?);
        Some(Cpu {
            total: until.total.saturating_sub(from.total),
            user: until.user.saturating_sub(from.user),
            system: until.system.saturating_sub(from.system),
        })
    }

    fn cpu_at(&self, moment: UnixNanos) -> Option<Cpu> {
        let next = self.samples.partition_point(|(at, _)| *at <= moment);
        let after = self.samples.get(next).or(self.samples.last())?;
        let before = self.samples.get(next.saturating_sub(1))?;
        let whole = after.0.since(before.0).as_secs_f64();
        let part = moment.since(before.0).as_secs_f64();
        let share = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
        let line = |pick: fn(&Cpu) -> Duration| {
            let (low, high) = (pick(&before.1), pick(&after.1));
            low + high.saturating_sub(low).mul_f64(share)
        };
        Some(Cpu { total: line(|cpu| cpu.total), user: line(|cpu| cpu.user), system: line(|cpu| cpu.system) })
    }
}

#[cfg(test)]
mod tests;
