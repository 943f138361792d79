//! The faults.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use punctual_bridge::transport::Attachment;
use punctual_process::limits::{Resource, lower_limit_of};

use crate::transport::signal;
use crate::{MASTER_PORT, junk};

/// The time for which a transport is stopped: more than that after which the app reports it.
const STOP: Duration = Duration::from_millis(800);
/// The time for which junk and floods are sent.
const FLOOD: Duration = Duration::from_millis(1500);
/// The time limit of a junk connection.
const JUNK_TIMEOUT: Duration = Duration::from_millis(100);
/// The number of open connections that exhaust the memory.
const CONNECTIONS: usize = 200;
/// Less than any network library has.
const LIMIT_BYTES: u64 = 1 << 20;

/// A fault of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL for the worker with the network library.
    KillWorker,
    /// SIGKILL for the process that the app has started.
    KillAll,
    /// SIGSTOP and SIGCONT for the worker.
    Stop,
    /// A memory limit that the worker exceeds: it either ends, or refuses what needs memory.
    Memory,
    /// Junk at all ports.
    Junk,
    /// The request that made an HTTP server allocate 100 GB.
    Request,
    /// A transport that publishes as fast as possible, and only malformed messages.
    Flood,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KillWorker => "worker killed",
            Self::KillAll => "killed",
            Self::Stop => "stopped for 0.8 s",
            Self::Memory => "memory limit",
            Self::Junk => "junk at its ports",
            Self::Request => "request of 100 GB",
            Self::Flood => "flood by another transport",
        })
    }
}

/// A running transport.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) transport: String,
    pub(crate) app: String,
    /// The process that the app has started.
    pub(crate) supervisor: libc::pid_t,
    pub(crate) worker: libc::pid_t,
}

impl Fault {
    /// Returns the faults of a transport.
    pub(crate) fn of(transport: &str) -> Vec<Self> {
        let all = [
            Self::KillWorker,
            Self::KillAll,
            Self::Stop,
            Self::Memory,
            Self::Junk,
            Self::Request,
            Self::Flood,
        ];
        all.into_iter().filter(|fault| *fault != Self::Request || transport == "ros1").collect()
    }

    /// Returns `true` if the transport must be restarted.
    pub(crate) fn kills(self) -> bool {
        matches!(self, Self::KillWorker | Self::KillAll)
    }

    /// Injects the fault; returns the number of messages that it has published.
    pub(crate) fn inject(self, target: &Target) -> u64 {
        match self {
            Self::KillWorker => signal(target.worker, libc::SIGKILL),
            Self::KillAll => signal(target.supervisor, libc::SIGKILL),
            Self::Stop => {
                signal(target.worker, libc::SIGSTOP);
                sleep(STOP);
                signal(target.worker, libc::SIGCONT);
            }
            Self::Memory => {
                let worker = target.worker.cast_unsigned();
                assert!(data_bytes_of(worker) > LIMIT_BYTES, "the worker has less memory than the limit");
                lower_limit_of(worker, Resource::Data, LIMIT_BYTES).expect("the worker runs");
                // Each connection, and each datagram, needs memory.
                let _connections = connect(CONNECTIONS);
                send_junk(target);
            }
            Self::Junk => send_junk(target),
            Self::Request => {
                send(b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n<x>");
                send(b"\xff\xff\xff\xffAAAAAAAAAAAAAAAA");
                send(b"\0\0\0\x05hello");
            }
            Self::Flood => return flood(&target.app),
        }
        0
    }
}

/// Returns the size of the private writable memory of a process, in bytes.
fn data_bytes_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmData:")?.trim().strip_suffix(" kB"));
    1024 * kib.and_then(|kib| kib.parse::<u64>().ok()).expect("the kernel prints it in kB")
}

/// Sends bytes to all [`listening_ports`].
fn send(bytes: &[u8]) {
    for port in listening_ports() {
        let Ok(mut stream) = connect_to(port) else { continue };
        let _ = stream.set_read_timeout(Some(JUNK_TIMEOUT));
        let _ = stream.set_write_timeout(Some(JUNK_TIMEOUT));
        // It may close the connection at any time.
        let _ = stream.write_all(bytes).and_then(|()| stream.read(&mut [0; 64]));
    }
}

/// Without a limit, connecting to a process that no longer accepts would take minutes.
fn connect_to(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), JUNK_TIMEOUT)
}

/// Connects to all [`listening_ports`], `count` times each, and announces a message.
fn connect(count: usize) -> Vec<TcpStream> {
    let streams = listening_ports().into_iter().flat_map(|port| (0..count).map(move |_| connect_to(port)));
    let mut streams: Vec<TcpStream> = streams.map_while(Result::ok).collect();
    for stream in &mut streams {
        // It may close the connection at any time.
        let _ = stream.write_all(&[0xff; 2]);
    }
    streams
}

/// Returns the ports of TCP that listen in this namespace, in which there are no other programs,
/// except for that of the master.
fn listening_ports() -> Vec<u16> {
    const LISTENS: &str = "0A";
    let lists = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let port = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next()?, fields.nth(1)?);
        let (_, port) = local.rsplit_once(':')?;
        (state == LISTENS).then(|| u16::from_str_radix(port, 16).ok())?
    };
    lists.iter().flat_map(|list| list.lines().filter_map(port)).filter(|port| *port != MASTER_PORT).collect()
}

fn send_junk(target: &Target) {
    let begun = Instant::now();
    if target.transport == "ros2" {
        junk::flood();
    }
    let junk = [&[0xff_u8; 70_000][..], b"GET / HTTP/1.1\r\n\r\n", &[0; 4096], b"\0\0\0\x05hello"];
    while begun.elapsed() < FLOOD {
        junk.iter().for_each(|bytes| send(bytes));
        if target.transport == "ros2" {
            junk::exhaust();
        }
    }
}

/// Publishes malformed and valid messages as another transport; returns their number.
fn flood(app: &str) -> u64 {
    let mut app = Attachment::open(app, crate::app::FLOOD).expect("the app admits several transports");
    let mut wanted = app.publisher("/wanted").expect("the app subscribes");
    let mut published = 0;
    let valid = [&[0, 1, 0, 0][..], &[0; 24]].concat();
    let begun = Instant::now();
    while begun.elapsed() < FLOOD {
        for _ in 0..1000 {
            wanted.publish(&[0xff; 20]).expect("it is shorter");
            wanted.publish(&valid).expect("it has the length of the type");
            published += 2;
        }
        app.beat();
    }
    published
}
