//! The health endpoint: short answers over HTTP for load balancers, and the metrics; one request a connection.
//!
//! What is answered is the hub's to say. Everything is bounded: connections, the size of a request, its time.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hub::{Fitness, Readiness};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::Control;
use crate::exposition::Format;

/// Connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 64;
/// Bytes of the head of a request; less, hyper does not take.
const HEAD_BYTES_MAX: usize = 8 * 1024;
const HEADERS_MAX: usize = 64;
const PLAIN: &str = "text/plain; charset=utf-8";
/// For a whole connection.
const TIME_MAX: Duration = Duration::from_secs(5);
/// After a connection that could not be accepted: for want of descriptors, say.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers, for as long as the process lives.
pub(super) async fn serve(control: Arc<Control>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let control = Arc::clone(&control);
        tokio::spawn(async move {
            // Who breaks off, or says what is no HTTP, is not waited for.
            let _ = tokio::time::timeout(TIME_MAX, answer_one(control, stream)).await;
            drop(place);
        });
    }
}

async fn answer_one(control: Arc<Control>, stream: TcpStream) -> Result<(), hyper::Error> {
    let service = service_fn(move |request: Request<Incoming>| {
        let control = Arc::clone(&control);
        async move { Ok::<_, Infallible>(control.answer(&request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(TIME_MAX);
    builder.keep_alive(false).max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    builder.serve_connection(TokioIo::new(stream), service).await
}

fn response(status: StatusCode, body: Bytes, content_type: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    }
    response
}

impl Control {
    async fn answer(self: Arc<Self>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        if is_read && request.uri().path() == "/metrics" {
            let accepted = request.headers().get_all(ACCEPT).iter();
            let format = Format::among(accepted.filter_map(|value| value.to_str().ok()));
            return match self.scrape(format).await {
                Some(text) => response(StatusCode::OK, text, format.content_type()),
                None => response(StatusCode::INTERNAL_SERVER_ERROR, Bytes::from_static(b"no metrics"), PLAIN),
            };
        }
        let (status, text) = self.health(request.method(), request.uri().path());
        response(status, Bytes::from_static(text.as_bytes()), PLAIN)
    }

    fn health(&self, method: &Method, path: &str) -> (StatusCode, &'static str) {
        // HAProxy's own way to ask is OPTIONS.
        if !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return (StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
        }
        match path {
            "/" | "/ready" => self.readiness(),
            "/live" => (StatusCode::OK, "live"),
            _ => match path.strip_prefix("/db/").and_then(unescaped) {
                Some(name) => self.fitness(&name),
                None => (StatusCode::NOT_FOUND, "not found"),
            },
        }
    }

    fn readiness(&self) -> (StatusCode, &'static str) {
        let readiness = self.shared.hub.lock().readiness();
        (status(readiness == Readiness::Ready), readiness.word())
    }

    fn fitness(&self, name: &str) -> (StatusCode, &'static str) {
        let (readiness, fitness) = {
            let hub = self.shared.hub.lock();
            (hub.readiness(), hub.fitness(name))
        };
        match (readiness, fitness) {
            (_, Fitness::Unknown) => (StatusCode::NOT_FOUND, fitness.word()),
            (Readiness::Ready, _) => (status(fitness == Fitness::Fit), fitness.word()),
            (Readiness::Paused | Readiness::Draining, _) => (status(false), readiness.word()),
        }
    }
}

fn status(is_good: bool) -> StatusCode {
    if is_good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// A name as it stands in a URL: `%` and two digits are a byte.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        (rest, _) = match first {
            b'%' => {
                let digits = std::str::from_utf8(after.get(..2)?).ok()?;
                let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                let byte = u8::from_str_radix(digits, 16).ok().filter(|_| is_number)?;
                (&after[2..], bytes.push(byte))
            }
            b'/' => return None,
            _ => (after, bytes.push(*first)),
        };
    }
    let name = String::from_utf8(bytes).ok()?;
    (!name.is_empty()).then_some(name)
}
