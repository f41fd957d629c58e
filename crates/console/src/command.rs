//! What the console can be told to do, and who may tell it.

use model::ClientId;
use model::Column;

use crate::failure::{AdminVerb, Failure};
use crate::role::Role;
use crate::show;

/// One command. Its text is the business of [`crate::grammar`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `SHOW name`, and `SELECT name`: a table.
    Show(Show),
    /// `SHOW HELP`.
    ShowHelp,
    /// `SHOW FDS`, which is refused.
    ShowFds,
    /// `SHOW` of a parameter that drivers ask for.
    ShowParameter(Parameter),
    /// `SET` of a parameter that drivers insist on.
    SetIgnored(Parameter),
    /// `SELECT 1`: are you there?
    SelectOne,
    /// `DISCARD ALL`, which drivers' pools send between users.
    DiscardAll,
    /// `SET key = value`: changes a setting until the next reload.
    Set {
        /// The setting's name as written.
        key: String,
        /// Its value without quotes.
        value: String,
    },
    /// `RELOAD`: reads all files again.
    Reload,
    /// `PAUSE [db]`: lets servers finish and closes them; answers when they are closed.
    Pause(Scope),
    /// `RESUME [db]`: undoes `PAUSE` and `KILL`.
    Resume(Scope),
    /// `SUSPEND`, which is refused.
    Suspend,
    /// `KILL [db]`: closes clients and servers at once and pauses.
    Kill(Scope),
    /// `KILL_CLIENT id`: closes one client.
    KillClient(ClientId),
    /// `DISABLE db`: refuses new clients.
    Disable(String),
    /// `ENABLE db`: undoes `DISABLE`.
    Enable(String),
    /// `RECONNECT [db]`: replaces every server as soon as it is free.
    Reconnect(Scope),
    /// `WAIT_CLOSE [db]`: answers when no server is left that `RECONNECT` or `RELOAD` marked.
    WaitClose(Scope),
    /// `DRAIN NODE host[:port]`: no new servers on a node; those there are closed as they come free.
    DrainNode(String),
    /// `UNDRAIN NODE host[:port]`: undoes `DRAIN NODE`.
    UndrainNode(String),
    /// `SHUTDOWN [how]`.
    Shutdown(Shutdown),
}

/// Which databases a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All, except the console's own.
    All,
    /// The one of this name.
    Database(String),
}

/// How to shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// At once. The command is not answered: the connection just ends.
    Immediate,
    /// When no server is in use.
    WaitForServers,
    /// When no client is left.
    WaitForClients,
}

/// The tables that `SHOW` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Show {
    ActiveSockets,
    Clients,
    Config,
    Databases,
    DnsHosts,
    DnsZones,
    Listeners,
    Lists,
    Mem,
    Nodes,
    PeerPools,
    Peers,
    Pins,
    Pools,
    Routes,
    Servers,
    Sockets,
    State,
    Stats,
    StatsAverages,
    StatsTotals,
    Totals,
    Users,
    Version,
}

impl Show {
    /// Every table.
    pub const ALL: [Show; 24] = [
        Show::ActiveSockets,
        Show::Clients,
        Show::Config,
        Show::Databases,
        Show::DnsHosts,
        Show::DnsZones,
        Show::Listeners,
        Show::Lists,
        Show::Mem,
        Show::Nodes,
        Show::PeerPools,
        Show::Peers,
        Show::Pins,
        Show::Pools,
        Show::Routes,
        Show::Servers,
        Show::Sockets,
        Show::State,
        Show::Stats,
        Show::StatsAverages,
        Show::StatsTotals,
        Show::Totals,
        Show::Users,
        Show::Version,
    ];

    /// The word after `SHOW`.
    // long: table
    pub fn name(self) -> &'static str {
        match self {
            Show::ActiveSockets => "active_sockets",
            Show::Clients => "clients",
            Show::Config => "config",
            Show::Databases => "databases",
            Show::DnsHosts => "dns_hosts",
            Show::DnsZones => "dns_zones",
            Show::Listeners => "listeners",
            Show::Lists => "lists",
            Show::Mem => "mem",
            Show::Nodes => "nodes",
            Show::PeerPools => "peer_pools",
            Show::Peers => "peers",
            Show::Pins => "pins",
            Show::Pools => "pools",
            Show::Routes => "routes",
            Show::Servers => "servers",
            Show::Sockets => "sockets",
            Show::State => "state",
            Show::Stats => "stats",
            Show::StatsAverages => "stats_averages",
            Show::StatsTotals => "stats_totals",
            Show::Totals => "totals",
            Show::Users => "users",
            Show::Version => "version",
        }
    }
}

/// Parameters of a PostgreSQL session that drivers read and write without asking whether they matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Parameter {
    ApplicationName,
    ClientEncoding,
    DateStyle,
    DefaultTransactionIsolation,
    ExtraFloatDigits,
    StandardConformingStrings,
    TimeZone,
}

