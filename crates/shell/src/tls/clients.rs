//! TLS towards clients: we are the one with the certificate.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::ring::Ticketer;
use rustls::server::ServerConfig;
use settings::SslMode;

use super::verify::ClientVerifier;
use super::{ALPN, TlsFault, TlsOptions, channel_binding, files, suites};

/// What the settings say about TLS with clients.
#[derive(Clone)]
pub struct ClientTls {
    /// Whether it is offered, and whether clients must take it.
    pub mode: SslMode,
    /// For new connections; `None` if the mode is `disable`. Clients that send an ALPN protocol must send
    /// `postgresql`; that those which begin with TLS at once send one is for the caller to check.
    pub config: Option<Arc<ServerConfig>>,
    /// Our certificate's `tls-server-end-point` data, for SCRAM-SHA-256-PLUS.
    pub channel_binding: Option<Box<[u8]>>,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl ClientTls {
    /// No TLS.
    pub const DISABLED: ClientTls = ClientTls { mode: SslMode::Disable, config: None, channel_binding: None };

    /// Reads the files that the options name.
    pub fn load(options: &TlsOptions) -> Result<ClientTls, TlsFault> {
        if options.mode == SslMode::Disable {
            return Ok(ClientTls::DISABLED);
        }
        let (Some(cert_file), Some(key_file)) = (&options.cert_file, &options.key_file) else {
            return Err(TlsFault::CertificateAndKeyNeeded);
        };
        let provider = suites::provider(options);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&suites::versions(options)?)
            .map_err(TlsFault::Refused)?;
        // Where a certificate is not demanded, one that is sent is still checked.
        let mandatory = matches!(options.mode, SslMode::VerifyCa | SslMode::VerifyFull);
        let builder = match &options.ca_file {
            Some(file) => {
                let verifier = ClientVerifier::new(files::authorities(file)?, mandatory, &provider)?;
                builder.with_client_cert_verifier(Arc::new(verifier))
            }
            None if mandatory => return Err(TlsFault::AuthorityNeeded(options.mode)),
            None => builder.with_no_client_auth(),
        };
        let binding = channel_binding(&files::certificates(cert_file)?[0]);
        let mut config = builder.with_cert_resolver(files::identity(cert_file, key_file, &provider)?);
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.ticketer = Ticketer::new().map_err(TlsFault::Refused)?;
        config.send_tls13_tickets = 1;
        Ok(ClientTls { mode: options.mode, config: Some(Arc::new(config)), channel_binding: binding })
    }
}
