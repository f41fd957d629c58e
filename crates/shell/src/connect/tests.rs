//! Connections to lying servers written here, and to a real PostgreSQL.

mod liars;
mod real;

use std::time::Duration;

use auth::{LoginSecret, Password};
use server::login::Methods;
use settings::{Host, SslMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wire::startup::Version;

use crate::dns::DnsOptions;
use crate::tls::TlsOptions;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

fn context() -> ConnectContext {
    let ttl = Duration::from_secs(15);
    ConnectContext::new(Dns::new(DnsOptions { max_ttl: ttl, nxdomain_ttl: ttl }))
}

fn order(port: u16) -> ConnectOrder {
    ConnectOrder {
        host: Host::Ip([127, 0, 0, 1].into()),
        port,
        database: "postgres".into(),
        user: "ann".into(),
        secret: LoginSecret::Clear(Password::new(b"secret".as_slice())),
        parameters: Vec::new(),
        replication: None,
        version: Version::V3_0,
        tls: ServerTls::DISABLED,
        tcp: TcpOptions::DEFAULT,
        allowed: Methods::ALL,
        in_recovery: None,
        connect_query: None,
        timeout: LIMIT,
    }
}

fn tls(mode: SslMode, ca_file: Option<std::path::PathBuf>) -> ServerTls {
    let options = TlsOptions {
        mode,
        key_file: None,
        cert_file: None,
        ca_file,
        v1_2: true,
        v1_3: true,
        ciphers: String::new(),
        tls13_ciphers: String::new(),
    };
    ServerTls::load(&options).unwrap()
}

/// A server that does this with its one connection, and the port it listens on.
async fn serve<F>(behaviour: impl FnOnce(TcpStream) -> F + Send + 'static) -> u16
where
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        behaviour(stream).await;
    });
    port
}

/// Takes the first packet of a client.
async fn first_packet(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await.unwrap();
    let mut packet = head.to_vec();
    packet.resize(u32::from_be_bytes(head) as usize, 0);
    stream.read_exact(&mut packet[4..]).await.unwrap();
    packet
}

/// Takes the first packet and sends this.
async fn serve_bytes(bytes: Vec<u8>) -> u16 {
    serve(async move |mut stream| {
        first_packet(&mut stream).await;
        // Who is sent too much may close before all of it is sent.
        let _ = stream.write_all(&bytes).await;
        // Until the other side closes.
        while stream.read(&mut [0; 64]).await.is_ok_and(|size| size > 0) {}
    })
    .await
}

fn welcome() -> Vec<u8> {
    let mut out = Vec::new();
    wire::encode::auth_ok(&mut out);
    wire::encode::parameter_status(&mut out, b"server_version", b"15.1");
    wire::encode::backend_key(&mut out, 7, b"abcd");
    wire::encode::ready_for_query(&mut out, wire::server::TransactionStatus::Idle);
    out
}
