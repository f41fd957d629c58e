//! Servers that refuse, lie, babble or say nothing.

use std::io::Read;

use super::*;
use crate::cancel_out::{CancelOrder, CancelSender};
use server::login::{LoginError, LoginFault};

async fn fails(order: &ConnectOrder) -> ConnectError {
    tokio::time::timeout(LIMIT, connect(order, &context())).await.expect("an end in time").unwrap_err()
}

fn with_tls(mode: SslMode, port: u16) -> ConnectOrder {
    ConnectOrder { tls: tls(mode, None), ..order(port) }
}

#[tokio::test]
async fn honest_server_is_logged_in_to() {
    let port = serve_bytes(welcome()).await;
    let connected = connect(&order(port), &context()).await.unwrap();
    assert_eq!((connected.login.process_id, connected.tls_description), (7, None));
    assert_eq!((connected.remote.address(), connected.remote.port()), ("127.0.0.1".to_owned(), port));
    // The socket is handed over in non-blocking mode, with nothing to read.
    let mut socket = std::net::TcpStream::from(connected.socket);
    assert_eq!(socket.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(socket.nodelay().unwrap());
}

#[tokio::test]
async fn tls_that_is_refused_is_an_error_only_where_it_is_required() {
    for mode in [SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull] {
        let port = serve_bytes(b"N".to_vec()).await;
        let mut order = order(port);
        // No CA file is needed: it does not come to a certificate.
        order.tls = ServerTls { mode, ..tls(SslMode::Require, None) };
        assert!(matches!(fails(&order).await, ConnectError::TlsRefused));
    }
    for mode in [SslMode::Allow, SslMode::Prefer] {
        let port = serve(async |mut stream| {
            assert_eq!(first_packet(&mut stream).await, wire::encode::SSL_REQUEST);
            stream.write_all(b"N").await.unwrap();
            first_packet(&mut stream).await;
            stream.write_all(&welcome()).await.unwrap();
            let _ = stream.read(&mut [0; 64]).await;
        })
        .await;
        let connected = connect(&with_tls(mode, port), &context()).await.unwrap();
        assert!(connected.tls.is_none());
    }
}

#[tokio::test]
async fn bytes_behind_the_yes_break_the_handshake() {
    let mut bytes = b"S".to_vec();
    bytes.extend(welcome());
    let port = serve_bytes(bytes).await;
    assert!(matches!(fails(&with_tls(SslMode::Prefer, port)).await, ConnectError::TlsHandshake(_)));
}

#[tokio::test]
async fn error_before_tls_is_not_read_and_not_shown() {
    let mut words = Vec::new();
    let text = "forged".repeat(5000);
    wire::encode::report(&mut words, wire::encode::Severity::Fatal, "28000", &text, None);
    for mode in [SslMode::Prefer, SslMode::Require] {
        let port = serve_bytes(words.clone()).await;
        let error = fails(&with_tls(mode, port)).await;
        assert!(matches!(error, ConnectError::TlsBadAnswer(b'E')));
        assert!(error.refusal().is_none() && !error.to_string().contains("forged"));
    }
}

#[tokio::test]
async fn any_other_answer_to_the_question_for_tls_is_an_error() {
    let port = serve_bytes(vec![0]).await;
    assert!(matches!(fails(&with_tls(SslMode::Prefer, port)).await, ConnectError::TlsBadAnswer(0)));
    let port = serve(async |mut stream| drop(first_packet(&mut stream).await)).await;
    let closed = fails(&with_tls(SslMode::Prefer, port)).await;
    assert!(matches!(closed, ConnectError::Closed(Stage::Tls)));
}

#[tokio::test]
async fn silence_ends_at_the_deadline_in_every_stage() {
    let timeout = Duration::from_millis(200);
    let port = serve_bytes(Vec::new()).await;
    let order = ConnectOrder { timeout, ..order(port) };
    assert!(matches!(fails(&order).await, ConnectError::Timeout(Stage::Login)));
    let port = serve_bytes(Vec::new()).await;
    let order = ConnectOrder { timeout, ..with_tls(SslMode::Prefer, port) };
    assert!(matches!(fails(&order).await, ConnectError::Timeout(Stage::Tls)));
    let port = serve_bytes(b"S".to_vec()).await;
    let order = ConnectOrder { timeout, ..with_tls(SslMode::Prefer, port) };
    assert!(matches!(fails(&order).await, ConnectError::Timeout(Stage::Tls)));
}

#[tokio::test]
async fn trickle_of_bytes_does_not_move_the_deadline() {
    let port = serve(async |mut stream| {
        first_packet(&mut stream).await;
        let mut notice = Vec::new();
        wire::encode::report(&mut notice, wire::encode::Severity::Notice, "00000", "wait", None);
        while stream.write_all(&notice).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let order = ConnectOrder { timeout: Duration::from_millis(300), ..order(port) };
    assert!(matches!(fails(&order).await, ConnectError::Timeout(Stage::Login)));
}

#[tokio::test]
async fn bytes_after_the_login_are_an_error() {
    let mut bytes = welcome();
    wire::encode::command_complete(&mut bytes, b"SELECT 1");
    let port = serve_bytes(bytes).await;
    assert!(matches!(fails(&order(port)).await, ConnectError::BytesAfterLogin));
}

#[tokio::test]
async fn endless_and_long_messages_are_an_error() {
    let mut long = vec![b'E'];
    long.extend_from_slice(&(1_u32 << 20).to_be_bytes());
    long.resize(1 << 20, b'x');
    let port = serve_bytes(long).await;
    let error = fails(&order(port)).await;
    assert!(matches!(error, ConnectError::Login(LoginError::Fault(LoginFault::MessageTooLong(b'E')))));
    let mut notice = Vec::new();
    wire::encode::report(&mut notice, wire::encode::Severity::Notice, "00000", "again", None);
    let port = serve_bytes(notice.repeat(100_000)).await;
    let error = fails(&order(port)).await;
    assert!(matches!(error, ConnectError::Login(LoginError::Fault(LoginFault::TooMuch))));
}

#[tokio::test]
async fn close_in_the_middle_of_a_login_is_told() {
    let port = serve(async |mut stream| {
        first_packet(&mut stream).await;
        stream.write_all(&welcome()[..9]).await.unwrap();
    })
    .await;
    assert!(matches!(fails(&order(port)).await, ConnectError::Closed(Stage::Login)));
}

#[tokio::test]
async fn refusal_is_told_in_the_servers_words() {
    let mut words = Vec::new();
    wire::encode::report(&mut words, wire::encode::Severity::Fatal, "53300", "too many", None);
    let port = serve_bytes(words).await;
    let error = fails(&order(port)).await;
    assert_eq!(error.refusal().unwrap().sqlstate.as_deref(), Some("53300"));
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    let port = testkit::temp::free_port();
    let error = fails(&order(port)).await;
    assert!(matches!(error, ConnectError::Unreachable(..)));
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    let unix = ConnectOrder { host: Host::Unix("/no/such/dir".into()), ..order(port) };
    assert!(matches!(fails(&unix).await, ConnectError::Unreachable(..)));
    let name = ConnectOrder { host: Host::Name("no.such.name.invalid".into()), ..order(port) };
    assert!(matches!(fails(&name).await, ConnectError::Dns(..)));
}

fn cancel_order(port: u16) -> CancelOrder {
    CancelOrder {
        remote: Endpoint::Tcp(([127, 0, 0, 1], port).into()),
        host: Host::Name("localhost".into()),
        tls: ServerTls::DISABLED,
        tcp: TcpOptions::DEFAULT,
        process_id: 7,
        key: b"abcd".as_slice().into(),
    }
}

#[tokio::test]
async fn cancel_request_is_sent_and_the_close_awaited() {
    let (told, packet) = tokio::sync::oneshot::channel();
    let port = serve(async |mut stream| told.send(first_packet(&mut stream).await).unwrap()).await;
    CancelSender::new(1, LIMIT).send(&cancel_order(port)).await.unwrap();
    let mut expected = Vec::new();
    wire::encode::cancel_request(&mut expected, 7, b"abcd");
    assert_eq!(packet.await.unwrap(), expected);
}

#[tokio::test]
async fn cancel_requests_to_a_silent_server_all_end_and_few_are_under_way() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let order = cancel_order(listener.local_addr().unwrap().port());
    let sender = CancelSender::new(3, Duration::from_millis(300));
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let (sender, order) = (sender.clone(), order.clone());
            tokio::spawn(async move { sender.send(&order).await })
        })
        .collect();
    let mut open = Vec::new();
    for task in tasks {
        assert!(matches!(task.await.unwrap(), Err(ConnectError::Timeout(_))));
    }
    while let Ok(Ok((stream, _))) = tokio::time::timeout(Duration::ZERO, listener.accept()).await {
        open.push(stream);
    }
    assert!(open.len() <= 3, "{}", open.len());
}
