//! Both ways to a database: straight, and through the pooler with strangers who use its servers, too.

use std::time::Duration;

use testkit::wait::holds_within;
use testkit::{Login, Raw, cell};

use super::kind::{Holds, Kind, Protocol};
use super::player::Player;
use super::stage::{self, AS_IT_WAS, Stage};
use crate::oracle::USER;

/// When the others have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Made,
    Looked,
    /// The state has been ended: the server must be free again.
    Ended,
    /// The session has ended.
    Gone,
}

/// How one side of a cell is reached.
pub trait Side {
    fn login(&mut self, protocol: Protocol) -> Result<Player, String>;
    /// Lets the others look.
    fn others(&mut self, moment: Moment) -> Result<(), String>;
    /// Ends every server process of the database.
    fn kill_servers(&mut self) -> Result<(), String>;
}

/// What a lane keeps from cell to cell.
pub struct Lane {
    number: usize,
    pooled: Raw,
    direct: Raw,
    console: Raw,
    strangers: Option<(String, Stranger, Stranger)>,
}

impl Lane {
    pub fn new(stage: &Stage, number: usize) -> Lane {
        // From the first reading on, the pooler knows that somebody here reads what sequences have given.
        for entry in ["one", "two"] {
            let mut reader = stage.howdah.session(USER, &format!("{entry}_{number}"));
            // It has nothing to read yet.
            let _ = reader.try_sql("select lastval()");
        }
        Lane {
            number,
            pooled: stage.admin(&stage::pooled(number)),
            direct: stage.admin(&stage::direct(number)),
            console: stage.howdah.console(),
            strangers: None,
        }
    }

    /// After a failure: what is left of it must not meet the next cell.
    pub fn sweep(&mut self) -> Result<(), String> {
        self.strangers = None;
        self.kill_pooled()
    }

    /// Ends the pooler's servers here, and waits until it knows.
    fn kill_pooled(&mut self) -> Result<(), String> {
        let killed = kill(&mut self.pooled)?;
        let known = holds_within(LIMIT, || {
            let rows = self.console.table("SHOW SERVERS");
            !rows
                .iter()
                .filter_map(|row| cell(row, "remote_pid"))
                .any(|pid| killed.iter().any(|own| own == pid))
        });
        if known { Ok(()) } else { Err("the pooler holds on to servers that are gone".into()) }
    }
}

/// Straight to PostgreSQL.
pub struct Direct<'a> {
    pub stage: &'a Stage,
    pub lane: &'a mut Lane,
    pub kind: &'a Kind,
}

impl Side for Direct<'_> {
    fn login(&mut self, protocol: Protocol) -> Result<Player, String> {
        self.lane.direct.sql(AS_IT_WAS);
        let login = login_of(self.kind, &stage::direct(self.lane.number));
        settled(Player::login(self.stage.server.port(), &login, protocol)?, self.kind)
    }

    fn others(&mut self, moment: Moment) -> Result<(), String> {
        // The next run in this database must not meet the locks of this one.
        if moment == Moment::Gone { nobody(&mut self.lane.direct, OTHERS) } else { Ok(()) }
    }

    fn kill_servers(&mut self) -> Result<(), String> {
        kill(&mut self.lane.direct).map(drop)
    }
}

/// Through the pooler.
pub struct Pooled<'a> {
    pub stage: &'a Stage,
    pub lane: &'a mut Lane,
    pub kind: &'a Kind,
    pub entry: String,
    /// What strangers see when they are alone.
    pub plain: &'a View,
    pub other: &'a View,
}

