//! As much HTTP as tests need: one request of a client, and a server that says what a test makes it say.
//!
//! Written by hand on purpose: a second opinion on what the pooler's library reads and writes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// An answer, as far as tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// Sends one request to a port of the loopback address, and reads until the other side closes.
pub fn request(port: u16, method: &str, path: &str, body: &str) -> io::Result<Answer> {
    request_to((Ipv4Addr::LOCALHOST, port).into(), method, path, body)
}

/// The same, to any address.
pub fn request_to(address: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<Answer> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let bytes = exchange_with(address, format!("{head}{body}").as_bytes())?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    match (status, body) {
        (Some(status), Some(body)) => Ok(Answer { status, body }),
        _ => Err(io::Error::other(format!("no answer in HTTP: {text:?}"))),
    }
}

/// Sends these very bytes, and reads until the other side closes.
pub fn exchange(port: u16, bytes: &[u8]) -> io::Result<Vec<u8>> {
    exchange_with((Ipv4Addr::LOCALHOST, port).into(), bytes)
}

fn exchange_with(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(bytes)?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => Ok(answer),
        // Whoever closes with our bytes unread resets; what came before counts.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(answer),
        Err(error) => Err(error),
    }
}

fn tls(
    (certificate, key): &(PathBuf, PathBuf),
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Arc<ServerConfig> {
    let chain = CertificateDer::from_pem_file(certificate).expect("made by us");
    let key = PrivateKeyDer::from_pem_file(key).expect("made by us");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of its own");
    let builder = match clients {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    Arc::new(builder.with_single_cert(vec![chain], key).expect("a certificate and its key"))
}

/// What a server does with a request.
#[derive(Clone, Debug)]
pub enum Habit {
    /// Answers this.
    Says(u16, String),
    /// Accepts, and says nothing.
    Silent,
    /// Answers these very bytes.
    Raw(Vec<u8>),
    /// Begins an answer and never ends it.
    Endless,
}

/// A server whose habit a test changes. It ends with its owner.
pub struct HttpServer {
    address: SocketAddr,
    habit: Arc<Mutex<Habit>>,
    asked: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    pub fn start(habit: Habit) -> HttpServer {
        HttpServer::launch(habit, None)
    }

    /// Over TLS alone, with this certificate and its key.
    pub fn start_tls(habit: Habit, identity: &(PathBuf, PathBuf)) -> HttpServer {
        HttpServer::launch(habit, Some(tls(identity, None)))
    }

    /// The same, for clients alone that show a certificate of this authority's.
    pub fn start_tls_for_known(habit: Habit, identity: &(PathBuf, PathBuf), authority: &Path) -> HttpServer {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(authority).expect("made by us");
        roots.add(authority).expect("an authority");
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        HttpServer::launch(habit, Some(tls(identity, Some(verifier.build().expect("one authority")))))
    }

    fn launch(habit: Habit, tls: Option<Arc<ServerConfig>>) -> HttpServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (habit, asked) = (Arc::new(Mutex::new(habit)), Arc::new(AtomicUsize::new(0)));
        let is_over = Arc::new(AtomicBool::new(false));
        let (told, counted, over) = (Arc::clone(&habit), Arc::clone(&asked), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let habit = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let (counted, over, tls) = (Arc::clone(&counted), Arc::clone(&over), tls.clone());
                std::thread::spawn(move || {
                    // Whoever goes away is not waited for.
                    let _ = serve(stream, tls, &habit, (&counted, &over));
                });
            }
        });
        HttpServer { address, habit, asked, is_over, thread: Some(thread) }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn set(&self, habit: Habit) {
        *self.habit.lock().unwrap_or_else(PoisonError::into_inner) = habit;
    }

    /// How many requests have come.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread from accept().
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(
    mut socket: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    habit: &Habit,
    watch: (&AtomicUsize, &AtomicBool),
) -> io::Result<()> {
    socket.set_read_timeout(Some(LIMIT))?;
    let other = socket.try_clone()?;
    match tls {
        None => answer(&mut socket, &other, habit, watch),
        Some(config) => {
            let session = ServerConnection::new(config).map_err(io::Error::other)?;
            let mut stream = StreamOwned::new(session, socket);
            answer(&mut stream, &other, habit, watch)?;
            stream.conn.send_close_notify();
            stream.flush()
        }
    }
}

fn answer(
    stream: &mut (impl Read + Write),
    socket: &TcpStream,
    habit: &Habit,
    (asked, over): (&AtomicUsize, &AtomicBool),
) -> io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 16_384 {
        if stream.read(&mut byte)? == 0 {
            return Ok(());
        }
        head.push(byte[0]);
    }
    asked.fetch_add(1, Ordering::SeqCst);
    match habit {
        Habit::Says(status, body) => {
            let length = body.len();
            write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}")
        }
        Habit::Raw(bytes) => stream.write_all(bytes),
        Habit::Silent => {
            while !over.load(Ordering::SeqCst) && !is_closed(socket) {
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(())
        }
        Habit::Endless => {
            write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            while !over.load(Ordering::SeqCst) {
                write!(stream, "1000\r\n{}\r\n", " ".repeat(4096))?;
            }
            Ok(())
        }
    }
}

fn is_closed(mut socket: &TcpStream) -> bool {
    // Nothing more is sent by a client that waits for its answer.
    let _ = socket.set_read_timeout(Some(Duration::from_millis(1)));
    matches!(socket.read(&mut [0]), Ok(0))
}

const LIMIT: Duration = Duration::from_secs(60);
