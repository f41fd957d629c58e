//! Keys of `[pgbouncer]` that make no sense without one another, as far as that shows before anything starts.

use std::collections::BTreeMap;

use crate::problem::{Place, Problem, ProblemKind};
use crate::table::General;
use crate::words::{AuthType, SslMode};

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
    let (key, certificate) = (&general.server_tls_key_file, &general.server_tls_cert_file);
    let only_key = !key.is_empty() && certificate.is_empty();
    needs("server_tls_key_file", only_key, "server_tls_cert_file", "a key and its certificate");
    let only_certificate = key.is_empty() && !certificate.is_empty();
    needs("server_tls_cert_file", only_certificate, "server_tls_key_file", "a certificate and its key");
    if general.auth_dbname.as_deref() == Some("pgbouncer")
        && let Some(place) = set_at.get("auth_dbname")
    {
        problems.push(place.problem("auth_dbname", ProblemKind::ReservedName));
    }
    problems
}
