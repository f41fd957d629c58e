//! Keys of `[pgbouncer]` that make no sense without one another, as far as that shows before anything starts.

use std::collections::BTreeMap;

use model::PoolMode;

use crate::effective::Effective;
use crate::problem::{Place, Problem, ProblemKind};
use crate::settings::Settings;
use crate::table::{Database, General};
use crate::words::{AuthType, ReadSplit, SessionAttrs, SslMode};

/// What is wrong with an entry of `[databases]` taken as a whole.
pub(crate) fn entry_problem(database: &Database, place: &Place) -> Option<Problem> {
    if database.topology.is_some() {
        let needs = |other| place.problem("topology", ProblemKind::Needs { other });
        if database.target_session_attrs.is_none() {
            let allowed =
                Some("what its servers must be, such as target_session_attrs=read-write".to_owned());
            return Some(Problem { allowed, ..needs("target_session_attrs") });
        }
        if !database.hosts.is_empty() {
            let allowed = Some("either topology or host".to_owned());
            return Some(Problem { allowed, ..place.problem("host", ProblemKind::BadValue) });
        }
    }
    if database.independent_hosts {
        let is_misfit = database.read_write_split != ReadSplit::Off || database.topology.is_some();
        let problem = match database.target_session_attrs {
            None => place.problem("independent_hosts", ProblemKind::Needs { other: "target_session_attrs" }),
            Some(_) => place.problem("independent_hosts", ProblemKind::BadValue),
        };
        if is_misfit || database.target_session_attrs.is_none() {
            let allowed = "several hosts and target_session_attrs, without read_write_split and topology";
            return Some(Problem { allowed: Some(allowed.to_owned()), ..problem });
        }
    }
    let hosts = database.hosts.len().max(1);
    if !database.ports.suit(hosts) {
        let problem = place.problem("port", ProblemKind::BadValue);
        return Some(Problem {
            allowed: Some(format!("one port, or {hosts}: one for each host")),
            ..problem
        });
    }
    if let Some((key, allowed)) = list_problem(database, hosts) {
        let problem = place.problem(key, ProblemKind::BadValue);
        return Some(Problem { allowed: Some(allowed), ..problem });
    }
    let writes =
        matches!(database.target_session_attrs, Some(SessionAttrs::ReadWrite | SessionAttrs::Primary));
    if database.read_write_split == ReadSplit::Off || (writes && (hosts > 1 || database.topology.is_some())) {
        return None;
    }
    let other = if writes { "host" } else { "target_session_attrs" };
    let problem = place.problem("read_write_split", ProblemKind::Needs { other });
    let allowed = Some("several hosts, and target_session_attrs = read-write or primary".to_owned());
    Some(Problem { allowed, ..problem })
}

/// Lists that have something for each host.
fn list_problem(database: &Database, hosts: usize) -> Option<(&'static str, String)> {
    let lists = [("host_weights", &database.host_weights), ("host_zones", &database.host_zones)];
    lists.into_iter().filter(|(_, list)| !list.is_empty()).find_map(|(key, list)| {
        let is_weight = key == "host_weights";
        let are_numbers = !is_weight || list.iter().all(|item| item.parse::<u16>().is_ok());
        let what = if is_weight { "a whole number up to 65535" } else { "a name" };
        let is_wrong = list.len() != hosts || database.hosts.is_empty() || !are_numbers;
        is_wrong.then(|| (key, format!("{what} for each of the hosts in host")))
    })
}

/// The entries whose hosts are to be monitored, and nobody is said to do it.
pub(crate) fn unmonitored(settings: &Settings, entries: &[(String, Place)]) -> Vec<Problem> {
    let find = |name: &str| match name {
        "*" => settings.autodb.as_ref(),
        _ => settings.databases.get(name),
    };
    let lacks_user = |name: &str| {
        find(name).filter(|database| database.target_session_attrs.is_some()).is_some_and(|database| {
            Effective { general: &settings.general, database: Some(database), user: None }
                .monitor_user()
                .is_none()
        })
    };
    let problem = |(name, place): &(String, Place)| {
        let problem = place.problem("target_session_attrs", ProblemKind::Needs { other: "monitor_user" });
        let allowed =
            Some("a role that may log in to every host, in monitor_user, user or auth_user".to_owned());
        Problem { entry: Some(name.chars().take(64).collect()), allowed, ..problem }
    };
    entries.iter().filter(|(name, _)| lacks_user(name)).map(problem).collect()
}

