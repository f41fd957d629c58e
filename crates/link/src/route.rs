//! Where what a client is about to say may be run: on the primary, or on a standby.
//!
//! Asked before it has a server, of bytes that are only looked at. What is not whole, not understood or in any way more
//! than a read goes to the primary. What is sent to a standby is sent by units, each up to the ReadyForQuery that
//! ends it, so that nothing behind a read gets there by the way; and what the standby refuses is sent to the primary as
//! if it had never been there, as long as the client has heard nothing of an answer.

use server::Retry;
use sql::intent::{self, Declared, Hint};
use wire::Header;
use wire::client::{BindHead, Parse, tag};

use crate::from_server::Ear;
use crate::link::Link;

/// Where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the primary.
    Primary(Reason),
    /// To a standby, if there is one.
    Standby {
        /// Why it may.
        ground: Ground,
        /// It opens a transaction, and what follows belongs to that.
        opens: bool,
        /// On the primary, too, it writes nothing.
        is_read: bool,
    },
}

/// Why something may be read on a standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The transaction is declared read-only.
    Transaction,
    /// All transactions of the session are (`default_transaction_read_only`).
    Session,
    /// A comment says so.
    Hint,
    /// It is a statement that is proved to do nothing but read.
    Statement,
}

/// Why something goes to the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Not all of it is declared to read, and nobody looks at single statements.
    NoRead,
    /// A statement in it is judged to be more than a read, for the reason with this number: that of who judged.
    Judged(u8),
    /// Nobody has looked at its text yet.
    Unknown,
    /// A comment says so.
    Hint,
    /// It depends on what the session has beside its settings.
    State,
    /// It is not whole, or of a kind that is not looked into.
    Unseen,
}

/// What is known of a statement's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does nothing but read.
    Read,
    /// It may do more, for the reason with this number: that of who judged.
    Other(u8),
    /// Nobody has looked yet.
    Unknown,
    /// Nobody looks.
    Unjudged,
}

/// SQLSTATEs with which a standby refuses what the primary may do: read-only, what is not supported or not possible
/// there, conflicts with recovery, and what is not there yet.
pub(crate) const ELSEWHERE: [&str; 10] =
    ["25006", "0A000", "55000", "40001", "40P01", "42P01", "42703", "42883", "42704", "3F000"];
/// Those of them with which it will refuse the same again: the first.
const FOR_GOOD: usize = 3;

/// What the texts of one unit come to, as they are looked at in turn.
struct Judge<'a> {
    default_reads: bool,
    verdict: &'a mut dyn FnMut(&[u8]) -> Verdict,
    way: Option<Way>,
}

impl Link {
    /// Where the first unit of what the client has to say may go. It must have no server. `verdict` says what is
    /// known of a statement's text.
    pub fn route(&self, input: &[u8], verdict: &mut dyn FnMut(&[u8]) -> Verdict) -> Way {
        let client = &self.client;
        if self.state.is_some() || self.channels.is_some() || client.channels.is_some() || client.sending > 0
        {
            return Way::Primary(Reason::State);
        }
        if !client.dialect.is_usual() {
            return Way::Primary(Reason::Unseen);
        }
        let default_reads = client.parameters.value(b"default_transaction_read_only") == Some(b"on");
        let is_serializable =
            client.parameters.value(b"default_transaction_isolation") == Some(b"serializable");
        if is_serializable {
            // No standby has that.
            return Way::Primary(Reason::State);
        }
        let mut judge = Judge { default_reads, verdict, way: None };
        match self.texts(input, &mut |text| judge.look(text)) {
            Some(_) => judge.way.unwrap_or(Way::Primary(Reason::Unseen)),
            None => match judge.way {
                Some(way @ Way::Primary(_)) => way,
                _ => Way::Primary(Reason::Unseen),
            },
        }
    }

    /// How much of the client's bytes may be sent on now, where they go by units: up to the end of the unit under way,
    /// or of the next one if nothing is owed.
    pub fn first_unit(&self, input: &[u8]) -> usize {
        let mut at = self.client.sending.min(input.len() as u64) as usize;
        if (at as u64) < self.client.sending {
            return at;
        }
        if self.server.as_ref().is_some_and(|server| server.ledger.owes_ready()) {
            return at;
        }
        while let Some(header) = Header::peek(&input[at..]) {
            let end = at as u64 + header.total();
            if end > input.len() as u64 {
                break;
            }
            at = end as usize;
            if matches!(header.tag, tag::QUERY | tag::SYNC | tag::FUNCTION_CALL) {
                return at;
            }
        }
        input.len()
    }

    /// Whether a transaction that was declared read-only on the primary stays so with this unit in it.
    pub fn stays_reading(&self, unit: &[u8]) -> bool {
        self.client.dialect.is_usual()
            && self.texts(unit, &mut |text| intent::stays_reading(text)).is_some_and(|end| end == unit.len())
    }

    /// Whether what the server refuses may be sent to another: whether the client has heard nothing of an answer.
    pub fn set_may_retry(&mut self, may_retry: bool) {
        if let Some(server) = self.server.as_mut().filter(|server| !server.retry.is_due()) {
            server.retry = if may_retry { Retry::May } else { Retry::No };
        }
    }

