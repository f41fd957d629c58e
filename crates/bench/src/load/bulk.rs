//! 100 MB in one COPY, either way, again and again for the time of the step.

use super::{Measurement, Outcome, watch};
use crate::arena::Arena;
use crate::error::BenchError;
use crate::histogram::Histogram;
use crate::plan::load::COPY_BYTES;
use crate::plan::{Direction, Login, Plan};
use crate::session::{Failure, Session};
use crate::target::Kind;
use crate::usage::UnixNanos;
use std::time::{Duration, Instant};

const LINE_BYTES: u64 = 1_000;
const CHUNK_BYTES: u64 = 50_000;

/// Runs it.
pub fn copy(
    arena: &mut Arena,
    plan: &Plan,
    kind: Kind,
    direction: Direction,
    login: Login,
) -> Result<Outcome, BenchError> {
    let Some(access) = arena.target(kind).and_then(|target| target.postgres().cloned()) else {
        return Ok(Outcome::LeftOut("PostgreSQL is not behind it".to_owned()));
    };
    let entered = if login == Login::Tls { Session::enter_by_tls(&access) } else { Session::enter(&access) };
    let mut session = match entered {
        Ok(session) => session,
        Err(failure) => return Ok(Outcome::Failed(failure.to_string())),
    };
    let watch = watch(arena, kind, true)?;
    let (began, from) = (Instant::now(), UnixNanos::now());
    let mut latencies = Histogram::default();
    let mut measured = Measurement::default();
    while latencies.count() == 0 || began.elapsed() < Duration::from_secs(plan.seconds.into()) {
        let start = Instant::now();
        match once(&mut session, direction) {
            Ok(()) => latencies.add(start.elapsed()),
            Err(failure) => {
                measured.trouble.add(|| failure.to_string());
                break;
            }
        }
        if arena.stop.asked() {
            break;
        }
    }
    let (took, until) = (began.elapsed().as_secs_f64(), UnixNanos::now());
    let seen = watch.end();
    measured.tps = Some(latencies.count() as f64 / took);
    measured.bytes_per_second = measured.tps.map(|tps| tps * COPY_BYTES as f64);
    measured.cpu = seen.cpu_between(from, until);
    measured.rss_peak_kib = seen.rss_peak_kib;
    measured.servers_max = seen.servers_max;
    Ok(measured.timed(&latencies).outcome())
}

fn once(session: &mut Session, direction: Direction) -> Result<(), Failure> {
    // A line is its text and a newline.
    let width = LINE_BYTES as usize - 1;
    match direction {
        Direction::Out => {
            let lines = COPY_BYTES / LINE_BYTES;
            let sql =
                format!("copy (select repeat('x', {width}) from generate_series(1, {lines})) to stdout");
            session.copy_out(&sql).map(drop)
        }
        Direction::In => {
            let chunk = ("x".repeat(width) + "\n").repeat((CHUNK_BYTES / LINE_BYTES) as usize);
            // What is rolled back is gone at once, and what was truncated in its transaction needs no log.
            session.query("begin")?;
            session.query("truncate bench_sink")?;
            session.copy_in("copy bench_sink from stdin", chunk.as_bytes(), COPY_BYTES / CHUNK_BYTES)?;
            session.query("rollback").map(drop)
        }
    }
}
