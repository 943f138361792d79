//! The round trip of a datagram over loopback: from before the send to the arrival of the answer,
//! from a task or a thread of a higher priority on the same CPU.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use super::{Condition, Contender, Window, alternate, row};
use crate::clock;
use crate::rt::{self, Lack};
use crate::session::{Step, Unit};
use crate::subject::{Subject, outcome};

/// The time limit for a datagram. Loopback loses none; after three timeouts the row ends with its
/// samples so far.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// The size of a datagram.
const BYTES: usize = 64;

pub(super) fn steps(condition: Condition) -> Vec<Step> {
    let name = condition.name();
    vec![Step::new(format!("UDP round trip, {name}"), move |session| {
        let _load = condition.begin(session);
        let row = |subject| {
            row("udp", "UDP round trip, loopback, 64 bytes, an answer by a higher one", subject).under(name)
        };
        let cpu = session.plan.cpu;
        let contenders = vec![
            Contender::new(row(Subject::Punctual), Unit::Ticks, move |window| {
                let (client, server) = sockets()?;
                let out = Out { client, window: window.clone() };
                outcome(app::run(punctual::Config::new().cpu(cpu), Arc::new(out), server))
            }),
            Contender::new(row(Subject::Posix), Unit::Ticks, move |window| {
                let (client, server) = sockets()?;
                let out = Out { client, window: window.clone() };
                Ok(threads(&out, &server, cpu))
            }),
        ];
        alternate(session, session.samples(), contenders);
    })]
}

/// Returns two sockets connected to each other.
fn sockets() -> Result<(UdpSocket, UdpSocket), String> {
    let pair = || {
        let [client, server] = [(), ()].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)));
        let (client, server) = (client?, server?);
        client.connect(server.local_addr()?)?;
        server.connect(client.local_addr()?)?;
        client.set_read_timeout(Some(REPLY_TIMEOUT))?;
        Ok((client, server))
    };
    pair().map_err(|error: std::io::Error| format!("no UDP over loopback: {error}"))
}

/// The state of the lower side.
#[derive(Debug)]
struct Out {
    client: UdpSocket,
    window: Window,
}

impl Out {
    /// Sends and waits for the answer, repeatedly.
    fn ask(&self) {
        let mut answer = [0; BYTES];
        let mut lost = 0;
        while lost < 3 && !self.window.is_over() {
            let from = clock::now();
            let arrived = self.client.send(&[7; BYTES]).and_then(|_| self.client.recv(&mut answer));
            match arrived {
                Ok(_) => {
                    self.window.recorder.push(clock::now() - from);
                }
                Err(_) => lost += 1,
            }
        }
    }
}

/// Answers a received datagram.
fn answer(server: &UdpSocket) {
    let mut bytes = [0; BYTES];
    if let Ok(length) = server.recv(&mut bytes) {
        // If lost, the sender repeats it.
        let _ = server.send(&bytes[..length]);
    }
}

#[punctual::app(main = false, monitor = false)]
mod app {
    use super::*;

    #[shared]
    struct Shared {
        out: Arc<Out>,
    }

    #[local]
    struct Local {
        socket: UdpSocket,
    }

    #[init]
    fn init(_: init::Context, out: Arc<Out>, socket: UdpSocket) -> (Shared, Local) {
        asks::spawn().expect("it is spawned once");
        (Shared { out }, Local { socket })
    }

    #[task(priority = 1, shared = [&out])]
    fn asks(cx: asks::Context) {
        cx.shared.out.ask();
        punctual::shutdown();
    }

    #[task(binds = socket, priority = 2, local = [socket])]
    fn answers(cx: answers::Context) {
        answer(cx.local.socket);
    }
}

/// The same with an answering thread.
fn threads(out: &Out, server: &UdpSocket, cpu: usize) -> Lack {
    let ended = std::sync::atomic::AtomicBool::new(false);
    let answers = || {
        let lack = rt::enter(cpu, rt::PRIORITY + 1);
        while !ended.load(std::sync::atomic::Ordering::Acquire) {
            answer(server);
        }
        lack
    };
    let asks = || {
        let lack = rt::enter(cpu, rt::PRIORITY);
        out.ask();
        ended.store(true, std::sync::atomic::Ordering::Release);
        // Wakes the other thread, which may wait for one more.
        let _ = out.client.send(&[0; BYTES]);
        lack
    };
    std::thread::scope(|scope| {
        let (answers, asks) = (rt::spawn(scope, answers), rt::spawn(scope, asks));
        let mut lack = rt::join(asks);
        lack.extend(rt::join(answers));
        lack
    })
}
