//! The part of rouille 3 that xml-rpc uses, with limits on everything that a client can hold.
//!
//! A ROS 1 node has an HTTP server, which rosrust takes from xml-rpc, xml-rpc from rouille, and
//! rouille from tiny_http. The latter allocates the announced `Content-Length` of a request, so a
//! single request aborts the process, and it has no timeouts. This crate replaces rouille in the
//! workspace by `[patch]`. It is based on hyper:
//!
//! | limit | of | beyond it |
//! |---|---|---|
//! | [`MAX_CONNECTIONS`] | open connections | the oldest one is closed |
//! | [`HEADER_TIMEOUT`] | time until the head of a request has arrived | the connection is closed |
//! | [`CONNECTION_TIMEOUT`] | time until an answer has been sent | the connection is closed |
//! | [`MAX_BODY_BYTES`] | length of a request, announced or not | status 413 |
//! | [`MAX_DEPTH`] | nested elements, which the parser follows by recursion | status 400 |
//! | [`MAX_HANDLERS`] | requests that are handled at a time | further ones wait |

use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Cursor};
use std::marker::PhantomData;
use std::net::{SocketAddr, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// The maximum number of open connections.
pub const MAX_CONNECTIONS: usize = 64;
/// The time limit from the start of a connection to the end of its request's header.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for a whole connection.
pub const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum body size of a request: thousands of publisher addresses.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// The maximum nesting depth of XML elements. The calls of ROS have 12.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of requests handled concurrently.
pub const MAX_HANDLERS: usize = 4;

/// The pause after the kernel has refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A complete request.
#[derive(Debug)]
pub struct Request {
    body: Mutex<Option<Bytes>>,
}

impl Request {
    /// Returns the body; `None` after the first call.
    pub fn data(&self) -> Option<RequestBody> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner).take().map(Cursor::new)
    }
}

/// The body of a request.
pub type RequestBody = Cursor<Bytes>;

/// An answer.
#[derive(Debug)]
pub struct Response {
    status: StatusCode,
    content_type: Option<HeaderValue>,
    body: Bytes,
}

impl Response {
    /// Returns the answer to a malformed request.
    pub fn empty_400() -> Self {
        Self::empty(StatusCode::BAD_REQUEST)
    }

    /// Returns an answer with `data`.
    pub fn from_data(content_type: &'static str, data: impl Into<Vec<u8>>) -> Self {
        let content_type = Some(HeaderValue::from_static(content_type));
        Self { status: StatusCode::OK, content_type, body: Bytes::from(data.into()) }
    }

    fn empty(status: StatusCode) -> Self {
        Self { status, content_type: None, body: Bytes::new() }
    }

    fn into_hyper(self) -> hyper::Response<Full<Bytes>> {
        let mut response = hyper::Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        if let Some(content_type) = self.content_type {
            response.headers_mut().insert(CONTENT_TYPE, content_type);
        }
        response
    }
}

/// A server that answers by `F` until it is dropped.
#[derive(Debug)]
pub struct Server<F> {
    address: SocketAddr,
    thread: JoinHandle<()>,
    /// Dropped to end the thread.
    _stop: oneshot::Sender<Infallible>,
    handler: PhantomData<fn() -> F>,
}

impl<F: Fn(&Request) -> Response + Send + Sync + 'static> Server<F> {
    /// Listens at `address`, and answers requests on its own threads from now on.
    ///
    /// # Errors
    /// If it cannot listen at the address, or a thread cannot be started.
    pub fn new(address: impl ToSocketAddrs, handler: F) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_HANDLERS)
            .build()?;
        let (stop, stops) = oneshot::channel();
        let thread = thread::Builder::new().name("ros1-xml-rpc".into()).spawn(move || {
            runtime.block_on(async {
                let serving = tokio::spawn(serve(listener, Arc::new(handler)));
                // An error: the other end has been dropped.
                let _ = stops.await;
                serving.abort();
            });
            // Does not wait for requests that are being handled.
            runtime.shutdown_background();
        })?;
        Ok(Self { address, thread, _stop: stop, handler: PhantomData })
    }

    /// Returns the address.
    pub fn server_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the process ends.
    pub fn run(self) {
        let Self { thread, _stop, .. } = self;
        let _ = thread.join();
    }

    /// Does nothing: requests are answered by other threads.
    pub fn poll(&self) {}
}

