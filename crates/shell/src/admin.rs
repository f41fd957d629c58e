//! A session of the console: its bytes, and the commands that others carry out.

use std::sync::Arc;

use console::Ask;

use crate::relay;
use crate::session::{Core, Letter, Phase, Session};
use crate::socket::Received;
use crate::worker::Worker;

/// A console session's own things.
pub struct Admin {
    /// The machine.
    pub console: console::Session,
}

/// Does what can be done. True if it wants another turn.
pub fn drive(worker: &mut Worker, session: &Arc<Session>, core: &mut Core) -> bool {
    let letters = session.mail.lock().take_letters();
    let mut out = Vec::new();
    for letter in letters {
        match letter {
            Letter::Reply(reply) => {
                if let Phase::Admin(admin) = &mut core.phase {
                    admin.console.answer(*reply, &mut out);
                }
            }
            Letter::End(refusal) => {
                core.stream.send_bytes(&out, &mut worker.outbox);
                relay::close(worker, session, core, Some(refusal));
                return false;
            }
            Letter::Cancel => worker.shared.cancel_command(session),
            _ => {}
        }
    }
    loop {
        let Phase::Admin(admin) = &mut core.phase else { return false };
        let mut is_over = false;
        while !admin.console.is_waiting() {
            let progress = admin.console.on_bytes(&core.pending, &mut out);
            core.pending.consume(progress.consumed);
            match progress.ask {
                Some(Ask::Execute(command)) => worker.shared.command(session, command),
                Some(Ask::Close) => is_over = true,
                None => break,
            }
            if is_over {
                break;
            }
        }
        core.stream.send_bytes(&out, &mut worker.outbox);
        out.clear();
        if is_over || core.stream.is_broken() {
            relay::close(worker, session, core, None);
            return false;
        }
        if !core.readable {
            return false;
        }
        match core.stream.receive(&mut worker.scratch) {
            Received::Some(count, more) => {
                core.readable = more || core.hung_up;
                core.pending.push(&worker.scratch[..count]);
            }
            Received::Nothing => core.readable = false,
            Received::End | Received::Broken => {
                relay::close(worker, session, core, None);
                return false;
            }
        }
    }
}
