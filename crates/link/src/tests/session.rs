//! Session state in the small PostgreSQL: settings in SQL's own words, savepoints, locks, what is temporary, LISTEN,
//! and the pooler's question about all of it.

use std::collections::BTreeMap;

/// What a session has beside settings. Locks do not go back with a transaction; the rest does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    pub locks: BTreeMap<String, usize>,
    pub kept: Kept,
}

/// What goes back with a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub settings: BTreeMap<String, String>,
    pub is_temp: bool,
    pub listens: bool,
}

impl Session {
    /// Whether another client would find nothing but settings.
    pub fn is_clean(&self) -> bool {
        self.locks.is_empty() && !self.kept.is_temp && !self.kept.listens
    }

    /// A statement that changes or shows the session: the words it is answered with. Nothing if it is another kind.
    pub fn statement(
        &mut self,
        text: &str,
        defaults: &BTreeMap<String, String>,
    ) -> Option<Result<String, &'static str>> {
        let settings = &mut self.kept.settings;
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        Some(Ok(match verb {
            "set" | "SET" if rest.contains(" = ") || rest.contains(" TO ") => {
                let (name, value) = rest.split_once(" = ").or_else(|| rest.split_once(" TO "))?;
                if value == "wrong" {
                    return Some(Err("22023"));
                }
                let is_local = name.starts_with("local ");
                if !is_local {
                    settings.insert(name.trim_matches('"').to_owned(), value.to_owned());
                }
                "C(SET)".to_owned()
            }
            "reset" | "RESET" => {
                let name = rest.trim_matches('"');
                match name {
                    "all" => settings.clone_from(defaults),
                    _ => reset(settings, defaults, name),
                }
                "C(RESET)".to_owned()
            }
            "SELECT" if rest.starts_with('\'') => self.census(rest, defaults),
            "select" => {
                let (function, argument) = rest.split_once('(')?;
                let argument = argument.trim_end_matches(')').to_owned();
                match function {
                    "pg_advisory_lock" => *self.locks.entry(argument).or_default() += 1,
                    "pg_advisory_unlock" => {
                        if let Some(count) = self.locks.get_mut(&argument) {
                            *count -= 1;
                        }
                        self.locks.retain(|_, count| *count > 0);
                    }
                    "set_config" => {
                        let mut words = argument.split('\'');
                        let (name, value) = (words.nth(1)?, words.nth(1)?);
                        settings.insert(name.to_owned(), value.to_owned());
                    }
                    _ => return None,
                }
                "D(1) C(SELECT 1)".to_owned()
            }
            "show" if rest == "session" => {
                let Session { locks, kept } = &*self;
                let locks: Vec<String> =
                    locks.iter().map(|(lock, count)| format!("{lock}x{count}")).collect();
                format!("D({} {} {}) C(SHOW)", locks.join(" "), kept.is_temp, kept.listens)
            }
            "create" | "drop" => {
                let is_made = verb == "create";
                if self.kept.is_temp == is_made {
                    return Some(Err(if is_made { "42P07" } else { "42P01" }));
                }
                self.kept.is_temp = is_made;
                format!("C({} TABLE)", verb.to_uppercase())
            }
            "listen" | "unlisten" => {
                self.kept.listens = verb == "listen";
                format!("C({})", verb.to_uppercase())
            }
            _ => return None,
        }))
    }

    fn census(&self, question: &str, defaults: &BTreeMap<String, String>) -> String {
        let mut rows = String::new();
        for part in question.split(" UNION ALL ") {
            let letter = part.trim_start_matches("SELECT ").trim_start_matches('\'').get(..1).unwrap_or("");
            let is_here = match letter {
                "l" => !self.locks.is_empty(),
                "t" => self.kept.is_temp,
                "n" => self.kept.listens,
                "s" => {
                    for (name, value) in &self.kept.settings {
                        if defaults.get(name) != Some(value) {
                            rows.push_str(&format!("D(s,{name},{value}) "));
                        }
                    }
                    false
                }
                "v" => {
                    let name = part.split('\'').nth(3).unwrap_or("");
                    let value = self.kept.settings.get(name).cloned().unwrap_or_default();
                    rows.push_str(&format!("D(v,{name},{value}) "));
                    false
                }
                _ => false,
            };
            if is_here {
                rows.push_str(&format!("D({letter},,) "));
            }
        }
        format!("{rows}C(SELECT 0)")
    }

    /// DISCARD ALL.
    pub fn discard(&mut self, defaults: &BTreeMap<String, String>) {
        *self =
            Session { kept: Kept { settings: defaults.clone(), ..Kept::default() }, ..Session::default() };
    }
}

fn reset(settings: &mut BTreeMap<String, String>, defaults: &BTreeMap<String, String>, name: &str) {
    match defaults.get(name) {
        Some(value) => settings.insert(name.to_owned(), value.clone()),
        None => settings.remove(name),
    };
}