impl Pooled<'_> {
    /// The entry of this kind in transaction mode.
    pub fn entry(kind: &Kind, lane: &Lane) -> String {
        let size = if kind.holds == Holds::Carried { "one" } else { "two" };
        format!("{size}_{}", lane.number)
    }

    pub fn session_entry(lane: &Lane) -> String {
        format!("session_{}", lane.number)
    }

    fn stranger(&self, settings: &'static str) -> Result<Stranger, String> {
        Stranger::login(self.stage.howdah.port(), &Login::new(USER, &self.entry), settings)
    }

    fn look_around(&self, moment: Moment, plain: &mut Stranger, other: &mut Stranger) -> Result<(), String> {
        let at_once = !self.entry.starts_with("one") && matches!(moment, Moment::Ended | Moment::Gone);
        let is_gone = moment == Moment::Gone;
        if at_once {
            // Each server is free: while one has the first, the other gets the second.
            plain.hold()?;
            self.compare(self.other, other, is_gone)?;
            plain.release()?;
            other.hold()?;
            self.compare(self.plain, plain, is_gone)?;
            other.release()
        } else {
            self.compare(self.plain, plain, is_gone || moment == Moment::Made)?;
            self.compare(self.other, other, is_gone)
        }
    }

    fn compare(&self, expected: &View, stranger: &mut Stranger, is_whole: bool) -> Result<(), String> {
        let seen = stranger.view(self.kind, is_whole)?;
        // What was not asked for is at the front.
        let expected_lines = if is_whole { &expected.lines } else { &expected.lines[WHOLE_LINES..] };
        if seen.lines == expected_lines {
            return Ok(());
        }
        let all = stranger.ask(SETTINGS)?;
        let settings: Vec<&String> = all.iter().filter(|line| !expected.settings.contains(line)).collect();
        if seen.lines.len() != expected_lines.len() {
            return Err(format!("a stranger sees {:?}\n    in place of {expected_lines:?}", seen.lines));
        }
        let differ = seen.lines.iter().zip(expected_lines).filter(|(seen, expected)| seen != expected);
        let differ: Vec<String> =
            differ.map(|(seen, expected)| format!("{seen}\n    in place of {expected}")).collect();
        let who = if std::ptr::eq(expected, self.plain) { "a stranger" } else { "a stranger with settings" };
        Err(format!("{who} sees {}; {settings:?}", differ.join("\n    ")))
    }
}

impl Side for Pooled<'_> {
    fn login(&mut self, protocol: Protocol) -> Result<Player, String> {
        self.lane.pooled.sql(AS_IT_WAS);
        let login = login_of(self.kind, &self.entry);
        settled(Player::login(self.stage.howdah.port(), &login, protocol)?, self.kind)
    }

    fn others(&mut self, moment: Moment) -> Result<(), String> {
        let kept = self.lane.strangers.take().filter(|(entry, ..)| *entry == self.entry);
        let (entry, mut plain, mut other) = match kept {
            // In session mode a stranger would keep its server.
            Some(kept) if !self.entry.starts_with("session") => kept,
            _ => (self.entry.clone(), self.stranger("")?, self.stranger(OTHER_SETTINGS)?),
        };
        self.look_around(moment, &mut plain, &mut other).map_err(|why| format!("{moment:?}: {why}"))?;
        self.lane.strangers = Some((entry, plain, other));
        if moment == Moment::Gone {
            nobody(&mut self.lane.pooled, LEFTOVERS).map_err(|why| format!("{moment:?}: {why}"))?;
        }
        Ok(())
    }

    fn kill_servers(&mut self) -> Result<(), String> {
        self.lane.kill_pooled()
    }
}

/// What a role given at the login is allowed, the pooler can only tell once it has a server.
fn settled(mut player: Player, kind: &Kind) -> Result<Player, String> {
    if kind.startup.iter().any(|(name, value)| name.contains("role") || value.contains("role=")) {
        player.each("select 1")?;
    }
    Ok(player)
}

fn login_of(kind: &Kind, database: &str) -> Login {
    let login = Login::new(USER, database);
    kind.startup.iter().fold(login, |login, (name, value)| login.parameter(name, value))
}

/// What a stranger sees of itself, by PostgreSQL's own views and by the script that looks for the state.
#[derive(Clone, Debug)]
pub struct View {
    lines: Vec<String>,
    settings: Vec<String>,
}

impl View {
    /// As it is for a session of its own.
    pub fn alone(stage: &Stage, lane: &mut Lane, kind: &Kind) -> Result<(View, View), String> {
        lane.direct.sql(AS_IT_WAS);
        let view = |settings| {
            let login = Login::new(USER, &stage::direct(lane.number));
            let mut stranger = Stranger::login(stage.server.port(), &login, settings)?;
            let mut view = stranger.view(kind, true)?;
            view.settings = stranger.ask(SETTINGS)?;
            Ok::<View, String>(view)
        };
        let both = (view("")?, view(OTHER_SETTINGS)?);
        nobody(&mut lane.direct, OTHERS)?;
        Ok(both)
    }
}

/// Another client of the same pool.
struct Stranger {
    player: Player,
}

