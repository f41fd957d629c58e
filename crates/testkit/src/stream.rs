//! A byte stream to a server: TCP or a Unix socket, bare or inside TLS that verifies nothing.
//!
//! Knows nothing of the protocol that runs over it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind, SignatureScheme, StreamOwned,
};

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

impl From<&Address> for Address {
    fn from(address: &Address) -> Address {
        address.clone()
    }
}

/// A port of the loopback address.
impl From<u16> for Address {
    fn from(port: u16) -> Address {
        Address::Tcp(SocketAddr::from(([127, 0, 0, 1], port)))
    }
}

impl From<&Path> for Address {
    fn from(path: &Path) -> Address {
        Address::Unix(path.to_path_buf())
    }
}

/// How to speak TLS. Nothing is verified: tests of certificates look at what the other side does.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Protocols offered by ALPN.
    pub alpn: Vec<String>,
    /// The client's own certificate chain and key, PEM files.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The name put into SNI; `localhost` if none.
    pub server_name: Option<String>,
    /// Sessions are remembered, and taken up again by whoever has a copy of this.
    pub memory: Option<TlsMemory>,
}

/// What a client remembers of its TLS sessions.
#[derive(Clone, Debug, Default)]
pub struct TlsMemory(Arc<OnceLock<Arc<ClientConfig>>>);

impl Tls {
    /// As libpq does it with `sslnegotiation=direct`.
    pub fn with_postgresql_alpn() -> Tls {
        Tls { alpn: vec!["postgresql".into()], ..Tls::default() }
    }

    /// As a client that takes its earlier sessions up again.
    pub fn remembering() -> Tls {
        Tls { memory: Some(TlsMemory::default()), ..Tls::default() }
    }

    fn shared_config(&self) -> Arc<ClientConfig> {
        match &self.memory {
            Some(memory) => Arc::clone(memory.0.get_or_init(|| Arc::new(self.config()))),
            None => Arc::new(self.config()),
        }
    }

    fn config(&self) -> ClientConfig {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider knows the default versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustAll { provider }));
        let mut config = match &self.certificate {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = CertificateDer::pem_file_iter(chain).expect("a PEM file of certificates");
                let chain = chain.map(|certificate| certificate.expect("a certificate in PEM")).collect();
                let key = PrivateKeyDer::from_pem_file(key).expect("a PEM file with a key");
                builder.with_client_auth_cert(chain, key).expect("a key that fits its certificate")
            }
        };
        config.alpn_protocols = self.alpn.iter().map(|name| name.clone().into_bytes()).collect();
        config
    }
}

/// An open connection.
pub struct Stream {
    layer: Layer,
}

enum Layer {
    Bare(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
    /// For the moment in which one layer becomes the other.
    Gone,
}

impl Stream {
    pub fn connect(address: &Address) -> io::Result<Stream> {
        let socket = match address {
            Address::Tcp(address) => {
                let socket = TcpStream::connect_timeout(address, CONNECT_LIMIT)?;
                socket.set_nodelay(true)?;
                Socket::Tcp(socket)
            }
            Address::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
        };
        socket.set_write_timeout(WRITE_LIMIT)?;
        Ok(Stream { layer: Layer::Bare(socket) })
    }

    /// Does a TLS handshake now; what was received before it must have been read.
    /// Whether an earlier TLS session was taken up again.
    pub fn is_resumed(&self) -> bool {
        match &self.layer {
            Layer::Tls(tls) => tls.conn.handshake_kind() == Some(HandshakeKind::Resumed),
            Layer::Bare(_) | Layer::Gone => false,
        }
    }

    pub fn start_tls(&mut self, tls: &Tls) -> io::Result<()> {
        let Layer::Bare(mut socket) = std::mem::replace(&mut self.layer, Layer::Gone) else {
            return Err(io::Error::other("TLS inside TLS"));
        };
        let name = tls.server_name.clone().unwrap_or_else(|| "localhost".into());
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        let mut session = ClientConnection::new(tls.shared_config(), name).map_err(io::Error::other)?;
        socket.set_read_timeout(CONNECT_LIMIT)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        self.layer = Layer::Tls(Box::new(StreamOwned::new(session, socket)));
        Ok(())
    }

    /// The server's own certificate, in TLS.
    pub fn server_certificate(&self) -> Option<&[u8]> {
        match &self.layer {
            Layer::Tls(tls) => tls.conn.peer_certificates()?.first().map(CertificateDer::as_ref),
            _ => None,
        }
    }

    /// The protocol that ALPN has settled on, in TLS.
    pub fn alpn(&self) -> Option<String> {
        match &self.layer {
            Layer::Tls(tls) => {
                tls.conn.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned())
            }
            _ => None,
        }
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.layer {
            Layer::Bare(socket) => socket.write_all(bytes),
            Layer::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
            Layer::Gone => Err(ErrorKind::NotConnected.into()),
        }
    }

    /// Reads what there is, waiting up to `limit` for it: `None` if nothing came, 0 at the end.
    pub fn read(&mut self, buffer: &mut [u8], limit: Duration) -> io::Result<Option<usize>> {
        // Zero would mean no limit at all.
        self.socket()?.set_read_timeout(limit.max(Duration::from_millis(1)))?;
        let result = match &mut self.layer {
            Layer::Bare(socket) => socket.read(buffer),
            Layer::Tls(tls) => tls.read(buffer),
            Layer::Gone => Err(ErrorKind::NotConnected.into()),
        };
        match result {
            Ok(count) => Ok(Some(count)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            // The other side left TLS without a word: an end all the same.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Some(0)),
            Err(error) => Err(error),
        }
    }

    /// Says that no more will be written; reading goes on.
    pub fn shut_write(&mut self) -> io::Result<()> {
        if let Layer::Tls(tls) = &mut self.layer {
            tls.conn.send_close_notify();
            tls.flush()?;
        }
        self.socket()?.shut_write()
    }

    /// The bare TCP socket, if there is one.
    pub fn tcp(&self) -> Option<&TcpStream> {
        match self.socket() {
            Ok(Socket::Tcp(socket)) => Some(socket),
            _ => None,
        }
    }

    fn socket(&self) -> io::Result<&Socket> {
        match &self.layer {
            Layer::Bare(socket) => Ok(socket),
            Layer::Tls(tls) => Ok(&tls.sock),
            Layer::Gone => Err(ErrorKind::NotConnected.into()),
        }
    }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn set_read_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.set_read_timeout(Some(limit)),
            Socket::Unix(socket) => socket.set_read_timeout(Some(limit)),
        }
    }

    fn set_write_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.set_write_timeout(Some(limit)),
            Socket::Unix(socket) => socket.set_write_timeout(Some(limit)),
        }
    }

    fn shut_write(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.shutdown(Shutdown::Write),
            Socket::Unix(socket) => socket.shutdown(Shutdown::Write),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.read(buffer),
            Socket::Unix(socket) => socket.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.write(bytes),
            Socket::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes any certificate, but still checks that the server has its key.
#[derive(Debug)]
struct TrustAll {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _server: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const WRITE_LIMIT: Duration = Duration::from_secs(60);
