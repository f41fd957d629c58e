//! Exchanges that make, use and end session state. What each must be answered is the ideal's to say.

use wire::encode;
use wire::server::TransactionStatus;

use super::{Exchange, Script};

impl Script<'_> {
    /// One statement about session state, by itself or with another in one string or batch.
    pub(super) fn stateful(&mut self, exchange: &mut Exchange) {
        if !exchange.bytes.is_empty() {
            // What is pipelined behind other things is known only once they are answered.
            return self.echo(exchange);
        }
        exchange.is_alone = true;
        let text = self.state_text();
        // Within one string the server's own value is seen behind a RESET: a limit that is known.
        let is_single = text.starts_with("RESET") || text.starts_with("DISCARD");
        match self.rng.below(10) {
            0..6 => self.query(exchange, &text),
            6 if !is_single => {
                let other = self.second_text();
                self.query(exchange, &format!("{text};{other}"));
            }
            7 if !is_single => {
                let other = self.second_text();
                self.batch(exchange, &[&text, &other]);
            }
            _ => self.batch(exchange, &[&text]),
        }
    }

    fn second_text(&mut self) -> String {
        loop {
            let text = self.state_text();
            if !text.starts_with("RESET") && !text.starts_with("DISCARD") {
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
        match self.rng.below(100) {
            0..30 => self.setting(),
            30..42 => self.lock(),
            42..56 => self.temp(),
            56..68 => self.cursor(),
            68..80 => self.channel(),
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

    /// Channels are the client's own: so that only it is told, and when, is for its own server to say.
    fn channel(&mut self) -> String {
        let channel = format!("n{}_{}", self.id, self.rng.below(2));
        match self.rng.below(8) {
            0 | 1 => format!("LISTEN {channel}"),
            2 => format!("UNLISTEN {channel}"),
            3 => "UNLISTEN *".to_owned(),
            4..7 => format!("NOTIFY {channel}, '{}'", self.tag),
            _ => "SELECT pg_listening_channels()".to_owned(),
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
    fn read(&mut self) -> String {
        self.rng
            .pick(&[
                "SHOW lock_timeout",
                "SHOW role",
                "SHOW work_mem",
                "SELECT locks_held()",
                "SELECT pg_listening_channels()",
                "SELECT v FROM t0",
                "FETCH 1 FROM h0",
            ])
            .to_owned()
    }
}
