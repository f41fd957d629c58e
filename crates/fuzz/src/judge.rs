//! Runs a target on one input and says what was wrong, if anything was.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::targets::Target;

/// The longest that one input may take.
const TIME_MAX: Duration = Duration::from_millis(50);
/// What a target may allocate in any case, in bytes.
const ROOM: usize = 2 << 20;
/// What it may allocate for each byte of its input.
const ROOM_PER_BYTE: usize = 256;

/// What only a program can measure: memory and time.
pub trait Meter {
    /// Begins to count.
    fn begin(&self);
    /// The most bytes that were allocated at a time since, and how long ago that was.
    fn end(&self) -> (usize, Duration);
}

/// What was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It panicked, or its own checks failed.
    Panic(String),
    /// It allocated so many bytes at a time.
    Memory(usize),
    /// It took so long, three times.
    Time(Duration),
}

/// Gives an input to a target.
pub fn judge(target: &Target, input: &[u8], meter: Option<&dyn Meter>) -> Result<(), Fault> {
    let mut least = Duration::MAX;
    for _ in 0..3 {
        if let Some(meter) = meter {
            meter.begin();
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
        let (memory, time) = meter.map_or((0, Duration::ZERO), Meter::end);
        if let Err(panic) = outcome {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            return Err(Fault::Panic(text.unwrap_or_default()));
        }
        if memory > ROOM + ROOM_PER_BYTE * input.len() {
            return Err(Fault::Memory(memory));
        }
        least = least.min(time);
        if least <= TIME_MAX {
            return Ok(());
        }
    }
    Err(Fault::Time(least))
}
