//! What a command is answered, by the console itself or by whoever carried it out.

use model::Table;

use crate::command::Command;
use crate::failure::Failure;
use crate::show;

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Rows, then the command's tag.
    Table(Table),
    /// The command's tag.
    Done,
    /// A notice, then the command's tag.
    Noticed(Notice),
    /// An error.
    Failed(Failure),
}

/// What is told beside a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The list of commands.
    Usage,
    /// A session parameter was not set, for the console has none.
    SetIgnored,
    /// `SET` of a TLS setting took the value, but the files do not load.
    TlsNotApplied,
}

impl Notice {
    /// The notice's message.
    pub fn text(self) -> &'static str {
        match self {
            Notice::Usage => "Console usage",
            Notice::SetIgnored => "SET ignored",
            Notice::TlsNotApplied => "TLS settings could not be applied, still using old configuration",
        }
    }

    /// The notice's detail.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Notice::Usage => Some(USAGE),
            Notice::SetIgnored | Notice::TlsNotApplied => None,
        }
    }
}

impl Reply {
    /// The answer to a command that needs nothing but the console.
    pub(crate) fn at_once(command: &Command) -> Option<Reply> {
        match command {
            Command::ShowHelp => Some(Reply::Noticed(Notice::Usage)),
            Command::ShowFds => Some(Reply::Failed(Failure::FdsNotShown)),
            Command::ShowParameter(parameter) => Some(Reply::Table(show::parameter(*parameter))),
            Command::SetIgnored(_) => Some(Reply::Noticed(Notice::SetIgnored)),
            Command::SelectOne => Some(Reply::Table(show::one())),
            Command::DiscardAll => Some(Reply::Done),
            Command::Suspend => Some(Reply::Failed(Failure::SuspendNotBuilt)),
            Command::Show(_)
            | Command::Set { .. }
            | Command::Reload
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Kill(_)
            | Command::KillClient(_)
            | Command::Disable(_)
            | Command::Enable(_)
            | Command::Reconnect(_)
            | Command::WaitClose(_)
            | Command::DrainNode(_)
            | Command::UndrainNode(_)
            | Command::Shutdown(_) => None,
        }
    }
}

const USAGE: &str = "
\tSHOW HELP|VERSION|STATE|CONFIG
\tSHOW DATABASES|POOLS|CLIENTS|SERVERS|PINS|USERS|LISTS|LISTENERS|MEM
\tSHOW STATS|STATS_TOTALS|STATS_AVERAGES|TOTALS
\tSHOW SOCKETS|ACTIVE_SOCKETS|PEERS|PEER_POOLS|DNS_HOSTS|DNS_ZONES|NODES
\tSET key = arg
\tRELOAD
\tPAUSE [<db>]
\tRESUME [<db>]
\tDISABLE <db>
\tENABLE <db>
\tRECONNECT [<db>]
\tWAIT_CLOSE [<db>]
\tDRAIN NODE <host>[:<port>]
\tUNDRAIN NODE <host>[:<port>]
\tKILL [<db>]
\tKILL_CLIENT <client_id>
\tSHUTDOWN
\tSHUTDOWN WAIT_FOR_SERVERS|WAIT_FOR_CLIENTS";