impl Stranger {
    fn login(port: u16, login: &Login, settings: &str) -> Result<Stranger, String> {
        let mut player = Player::login(port, login, Protocol::Simple)?;
        player.each(settings)?;
        Ok(Stranger { player })
    }

    fn view(&mut self, kind: &Kind, is_whole: bool) -> Result<View, String> {
        let mut lines = if is_whole { self.ask(ALL_SETTINGS)? } else { Vec::new() };
        lines.extend(self.ask(PORTRAIT)?);
        if !kind.is_private {
            lines.extend(self.player.each(kind.look)?);
        }
        Ok(View { lines, settings: Vec::new() })
    }

    fn hold(&mut self) -> Result<(), String> {
        self.ask("begin").map(drop)
    }

    fn release(&mut self) -> Result<(), String> {
        self.ask("commit").map(drop)
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<String>, String> {
        let one_line: Vec<&str> = sql.lines().map(str::trim).collect();
        self.player.each(&one_line.join(" "))
    }
}

/// Ends all other sessions of this database, and waits until they are gone; their process ids.
fn kill(admin: &mut Raw) -> Result<Vec<String>, String> {
    let rows = admin.sql(
        "select pid, pg_terminate_backend(pid) from pg_stat_activity \
         where datname = current_database() and pid <> pg_backend_pid()",
    );
    let killed: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    let left = format!(
        "select coalesce(string_agg(pid::text, ','), '') from pg_stat_activity where pid in (0{})",
        killed.iter().map(|pid| format!(", {pid}")).collect::<String>()
    );
    nobody(admin, &left)?;
    Ok(killed)
}

/// Waits until a count is none.
fn nobody(admin: &mut Raw, sql: &str) -> Result<(), String> {
    let mut last = String::new();
    let none = holds_within(LIMIT, || {
        last = admin.value(sql);
        last.is_empty()
    });
    if none { Ok(()) } else { Err(format!("it is still there: {last}")) }
}

const LIMIT: Duration = Duration::from_secs(4);

/// What the second stranger has set for itself.
const OTHER_SETTINGS: &str = "set work_mem = '7MB'
set geqo_effort = 3
set search_path = public, pg_catalog
set timezone = 'America/Lima'
set myapp.tenant = 'stranger'";

/// A session by PostgreSQL's own views, with the settings that the matrix knows.
const PORTRAIT: &str = "select current_user, session_user, concat_ws(';', current_setting('role'),
    current_setting('work_mem'), current_setting('search_path'), current_setting('geqo'),
    current_setting('geqo_effort'), current_setting('enable_seqscan'), current_setting('timezone'),
    current_setting('datestyle'), current_setting('client_encoding'), current_setting('statement_timeout'),
    current_setting('application_name'), current_setting('default_transaction_isolation'),
    current_setting('default_transaction_read_only'), current_setting('bytea_output'),
    current_setting('random_page_cost'), current_setting('temp_buffers'), current_setting('lock_timeout'),
    'own', nullif(current_setting('myapp.tenant', true), ''), nullif(current_setting('myapp.user_id', true), '')),
    (select string_agg(mode, ',') from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
    (select string_agg(relname, ',') from pg_class where relnamespace = pg_my_temp_schema()),
    (select string_agg(name, ',') from pg_cursors where is_holdable),
    (select string_agg(name, ',') from pg_prepared_statements
        where from_sql and name not like 'howdah%'),
    (select string_agg(c, ',') from pg_listening_channels() c)";

/// All that pg_settings has, in short.
const ALL_SETTINGS: &str =
    "select md5(string_agg(name || '=' || setting, ',' order by name)) from pg_settings
    where name not like 'plpgsql.%' and not (category = 'Customized Options' and setting = '')";

/// How many messages that takes.
const WHOLE_LINES: usize = 4;

const SETTINGS: &str = "select name || '=' || setting from pg_settings
    where name not like 'plpgsql.%' and not (category = 'Customized Options' and setting = '') order by 1";

/// Other sessions in this database.
const OTHERS: &str = "select coalesce(string_agg(pid || ' ' || coalesce(state, ''), ','), '')
    from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";

/// What nobody in this database has any more: locks, temporary objects.
const LEFTOVERS: &str = "select concat(
    (select string_agg(objid::text, ',') from pg_locks where locktype = 'advisory' and database =
        (select oid from pg_database where datname = current_database())),
    (select string_agg(relname, ',') from pg_class where relpersistence = 't' and relkind <> 't'))";