    /// Whether the server has refused, and what it says is for nobody.
    pub fn is_taking_back(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.retry.is_due())
    }

    /// Whether the server has refused, and all that it had to say is said.
    pub fn is_retry_due(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.retry.is_due() && server.ledger.is_empty())
    }

    /// Whether the server has refused what it would refuse again.
    pub fn is_refused_for_good(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.retry == Retry::Due { for_good: true })
    }

    /// What the client has sent goes to another server: names that it gave in it are given anew there. To be called
    /// without a server.
    pub fn forget_parsed(&mut self, sent: &[u8]) {
        let mut rest = sent;
        while let Some(header) = Header::peek(rest) {
            let Some(end) = usize::try_from(header.total()).ok().filter(|end| *end <= rest.len()) else {
                return;
            };
            if header.tag == tag::PARSE
                && let Ok(parse) = Parse::read(&rest[5..end])
                && !parse.name.is_empty()
            {
                self.client.names().forget(parse.name);
            }
            rest = &rest[end..];
        }
    }

    /// Gives the text of each statement that the first unit prepares or runs, until `visit` says that it is enough.
    /// Where the unit ends; `None` if it is not whole, if not all of it is understood, or if it was enough.
    fn texts(&self, input: &[u8], visit: &mut dyn FnMut(&[u8]) -> bool) -> Option<usize> {
        let mut at = 0;
        // The names that this unit gives.
        let mut given: Vec<&[u8]> = Vec::new();
        let mut has_unnamed = false;
        loop {
            let header = Header::peek(&input[at..])?;
            let end = usize::try_from(header.total()).ok().filter(|end| *end <= input.len() - at)?;
            let body = &input[at + 5..at + end];
            at += end;
            match header.tag {
                tag::QUERY if at == end => {
                    let text = wire::client::query(body).ok()?;
                    return visit(text).then_some(at);
                }
                tag::PARSE => {
                    let parse = Parse::read(body).ok()?;
                    if parse.name.is_empty() {
                        has_unnamed = true;
                    } else if !self.policy.maps_statements()
                        || self.client.statement(parse.name).is_some()
                        || given.contains(&parse.name)
                    {
                        return None;
                    } else {
                        given.push(parse.name);
                    }
                    if !visit(parse.query()) {
                        return None;
                    }
                }
                tag::BIND => match BindHead::peek(body)?.statement {
                    b"" if has_unnamed => {}
                    b"" => return None,
                    name if given.contains(&name) => {}
                    name if self.policy.maps_statements() => {
                        if !visit(self.client.statement(name)?.text()) {
                            return None;
                        }
                    }
                    _ => return None,
                },
                tag::DESCRIBE => {
                    let (target, name) = wire::client::target(body).ok()?;
                    let is_given = given.contains(&name) || (name.is_empty() && has_unnamed);
                    let is_older = target == wire::client::Target::Statement && !is_given;
                    let may_look = self.policy.maps_statements();
                    if is_older && !(may_look && visit(self.client.statement(name)?.text())) {
                        return None;
                    }
                }
                tag::EXECUTE | tag::FLUSH => {}
                tag::SYNC => return Some(at),
                _ => return None,
            }
        }
    }
}

impl Judge<'_> {
    /// Looks at one more text. False if there is nothing more to be found out.
    fn look(&mut self, text: &[u8]) -> bool {
        let way = match self.way {
            None => self.first(text),
            Some(way) => self.next(way, text),
        };
        self.way = Some(way);
        matches!(way, Way::Standby { .. })
    }

    fn first(&mut self, text: &[u8]) -> Way {
        let declared = intent::declared(text);
        let standby = |ground, opens, is_read| Way::Standby { ground, opens, is_read };
        match intent::hint(text) {
            Some(Hint::Primary) => return Way::Primary(Reason::Hint),
            // It takes more than a client's word for it that a statement which may write does not.
            Some(Hint::Standby) => {
                let opens = matches!(declared, Declared::ReadOnly | Declared::Default);
                return standby(Ground::Hint, opens, declared == Declared::ReadOnly || self.reads(text));
            }
            None => {}
        }
        match declared {
            Declared::ReadOnly => standby(Ground::Transaction, true, true),
            Declared::Default if self.default_reads => standby(Ground::Session, true, true),
            Declared::Query if self.default_reads => standby(Ground::Session, false, true),
            Declared::Default => Way::Primary(Reason::NoRead),
            Declared::Query | Declared::Nothing => self.by_statement(text),
        }
    }

    fn next(&mut self, way: Way, text: &[u8]) -> Way {
        let Way::Standby { ground, opens, .. } = way else { return way };
        let goes_on = match ground {
            _ if intent::hint(text) == Some(Hint::Primary) => return Way::Primary(Reason::Hint),
            _ if opens => intent::stays_reading(text),
            Ground::Session => intent::declared(text) == Declared::Query,
            Ground::Hint => intent::hint(text) == Some(Hint::Standby) || self.reads(text),
            Ground::Statement | Ground::Transaction => {
                return match self.by_statement(text) {
                    Way::Standby { .. } => way,
                    primary => primary,
                };
            }
        };
        if goes_on { way } else { Way::Primary(Reason::NoRead) }
    }

    fn by_statement(&mut self, text: &[u8]) -> Way {
        match (self.verdict)(text) {
            Verdict::Read => Way::Standby { ground: Ground::Statement, opens: false, is_read: true },
            Verdict::Other(why) => Way::Primary(Reason::Judged(why)),
            Verdict::Unjudged => Way::Primary(Reason::NoRead),
            Verdict::Unknown => Way::Primary(Reason::Unknown),
        }
    }

    fn reads(&mut self, text: &[u8]) -> bool {
        (self.verdict)(text) == Verdict::Read
    }
}

impl Ear<'_> {
    /// The server has refused what another may do, and the client has heard nothing yet: nor will it.
    #[cold]
    pub(crate) fn take_back(&mut self, code: &str) {
        self.server.retry = Retry::Due { for_good: ELSEWHERE[..FOR_GOOD].contains(&code) };
        self.server.ledger.swallow_all();
        self.out.to_client.clear();
    }
}
