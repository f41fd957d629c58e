//! Console commands carried out: what takes effect at once, and what waits until it has.

use std::sync::Arc;

use console::{Command, Failure, Notice, Reply, Scope, Shutdown};
use model::Refusal;

use super::{Control, TICK};
use crate::reading;
use crate::session::Letter;
use model::ClientId;

impl Control {
    /// Carries a command out, and waits for what it waits for.
    pub(super) async fn command(self: &Arc<Self>, command: Command) -> Reply {
        if !matches!(command, Command::Show(_)) {
            tracing::info!("{} command issued", command.tag());
        }
        if database_of(&command).is_some_and(|name| self.is_console(name))
            && let Some(failure) = command.on_admin_database()
        {
            return Reply::Failed(failure);
        }
        match self.act(command).await {
            Ok(reply) => reply,
            Err(failure) => Reply::Failed(failure),
        }
    }

    /// Whether a name is the console's: our own may be configured as a database.
    fn is_console(&self, name: &str) -> bool {
        console::is_console(name) && !self.shared.settings().databases.contains_key(name)
    }

    async fn act(self: &Arc<Self>, command: Command) -> Result<Reply, Failure> {
        let now = self.shared.clock.now();
        match command {
            Command::Show(show) => {
                let snapshot = self.snapshot(show);
                return Ok(Reply::Table(console::show::table(show, &snapshot)));
            }
            Command::Set { key, value } => return self.set(&key, &value),
            Command::Reload => return self.reload().await.map(|()| Reply::Done),
            Command::Pause(scope) => {
                let work = self.shared.hub.lock().pause(now, &scope)?;
                self.shared.carry_out(work);
                self.renew_listeners(&scope);
                self.until(|hub| hub.is_drained(&scope)).await;
            }
            Command::Resume(scope) => {
                let work = self.shared.hub.lock().resume(now, &scope)?;
                self.shared.carry_out(work);
                self.renew_listeners(&scope);
            }
            Command::Kill(scope) => {
                let work = self.shared.hub.lock().kill(now, &scope)?;
                self.shared.carry_out(work);
                self.renew_listeners(&scope);
            }
            Command::KillClient(id) => {
                let session = self.shared.hub.lock().kill_client(id)?;
                self.shared.post(&session, Letter::End(Refusal::AdminForcedDisconnect));
            }
            Command::Disable(name) => self.shared.hub.lock().disable(now, &name)?,
            Command::Enable(name) => self.shared.hub.lock().enable(now, &name)?,
            Command::Reconnect(scope) => {
                let work = self.shared.hub.lock().reconnect(&scope)?;
                self.shared.carry_out(work);
                self.renew_listeners(&scope);
            }
            Command::WaitClose(scope) => {
                self.shared.hub.lock().known(&scope)?;
                self.until(|hub| hub.is_renewed(&scope)).await;
            }
            Command::DrainNode(name) => {
                let work = self.shared.hub.lock().set_drained(now, &name, true)?;
                self.shared.carry_out(work);
            }
            Command::UndrainNode(name) => {
                let work = self.shared.hub.lock().set_drained(now, &name, false)?;
                self.shared.carry_out(work);
            }
            Command::Shutdown(mode) => {
                self.shut_down(mode);
                if mode == Shutdown::Immediate {
                    std::future::pending::<()>().await;
                }
            }
            // The console answers these by itself.
            Command::ShowHelp
            | Command::ShowFds
            | Command::ShowParameter(_)
            | Command::SetIgnored(_)
            | Command::SelectOne
            | Command::DiscardAll
            | Command::Suspend => {}
        }
        Ok(Reply::Done)
    }

    /// Waits until something is true of the hub.
    async fn until(&self, is_true: impl Fn(&crate::shared::Hub) -> bool) {
        while !is_true(&self.shared.hub.lock()) {
            tokio::time::sleep(TICK).await;
        }
    }

    /// A console session gave up waiting: PgBouncer takes that for RESUME.
    pub(super) fn cancel_command(&self, session: ClientId) {
        let waiting = {
            let mut waiting = self.waiting.lock();
            let at = waiting.iter().position(|(id, _)| *id == session);
            at.map(|at| waiting.swap_remove(at).1)
        };
        let Some(task) = waiting else { return };
        task.abort();
        let now = self.shared.clock.now();
        let resumed = self.shared.hub.lock().resume(now, &Scope::All);
        if let Ok(work) = resumed {
            self.shared.carry_out(work);
        }
        let client = self.shared.hub.lock().client(session).cloned();
        if let Some(client) = client {
            self.shared.post(&client, Letter::Reply(Box::new(Reply::Failed(Failure::Canceled))));
        }
    }

    /// `SET key = value`.
    fn set(self: &Arc<Self>, key: &str, value: &str) -> Result<Reply, Failure> {
        let settings = self.shared.settings();
        let changed =
            settings.with(key, value).map_err(|problem| Failure::SetFailed(Some(problem.to_string())))?;
        let is_tls = key.contains("_tls_");
        let notice = is_tls && reading::load_tls(&self.shared, &changed).is_err();
        let now = self.shared.clock.now();
        let reload = self.shared.hub.lock().set(now, changed);
        self.apply(reload);
        Ok(if notice { Reply::Noticed(Notice::TlsNotApplied) } else { Reply::Done })
    }
}

/// The database that a command is about.
fn database_of(command: &Command) -> Option<&str> {
    match command {
        Command::Pause(scope)
        | Command::Resume(scope)
        | Command::Kill(scope)
        | Command::Reconnect(scope)
        | Command::WaitClose(scope) => match scope {
            Scope::Database(name) => Some(name),
            Scope::All => None,
        },
        Command::Disable(name) | Command::Enable(name) => Some(name),
        _ => None,
    }
}