/// Whether not every `pool_mode` is for such an entry.
pub(crate) fn is_bound_to_mode(database: &Database) -> bool {
    database.user.is_some() || !database.server_keeps_session
}

/// Entries whose `pool_mode`, their own or the general one, is not for them.
pub(crate) fn misfit_modes(settings: &Settings, entries: &[(String, Place)]) -> Vec<Problem> {
    let misfit = |name: &str| {
        let database = match name {
            "*" => settings.autodb.as_ref(),
            _ => settings.databases.get(name),
        }?;
        let effective = Effective { general: &settings.general, database: Some(database), user: None };
        match effective.pool_mode() {
            PoolMode::Passthrough if database.user.is_some() => {
                Some("no user: clients log in to the servers themselves")
            }
            PoolMode::Session if !database.server_keeps_session => {
                Some("transaction or statement, where server_keeps_session is off")
            }
            _ => None,
        }
    };
    let problem = |(name, place): &(String, Place)| {
        let allowed = Some(misfit(name)?.to_owned());
        let problem = place.problem("pool_mode", ProblemKind::BadValue);
        Some(Problem { entry: Some(name.chars().take(64).collect()), allowed, ..problem })
    };
    entries.iter().filter_map(problem).collect()
}

/// The problems among keys; each stands where the key was set that asks for the other.
pub(crate) fn problems(general: &General, set_at: &BTreeMap<&'static str, Place>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut needs = |key: &'static str, wanted: bool, other: &'static str, allowed: &str| {
        // Only a key that was set can ask: the defaults ask for nothing.
        if let (true, Some(place)) = (wanted, set_at.get(key)) {
            let problem = place.problem(key, ProblemKind::Needs { other });
            problems.push(Problem { allowed: Some(allowed.to_owned()), ..problem });
        }
    };
    let with_tls = general.client_tls_sslmode != SslMode::Disable;
    let key_missing = with_tls && general.client_tls_key_file.is_empty();
    needs("client_tls_sslmode", key_missing, "client_tls_key_file", "disable, or a key and a certificate");
    let certificate_missing = with_tls && general.client_tls_cert_file.is_empty();
    needs(
        "client_tls_sslmode",
        certificate_missing,
        "client_tls_cert_file",
        "disable, or a key and a certificate",
    );
    let verifies = matches!(general.client_tls_sslmode, SslMode::VerifyCa | SslMode::VerifyFull);
    let ca_missing = verifies && general.client_tls_ca_file.is_empty();
    needs("client_tls_sslmode", ca_missing, "client_tls_ca_file", "certificates to check clients against");
    let is_cert = general.auth_type == AuthType::Cert;
    let unverified = is_cert && general.client_tls_sslmode != SslMode::VerifyFull;
    needs("auth_type", unverified, "client_tls_sslmode", "client_tls_sslmode = verify-full");
    let rules_missing = general.auth_type == AuthType::Hba && general.auth_hba_file.is_empty();
    needs("auth_type", rules_missing, "auth_hba_file", "a file of rules");
    for (key_name, key, certificate_name, certificate) in [
        (
            "server_tls_key_file",
            &general.server_tls_key_file,
            "server_tls_cert_file",
            &general.server_tls_cert_file,
        ),
        (
            "topology_tls_key_file",
            &general.topology_tls_key_file,
            "topology_tls_cert_file",
            &general.topology_tls_cert_file,
        ),
    ] {
        let only_key = !key.is_empty() && certificate.is_empty();
        needs(key_name, only_key, certificate_name, "a key and its certificate");
        let only_certificate = key.is_empty() && !certificate.is_empty();
        needs(certificate_name, only_certificate, key_name, "a certificate and its key");
    }
    if general.auth_dbname.as_deref() == Some("pgbouncer")
        && let Some(place) = set_at.get("auth_dbname")
    {
        problems.push(place.problem("auth_dbname", ProblemKind::ReservedName));
    }
    problems
}
