//! What `tracing` is told to do with events: make them text and put them on the queue. Spans are not kept.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::line::{Entry, Severity};
use super::sink::Queue;

static VERBOSE: AtomicU8 = AtomicU8::new(0);

/// Shows what this verbosity asks for, from the next event on.
pub(super) fn set_level(verbose: u8) {
    VERBOSE.store(verbose, Ordering::Relaxed);
    // The macros remember for each place in the code whether it is shown; this makes them ask again.
    tracing::callsite::rebuild_interest_cache();
}

fn shown() -> LevelFilter {
    match VERBOSE.load(Ordering::Relaxed) {
        0 => LevelFilter::INFO,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

pub(super) struct LineSubscriber {
    queue: Queue,
}

impl LineSubscriber {
    pub(super) fn new(queue: Queue) -> LineSubscriber {
        LineSubscriber { queue }
    }
}

impl Subscriber for LineSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Other people's crates speak of things that only their authors understand.
        let foreign = ["rustls", "tokio", "mio", "tokio_util"].iter().any(|name| {
            let rest = metadata.target().strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        });
        metadata.is_event() && !foreign && *metadata.level() <= shown()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(shown())
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut text = EventText::default();
        event.record(&mut text);
        self.queue.put(Entry {
            at: SystemTime::now(),
            severity: Severity::of(*metadata.level(), metadata.target() == super::FATAL),
            text: text.finish(),
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event's fields as they come.
#[derive(Default)]
struct EventText {
    socket: String,
    message: String,
    fields: String,
}

impl EventText {
    fn finish(self) -> String {
        let EventText { mut socket, message, fields } = self;
        if socket.is_empty() && fields.is_empty() {
            return message;
        }
        for part in [message, fields] {
            if !socket.is_empty() && !part.is_empty() {
                socket.push(' ');
            }
            socket.push_str(&part);
        }
        socket
    }
}

impl Visit for EventText {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message.push_str(value),
            "socket" => self.socket.push_str(value),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let space = if self.fields.is_empty() { "" } else { " " };
        // Writing to a String fails only if a value's own Debug does; then the rest of it is missing.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            "socket" => write!(self.socket, "{value:?}"),
            name => write!(self.fields, "{space}{name}={value:?}"),
        };
    }
}
