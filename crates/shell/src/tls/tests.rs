//! Handshakes between our two sides, in memory, and everything that can be wrong with files.

mod faults;
mod handshakes;

use std::path::{Path, PathBuf};

use rustls::{ClientConnection, ServerConnection};
use settings::SslMode;
use testkit::temp::TempDir;
use testkit::tls::Certificates;

use super::*;

fn options(mode: SslMode) -> TlsOptions {
    TlsOptions {
        mode,
        key_file: None,
        cert_file: None,
        ca_file: None,
        v1_2: true,
        v1_3: true,
        ciphers: "default".into(),
        tls13_ciphers: String::new(),
    }
}

fn with_key(mode: SslMode, (cert_file, key_file): &(PathBuf, PathBuf)) -> TlsOptions {
    TlsOptions { cert_file: Some(cert_file.clone()), key_file: Some(key_file.clone()), ..options(mode) }
}

fn with_authority(options: TlsOptions, file: &Path) -> TlsOptions {
    TlsOptions { ca_file: Some(file.to_owned()), ..options }
}

/// An authority, and a server's certificate for `localhost`.
fn authority() -> (TempDir, Certificates, (PathBuf, PathBuf)) {
    let dir = TempDir::new();
    let certificates = Certificates::write(dir.path());
    let server = (certificates.server_certificate(), certificates.server_key());
    (dir, certificates, server)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls/tests").join(name)
}

/// A finished handshake.
struct Met {
    accepting: ServerConnection,
    asking: ClientConnection,
}

/// One side is configured by `accepting`, as a pooler towards clients, the other by `asking`, as towards a
/// server that it knows by `name`.
fn meet(accepting: &TlsOptions, asking: &TlsOptions, name: &str) -> Result<Met, rustls::Error> {
    let accepting = ClientTls::load(accepting).unwrap().config.unwrap();
    let asking = ServerTls::load(asking).unwrap().config.unwrap();
    let name = servers::server_name(name, [127, 0, 0, 1].into());
    let mut accepting = ServerConnection::new(accepting)?;
    let mut asking = ClientConnection::new(asking, name)?;
    // Until neither has anything to say: after the handshake the tickets, too.
    while asking.wants_write() || accepting.wants_write() {
        let mut wire = Vec::new();
        asking.write_tls(&mut wire).unwrap();
        accepting.read_tls(&mut wire.as_slice()).unwrap();
        accepting.process_new_packets()?;
        let mut wire = Vec::new();
        accepting.write_tls(&mut wire).unwrap();
        asking.read_tls(&mut wire.as_slice()).unwrap();
        asking.process_new_packets()?;
    }
    assert!(!accepting.is_handshaking() && !asking.is_handshaking());
    Ok(Met { accepting, asking })
}

/// Two sides whose handshake is over, ours first.
pub(crate) fn met() -> (ServerConnection, ClientConnection) {
    let (_dir, _certificates, server) = authority();
    let met = meet(&with_key(SslMode::Require, &server), &options(SslMode::Require), "localhost").unwrap();
    (met.accepting, met.asking)
}
