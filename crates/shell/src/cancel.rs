//! What a cancel request needs to reach a server: where the server is, and its key.

use settings::Host;

use crate::connect::Endpoint;
use crate::sockopt::TcpOptions;
use crate::tls::ServerTls;

/// Where a server was reached, and how.
#[derive(Clone)]
pub struct Target {
    /// The same address as the session's own, not only the same name.
    pub remote: Endpoint,
    /// The name that TLS is checked by.
    pub host: Host,
    /// As for the session's own connection.
    pub tls: ServerTls,
    /// As for the session's own connection.
    pub tcp: TcpOptions,
}

/// A server's own key.
#[derive(Clone)]
pub struct Key {
    /// The number before it.
    pub process_id: u32,
    /// 4 to 256 bytes.
    pub key: Box<[u8]>,
}
