//! TLS towards servers: we are the one who checks the certificate.

use std::fmt;
use std::sync::Arc;

use rustls::client::ClientConfig;
use rustls::pki_types::ServerName;
use settings::SslMode;

use super::verify::{Check, ServerVerifier};
use super::{TlsFault, TlsOptions, files, suites};

/// What the settings say about TLS with servers.
#[derive(Clone)]
pub struct ServerTls {
    /// Whether it is asked for, and whether it is demanded.
    pub mode: SslMode,
    /// For new connections; `None` if the mode is `disable`.
    pub config: Option<Arc<ClientConfig>>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl ServerTls {
    /// No TLS.
    pub const DISABLED: ServerTls = ServerTls { mode: SslMode::Disable, config: None };

    /// Reads the files that the options name. Without a CA file the modes that need one take the system's.
    pub fn load(options: &TlsOptions) -> Result<ServerTls, TlsFault> {
        if options.mode == SslMode::Disable {
            return Ok(ServerTls::DISABLED);
        }
        let authorities = || match &options.ca_file {
            Some(file) => files::authorities(file),
            None => files::authorities(&files::system_authorities()?),
        };
        let check = match options.mode {
            SslMode::VerifyCa => Check::Chain(authorities()?),
            SslMode::VerifyFull => Check::ChainAndName(authorities()?),
            SslMode::Disable | SslMode::Allow | SslMode::Prefer | SslMode::Require => Check::Nothing,
        };
        let provider = suites::provider(options);
        let verifier = ServerVerifier::new(check, &provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&suites::versions(options)?)
            .map_err(TlsFault::Refused)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&options.cert_file, &options.key_file) {
            (Some(cert_file), Some(key_file)) => {
                builder.with_client_cert_resolver(files::identity(cert_file, key_file, &provider)?)
            }
            (None, None) => builder.with_no_client_auth(),
            _ => return Err(TlsFault::CertificateAndKeyNeeded),
        };
        Ok(ServerTls { mode: options.mode, config: Some(Arc::new(config)) })
    }

    /// Whether a server that will not speak TLS is left.
    pub fn is_required(&self) -> bool {
        matches!(self.mode, SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull)
    }
}

/// The name by which a server is asked for and checked: rustls sends it (SNI) if it is a DNS name. `fallback`
/// is the address connected to, for a host that is no name at all.
pub(crate) fn server_name(host: &str, fallback: std::net::IpAddr) -> ServerName<'static> {
    ServerName::try_from(host.to_owned()).unwrap_or_else(|_| ServerName::IpAddress(fallback.into()))
}