type Handler = dyn Fn(&Request) -> Response + Send + Sync;

async fn serve(listener: std::net::TcpListener, handler: Arc<Handler>) -> io::Result<Infallible> {
    let listener = TcpListener::from_std(listener)?;
    let mut open = Open::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The process has no descriptor left, or the client has gone.
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        open.add(tokio::spawn(converse(stream, Arc::clone(&handler))));
    }
}

/// The open connections, oldest first.
#[derive(Default)]
struct Open(VecDeque<tokio::task::JoinHandle<()>>);

impl Open {
    /// Adds a connection, and closes the oldest one if there are too many.
    fn add(&mut self, connection: tokio::task::JoinHandle<()>) {
        self.0.retain(|open| !open.is_finished());
        if self.0.len() >= MAX_CONNECTIONS
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(connection);
    }
}

/// Serves one request.
async fn converse(stream: TcpStream, handler: Arc<Handler>) {
    let answer = service_fn(|request| answer(request, Arc::clone(&handler)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    // A client that disconnects or exceeds a limit is not an error of the server.
    let _ = timeout(CONNECTION_TIMEOUT, connection).await;
}

async fn answer(
    request: hyper::Request<Incoming>,
    handler: Arc<Handler>,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let response = match *request.method() {
        Method::POST => match receive(request.into_body()).await {
            Ok(body) if !is_flat(&body) => Response::empty_400(),
            Ok(body) => {
                let request = Request { body: Mutex::new(Some(body)) };
                // A handler may connect to other nodes, which can take long.
                let handle = move || catch_unwind(AssertUnwindSafe(|| handler(&request)));
                match tokio::task::spawn_blocking(handle).await {
                    Ok(Ok(response)) => response,
                    _ => Response::empty(StatusCode::INTERNAL_SERVER_ERROR),
                }
            }
            Err(status) => Response::empty(status),
        },
        _ => Response::empty(StatusCode::METHOD_NOT_ALLOWED),
    };
    Ok(response.into_hyper())
}

/// Receives a body within the limit.
async fn receive(body: Incoming) -> Result<Bytes, StatusCode> {
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => Err(StatusCode::BAD_REQUEST),
    }
}

/// Returns `true` if the elements of this XML are nested at most [`MAX_DEPTH`] deep.
///
/// Comments, character data and processing instructions after the first one could hide tags from
/// this count. ROS clients send none, so they count as too deep.
fn is_flat(xml: &[u8]) -> bool {
    let xml = xml.trim_ascii_start();
    let rest = match xml.strip_prefix(b"<?") {
        Some(instruction) => match instruction.windows(2).position(|end| end == b"?>") {
            Some(end) => &instruction[end..],
            None => return false,
        },
        None => xml,
    };
    let (mut depth, mut is_in_tag) = (0_usize, false);
    rest.windows(2).all(|pair| {
        match pair {
            b"<!" | b"<?" => return false,
            b"/>" if is_in_tag => depth = depth.saturating_sub(1),
            b"</" => depth = depth.saturating_sub(1),
            [b'<', _] => (depth, is_in_tag) = (depth + 1, true),
            [b'>', _] => is_in_tag = false,
            _ => {}
        }
        depth <= MAX_DEPTH
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use xml_rpc::{Server, Value};

    /// Returns the address of a server with a method `echo`, which lives as long as the process.
    fn server() -> std::net::SocketAddr {
        let mut server = Server::default();
        server.register_value("echo", Ok);
        let bound = server.bind(&([127, 0, 0, 1], 0).into()).expect("there are free ports");
        let address = bound.local_addr();
        std::mem::forget(bound);
        address
    }

    /// Returns the answer to these bytes; empty if the connection is closed without one.
    fn ask(address: std::net::SocketAddr, request: &[u8]) -> String {
        let mut client = std::net::TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(std::time::Duration::from_secs(600))).unwrap();
        // The server may answer, and close, before everything has been sent.
        let _ = client.write_all(request);
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    fn post(body: &str) -> Vec<u8> {
        format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    fn call(value: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><methodCall><methodName>echo</methodName><params><param>\
             <value>{value}</value></param></params></methodCall>"
        )
    }

    #[test]
    fn answers_calls() {
        let address = server();
        let url = format!("http://{address}/").parse().unwrap();
        let answer = xml_rpc::call_value(&url, "echo", vec![Value::Int(7)]).unwrap().unwrap();
        assert_eq!(answer, [Value::Int(7)]);
        let missing = xml_rpc::call_value(&url, "nothing", vec![]).unwrap().unwrap_err();
        assert!(missing.message.contains("does not exist"), "{missing:?}");
    }

    #[test]
    fn rejects_announced_lengths_without_allocating_them() {
        let address = server();
        for length in ["99999999999", "18446744073709551615"] {
            let request = format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n<x>");
            let answer = ask(address, request.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
        }
        assert!(ask(address, &post(&call("<i4>7</i4>"))).contains("<i4>7</i4>"), "it goes on");
    }

    #[test]
    fn rejects_oversized_bodies_without_length() {
        let address = server();
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000)).repeat(super::MAX_BODY_BYTES / 0x1000);
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        // Ends with the first byte beyond the limit: bytes that the server has not read would reset
        // the connection, and with it the answer.
        let answer = ask(address, format!("{head}{chunk}1\r\nx\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        assert!(ask(address, &post(&call("<i4>7</i4>"))).contains(" 200 "), "it goes on");
    }

    #[test]
    fn survives_malformed_and_deeply_nested_requests() {
        let address = server();
        let (open, close) = ("<array><data><value>", "</value></data></array>");
        let depth = (super::MAX_BODY_BYTES - 200) / (open.len() + close.len());
        let nested = format!("{}<i4>7</i4>{}", open.repeat(depth), close.repeat(depth));
        let unclosed = open.repeat((super::MAX_BODY_BYTES - 200) / open.len());
        for body in [call(&nested), call(&unclosed), "<x>".into(), String::new()] {
            assert!(body.len() <= super::MAX_BODY_BYTES);
            ask(address, &post(&body));
        }
        for request in [&b"\xff\xff\xff\xff"[..], b"\0\0\0\x05hello", b"GET / HTTP/1.1\r\n\r\n"] {
            assert!(!ask(address, request).contains(" 200 "));
        }
        assert!(ask(address, &post(&call("<i4>7</i4>"))).contains(" 200 "), "it goes on");
    }

    #[test]
    fn counts_nested_elements_in_any_context() {
        let nested = |depth: usize| "<value>".repeat(depth) + &"</value>".repeat(depth);
        let wide = "<value><i4>7</i4><nil/></value>".repeat(10_000);
        for flat in ["", "<?xml version='1.0'?>\n<a>1 / 2</a>", &nested(super::MAX_DEPTH), &wide] {
            assert!(super::is_flat(flat.as_bytes()), "{flat:.80}");
        }
        let deep = nested(super::MAX_DEPTH + 1);
        let hidden = "<a><!-- </a> -->".repeat(super::MAX_DEPTH + 1);
        let instructed = "<a><?x </a>?>".repeat(super::MAX_DEPTH + 1);
        // A slash before the end of a tag that does not end an element.
        let slashed = "<a>/>".repeat(super::MAX_DEPTH + 1);
        for deep in [&deep, &hidden, &instructed, "<?xml", &format!("<?xml?>{deep}"), &slashed] {
            assert!(!super::is_flat(deep.as_bytes()), "{deep:.80}");
        }
    }

    #[test]
    fn closes_the_oldest_connection_beyond_the_limit() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut open = super::Open::default();
            let (alive, is_closed) = tokio::sync::oneshot::channel::<()>();
            open.add(tokio::spawn(async move {
                std::future::pending::<()>().await;
                drop(alive);
            }));
            for _ in 0..super::MAX_CONNECTIONS {
                open.add(tokio::spawn(std::future::pending()));
            }
            let limit = std::time::Duration::from_secs(60);
            assert!(tokio::time::timeout(limit, is_closed).await.is_ok(), "the oldest one is open");
            tokio::task::yield_now().await;
            assert_eq!(open.0.len(), super::MAX_CONNECTIONS);
            assert!(open.0.iter().all(|connection| !connection.is_finished()));
        });
    }

    #[test]
    fn answers_while_silent_connections_are_open() {
        let address = server();
        let connect = || std::net::TcpStream::connect(address).unwrap();
        let silent: Vec<_> = (0..2 * super::MAX_CONNECTIONS).map(|_| connect()).collect();
        assert!(ask(address, &post(&call("<i4>7</i4>"))).contains(" 200 "));
        drop(silent);
    }
}
