//! Exchanges that make, use and end session state. What each must be answered is the ideal's to say.

use wire::encode;
use wire::server::TransactionStatus;

use super::{CHANNELS, Exchange, Script, Theme, sequences};

const LISTENED: &str = "SELECT pg_listening_channels()";

impl Script<'_> {
    /// One statement about session state, by itself or with another in one string or batch.
    pub(super) fn stateful(&mut self, exchange: &mut Exchange) {
        if !exchange.bytes.is_empty() {
            // What is pipelined behind other things is known only once they are answered.
            return self.echo(exchange);
        }
        exchange.is_alone = true;
        let may_ask = self.ideal.status == TransactionStatus::Idle && !self.ideal.has_copied;
        if self.traits.fans_out && may_ask && self.rng.chance(5) {
            // In a batch or a transaction, or behind rows that nobody reads, it is not answered as alone: a limit that is
            // known.
            return self.query(exchange, LISTENED);
        }
        let text = self.state_text();
        exchange.is_slow = text.starts_with("EXECUTE");
        // Known limits: within one string the server's own value is seen behind a RESET, and what runs behind the end of a
        // transaction that has failed cannot be prepared first.
        let is_single = text.starts_with("RESET")
            || text.starts_with("DISCARD")
            || self.ideal.status == TransactionStatus::Failed;
        if sequences::asks(text.as_bytes()) && self.drawn.is_unsure {
            return self.query(exchange, &text);
        }
        match self.rng.below(10) {
            0..6 => self.query(exchange, &text),
            6 if !is_single => {
                let other = self.second_text();
                self.query(exchange, &format!("{text};{other}"));
            }
            7 if !is_single => {
                let other = self.second_text();
                if sequences::asks(other.as_bytes())
                    && sequences::draws(text.as_bytes())
                    && !self.drawn.is_known
                {
                    // In a batch the first who asks may hear that there is nothing: a limit that is known.
                    return self.query(exchange, &format!("{text};{other}"));
                }
                self.batch(exchange, &[&text, &other]);
            }
            _ => self.batch(exchange, &[&text]),
        }
    }

    fn second_text(&mut self) -> String {
        loop {
            let text = self.state_text();
            let is_unsure = sequences::asks(text.as_bytes()) && self.drawn.is_unsure;
            if !text.starts_with("RESET") && !text.starts_with("DISCARD") && !is_unsure {
                return text;
            }
        }
    }

    fn batch(&mut self, exchange: &mut Exchange, texts: &[&str]) {
        for text in texts {
            self.parse(exchange, "", text);
            encode::bind_text(&mut exchange.bytes, b"", b"", &[]);
            if self.rng.chance(30) {
                encode::target(&mut exchange.bytes, b'D', b'P', b"");
            }
            encode::execute(&mut exchange.bytes, b"");
        }
        encode::sync(&mut exchange.bytes);
    }

    fn state_text(&mut self) -> String {
        let theme = if self.rng.chance(70) { self.traits.theme } else { Theme::Nothing };
        match (theme, self.rng.below(100)) {
            (Theme::Names, 0..80) if self.traits.statements => return self.by_sql(),
            (Theme::Names, 80..) => return format!("SET TimeZone TO '{}'", self.tag),
            (Theme::Channels, 0..90) => return self.channel(),
            (Theme::Sequences, 0..90) => return self.sequence(),
            _ => {}
        }
        match self.rng.below(100) {
            0..24 => self.setting(),
            24..44 if self.traits.statements => self.by_sql(),
            24..50 => self.lock(),
            50..60 => self.temp(),
            60..68 => self.cursor(),
            68..78 => self.channel(),
            78..88 => self.sequence(),
            92..97 if self.ideal.status != TransactionStatus::Idle => self.savepoint(),
            _ => self.read(),
        }
    }

    fn setting(&mut self) -> String {
        let name = self.rng.pick(&["application_name", "TimeZone", "DateStyle", "lock_timeout", "work_mem"]);
        let value = match self.rng.below(5) {
            0 => format!("c{}.''\\q", self.id),
            1 => "same".to_owned(),
            _ => self.tag.clone(),
        };
        match self.rng.below(12) {
            0..4 => format!("SET {name} TO '{value}'"),
            4 => format!("SET LOCAL {name} TO '{value}'"),
            5 => format!("SELECT set_config('{name}', '{value}', false)"),
            6 => format!("SELECT set_config('{name}', '{value}', true)"),
            7 => format!("RESET {name}"),
            8 => "RESET ALL".to_owned(),
            9 => format!("SET ROLE r{}", self.rng.below(2)),
            10 => "RESET role".to_owned(),
            _ => format!("SHOW {name}"),
        }
    }

    fn lock(&mut self) -> String {
        let key = format!("{}, {}", self.id, self.rng.below(2));
        match self.rng.below(8) {
            0 => format!("SELECT pg_try_advisory_lock({key})"),
            1 | 2 => format!("SELECT pg_advisory_lock({key})"),
            3..6 => format!("SELECT pg_advisory_unlock({key})"),
            6 => "SELECT pg_advisory_unlock_all()".to_owned(),
            _ => "SELECT locks_held()".to_owned(),
        }
    }

    fn temp(&mut self) -> String {
        let (table, tag) = (self.rng.pick(&["t0", "t1"]), &self.tag);
        match self.rng.below(8) {
            0 | 1 => format!("CREATE TEMP TABLE {table} AS SELECT '{tag}'"),
            2 => format!("CREATE TEMP TABLE {table} ON COMMIT DROP AS SELECT '{tag}'"),
            3 | 4 => format!("DROP TABLE {table}"),
            5 if self.traits.statements && self.may_execute("s0") => {
                format!("CREATE TEMP TABLE {table} AS {}", self.execute_of("s0"))
            }
            5 => "DISCARD TEMP".to_owned(),
            _ => format!("SELECT v FROM {table}"),
        }
    }

    fn cursor(&mut self) -> String {
        let (cursor, tag) = (self.rng.pick(&["h0", "h1"]), &self.tag);
        match self.rng.below(8) {
            0 | 1 => format!("DECLARE {cursor} CURSOR WITH HOLD FOR SELECT '{tag}'"),
            2 => format!("DECLARE {cursor} CURSOR FOR SELECT '{tag}'"),
            3 | 4 => format!("CLOSE {cursor}"),
            5 => "CLOSE ALL".to_owned(),
            _ => format!("FETCH 1 FROM {cursor}"),
        }
    }

    fn channel(&mut self) -> String {
        let channel = self.rng.pick(&CHANNELS);
        match self.rng.below(16) {
            0..5 => format!("LISTEN {channel}"),
            5 if self.rng.chance(40) => format!("UNLISTEN {channel}"),
            6 if self.rng.chance(30) => "UNLISTEN *".to_owned(),
            14..16 if !self.traits.fans_out => LISTENED.to_owned(),
            // No two are alike.
            _ => format!("NOTIFY {channel}, '{}.{}'", self.tag, self.rng.below(1 << 40)),
        }
    }

    fn savepoint(&mut self) -> String {
        let name = self.rng.pick(&["a", "b"]);
        match self.rng.below(5) {
            0..2 => format!("SAVEPOINT {name}"),
            2..4 => format!("ROLLBACK TO {name}"),
            _ => format!("RELEASE {name}"),
        }
    }

    /// Asks what there is, and finds nothing of anybody else's.
    pub(super) fn read(&mut self) -> String {
        self.rng
            .pick(&[
                "SHOW lock_timeout",
                "SHOW role",
                "SHOW work_mem",
                "SELECT locks_held()",
                "SELECT v FROM t0",
                "FETCH 1 FROM h0",
            ])
            .to_owned()
    }
}