impl Parameter {
    /// Every parameter.
    pub const ALL: [Parameter; 7] = [
        Parameter::ApplicationName,
        Parameter::ClientEncoding,
        Parameter::DateStyle,
        Parameter::DefaultTransactionIsolation,
        Parameter::ExtraFloatDigits,
        Parameter::StandardConformingStrings,
        Parameter::TimeZone,
    ];

    /// Its name, and that of its column.
    pub fn name(self) -> &'static str {
        match self {
            Parameter::ApplicationName => "application_name",
            Parameter::ClientEncoding => "client_encoding",
            Parameter::DateStyle => "datestyle",
            Parameter::DefaultTransactionIsolation => "default_transaction_isolation",
            Parameter::ExtraFloatDigits => "extra_float_digits",
            Parameter::StandardConformingStrings => "standard_conforming_strings",
            Parameter::TimeZone => "timezone",
        }
    }

    /// The one value that it has.
    pub fn value(self) -> &'static str {
        match self {
            Parameter::ApplicationName => "",
            Parameter::ClientEncoding => "UTF-8",
            Parameter::DateStyle => "ISO",
            Parameter::DefaultTransactionIsolation => "read committed",
            Parameter::ExtraFloatDigits => "2",
            Parameter::StandardConformingStrings => "on",
            Parameter::TimeZone => "GMT",
        }
    }
}

impl Command {
    /// The least role that may give it.
    pub fn required_role(&self) -> Role {
        match self {
            Command::Show(
                Show::ActiveSockets
                | Show::Clients
                | Show::Config
                | Show::Databases
                | Show::DnsHosts
                | Show::DnsZones
                | Show::Listeners
                | Show::Lists
                | Show::Mem
                | Show::Nodes
                | Show::PeerPools
                | Show::Peers
                | Show::Pins
                | Show::Pools
                | Show::Routes
                | Show::Servers
                | Show::Sockets
                | Show::State
                | Show::Stats
                | Show::StatsAverages
                | Show::StatsTotals
                | Show::Totals
                | Show::Users
                | Show::Version,
            )
            | Command::ShowHelp
            | Command::ShowParameter(_)
            | Command::SetIgnored(_)
            | Command::SelectOne
            | Command::DiscardAll => Role::Stats,
            Command::ShowFds
            | Command::Set { .. }
            | Command::Reload
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Suspend
            | Command::Kill(_)
            | Command::KillClient(_)
            | Command::Disable(_)
            | Command::Enable(_)
            | Command::Reconnect(_)
            | Command::WaitClose(_)
            | Command::DrainNode(_)
            | Command::UndrainNode(_)
            | Command::Shutdown(_) => Role::Admin,
        }
    }

    /// Whether somebody of this role, or of none, may give it.
    pub fn is_allowed_to(&self, role: Option<Role>) -> bool {
        role.is_some_and(|role| role >= self.required_role())
    }

    /// The tag of its CommandComplete.
    pub fn tag(&self) -> String {
        let word = match self {
            Command::Show(_) | Command::ShowHelp | Command::ShowFds | Command::ShowParameter(_) => "SHOW",
            Command::SetIgnored(_) => "SET",
            Command::SelectOne => "SELECT 1",
            Command::DiscardAll => "DISCARD ALL",
            Command::Set { key, value } => return format!("SET {key}={value}"),
            Command::Reload => "RELOAD",
            Command::Pause(_) => "PAUSE",
            Command::Resume(_) => "RESUME",
            Command::Suspend => "SUSPEND",
            Command::Kill(_) => "KILL",
            Command::KillClient(_) => "KILL_CLIENT",
            Command::Disable(_) => "DISABLE",
            Command::Enable(_) => "ENABLE",
            Command::Reconnect(_) => "RECONNECT",
            Command::WaitClose(_) => "WAIT_CLOSE",
            Command::DrainNode(_) => "DRAIN NODE",
            Command::UndrainNode(_) => "UNDRAIN NODE",
            Command::Shutdown(_) => "SHUTDOWN",
        };
        word.to_owned()
    }

    /// The columns of its answer, known before it is carried out; empty if it answers no rows.
    pub fn columns(&self) -> &'static [Column] {
        match self {
            Command::Show(show) => show::columns(*show),
            Command::ShowParameter(parameter) => show::parameter_columns(*parameter),
            Command::SelectOne => show::ONE,
            _ => &[],
        }
    }

    /// What to say if the database it names is the console's own: it cannot be paused, killed...
    pub fn on_admin_database(&self) -> Option<Failure> {
        let (verb, name) = match self {
            Command::Pause(Scope::Database(name)) => (AdminVerb::Pause, name),
            Command::Kill(Scope::Database(name)) => (AdminVerb::Kill, name),
            Command::Reconnect(Scope::Database(name)) => (AdminVerb::Reconnect, name),
            Command::WaitClose(Scope::Database(name)) => (AdminVerb::WaitIn, name),
            Command::Disable(name) => (AdminVerb::Disable, name),
            Command::Enable(name) => (AdminVerb::Enable, name),
            _ => return None,
        };
        Some(Failure::AdminDatabase(verb, name.clone()))
    }
}
