//! An HTTP server for one page, with limits on everything that a client can hold.
//!
//! All connections share one thread, so a client that sends nothing, sends slowly or does not read
//! delays no other client. Each connection serves one request.
//!
//! | limit | of | beyond it |
//! |---|---|---|
//! | [`MAX_CONNECTIONS`] | open connections | the oldest one is closed |
//! | [`Timeouts::header`] | time until a request has arrived | the connection is closed |
//! | [`Timeouts::connection`] | time until an answer has been sent | the connection is closed |
//! | [`MAX_HEADER_BYTES`] | length of a request without its body | status 431 |

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::output::say;

/// Path of the page.
pub(super) const PATH: &str = "/metrics";

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 64;
/// Maximum length of a request without its body.
const MAX_HEADER_BYTES: usize = 8192;
/// Pause after the kernel has refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits of the time that a client may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// Maximum time from the start of a connection to the end of its request without the body.
    header: Duration,
    /// Maximum time from the start to the end of a connection.
    connection: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { header: Duration::from_secs(2), connection: Duration::from_secs(10) }
    }
}

/// Serves `page`, a text in the exposition format of Prometheus, at [`PATH`].
///
/// # Errors
/// Returns an error if the thread cannot wait for connections.
pub(super) fn serve(
    listener: TcpListener,
    timeouts: Timeouts,
    page: impl Fn() -> Bytes + Send + Sync + 'static,
) -> io::Result<Infallible> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let page = Arc::new(page);
        let mut connections = Connections::default();
        let mut is_failing = false;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    is_failing = false;
                    connections.add(tokio::spawn(converse(stream, timeouts, Arc::clone(&page))));
                }
                // The process has no descriptor left, or the client has gone.
                Err(error) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        say!("warning: cannot accept connections: {error}");
                    }
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

/// The open connections, the oldest first.
#[derive(Default)]
struct Connections(VecDeque<JoinHandle<()>>);

impl Connections {
    /// Adds one. If there are [`MAX_CONNECTIONS`], it replaces the oldest: clients that hold
    /// connections keep no other client out.
    fn add(&mut self, connection: JoinHandle<()>) {
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
async fn converse<P: Fn() -> Bytes>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    timeouts: Timeouts,
    page: Arc<P>,
) {
    let answer = service_fn(|request| future::ready(Ok::<_, Infallible>(answer(&request, &*page))));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.header)
        .max_buf_size(MAX_HEADER_BYTES)
        .keep_alive(false)
        // A client may close its sending direction after the request.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), answer);
    // A client that breaks off or exceeds a limit is not an error of the server.
    let _ = timeout(timeouts.connection, connection).await;
}

fn answer<B>(request: &Request<B>, page: impl Fn() -> Bytes) -> Response<Full<Bytes>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, body) = match request.uri().path() {
        _ if !is_read => (StatusCode::METHOD_NOT_ALLOWED, "use GET or HEAD\n".into()),
        PATH => (StatusCode::OK, page()),
        _ => (StatusCode::NOT_FOUND, format!("the metrics are at {PATH}\n").into()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"));
    if !is_read {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::Instant;

    use super::*;

    fn page() -> Bytes {
        Bytes::from_static(b"punctual_jobs_total 7\n")
    }

    /// Runs `client` at the other end of a connection, in virtual time. Returns its result and the
    /// duration of the connection.
    fn talk<T>(buffer: usize, client: impl AsyncFnOnce(&mut DuplexStream) -> T) -> (T, Duration) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(async {
            let start = Instant::now();
            let (mut near, far) = duplex(buffer);
            let connection = tokio::spawn(async move {
                converse(far, Timeouts::default(), Arc::new(page)).await;
                start.elapsed()
            });
            (client(&mut near).await, connection.await.unwrap())
        })
    }

    /// Returns the answer to `request`.
    fn ask(request: &[u8]) -> String {
        let (answer, _) = talk(1 << 16, async |client| {
            client.write_all(request).await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            answer
        });
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn serves_page_with_and_without_query() {
        for target in ["/metrics", "/metrics?", "/metrics?collect[]=jobs&x=1", "http://host/metrics?x"] {
            let answer = ask(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(head.contains("content-type: text/plain; version=0.0.4"), "{answer}");
            assert_eq!(body.as_bytes(), page());
        }
        assert!(ask(b"GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200"));
    }

    #[test]
    fn answers_head_with_length_and_without_page() {
        let answer = ask(b"HEAD /metrics?x HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(), "{answer}");
        assert!(head.contains(&format!("content-length: {}", page().len())), "{answer}");
    }

    #[test]
    fn rejects_other_paths_and_methods_and_malformed_requests() {
        let huge = b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n";
        let long = format!("GET /metrics HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(MAX_HEADER_BYTES));
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", "404"),
            (b"GET /metrics/ HTTP/1.1\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405"),
            (b"DELETE / HTTP/1.1\r\n\r\n", "405"),
            (huge, "400"),
            (b"GET  /metrics\xff\xff\r\n\r\n", "400"),
            (&[0; MAX_HEADER_BYTES + 1], "400"),
            (long.as_bytes(), "431"),
        ] {
            let answer = ask(request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
            assert_eq!(status == "405", answer.contains("allow: GET, HEAD\r\n"), "{answer}");
        }
    }

    #[test]
    fn closes_connections_with_late_requests() {
        // A client that sends nothing, and one that sends a byte a second.
        for is_silent in [true, false] {
            let (_, duration) = talk(1 << 16, async |client| {
                for byte in b"GET /metrics HTTP/1.1\r\nHost: a-host\r\n\r\n" {
                    if !is_silent && client.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                    sleep(Duration::from_secs(1)).await;
                }
            });
            assert_eq!(duration, Timeouts::default().header);
        }
    }

    #[test]
    fn closes_connections_with_unread_answers() {
        // The answer has more bytes than the connection has room for.
        let (_, duration) = talk(64, async |client| {
            client.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            sleep(2 * Timeouts::default().connection).await;
        });
        assert_eq!(duration, Timeouts::default().connection);
    }

    #[test]
    fn does_not_wait_for_request_body() {
        for method in ["GET", "POST"] {
            let request = format!("{method} /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nx");
            let (first, duration) = talk(1 << 16, async |client| {
                client.write_all(request.as_bytes()).await.unwrap();
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).await.unwrap();
                answer.len()
            });
            assert!(first > 0 && duration < Timeouts::default().header, "{method}: {duration:?}");
        }
    }

    #[test]
    fn serves_client_despite_silent_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // No time-out expires during the test. The thread lives as long as the process.
        let hour = Duration::from_secs(3600);
        let timeouts = Timeouts { header: hour, connection: hour };
        std::thread::spawn(move || serve(listener, timeouts, page));
        let silent: Vec<_> = (0..2 * MAX_CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(hour / 12)).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it is answered");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        // The oldest connections were closed to make room.
        for mut stream in &silent[..=MAX_CONNECTIONS] {
            stream.set_read_timeout(Some(hour / 12)).unwrap();
            assert_eq!(stream.read(&mut [0]).expect("it is closed"), 0);
        }
        for mut stream in &silent[MAX_CONNECTIONS + 1..] {
            stream.set_nonblocking(true).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }
}
