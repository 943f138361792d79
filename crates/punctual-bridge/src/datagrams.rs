//! Messages received as datagrams.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use punctual::background::warn;

use crate::message::Layout;
use crate::{Message, Subscription};

/// The interval at which the thread checks for its end while idle.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(50);
/// More than the maximum size of a datagram, so that none is truncated to the length of a message.
const MAX_BYTES: usize = 1 << 16;

/// Receives the messages of one topic as UDP datagrams, whose payload is the message in CDR, as in
/// ROS 2: four bytes 0 1 0 0, then the numbers, each aligned to its size relative to there.
///
/// The senders of datagrams are not authenticated: any host that can reach the port can send. An
/// address on loopback, `127.0.0.1:9870`, is reachable by all users of the machine and by no other
/// machine.
///
/// ```
/// use punctual_bridge::messages::Vector3;
/// use punctual_bridge::{Datagrams, Incoming};
///
/// static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
///
/// let near = |wanted: &Vector3| match wanted.x.abs() <= 1.0 {
///     true => Ok(()),
///     false => Err(format!("x is {}, beyond -1 to 1 rad", wanted.x)),
/// };
/// let subscription = SETPOINT.subscribe().expect("the subscription is free").check(near);
/// let datagrams = Datagrams::listen("127.0.0.1:0", subscription)?;
/// println!("listening for setpoints at {}", datagrams.address());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Datagrams {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Datagrams {
    /// Receives messages at `address`: [`on`](Self::on) a new socket.
    ///
    /// # Errors
    /// If the address is not available, or the thread cannot be started.
    pub fn listen<T: Message>(
        address: impl ToSocketAddrs,
        subscription: Subscription<T>,
    ) -> io::Result<Self> {
        Self::on(UdpSocket::bind(address)?, subscription)
    }

    /// Receives messages on `socket` by an ordinary thread, off the CPUs of the partitions if the
    /// machine has others and the app has been started. Therefore call it in `init`. Dropping the
    /// value ends the thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn on<T: Message>(socket: UdpSocket, mut subscription: Subscription<T>) -> io::Result<Self> {
        socket.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
        let address = socket.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let receive = move || receive(&socket, &ends, &mut subscription);
        let thread = punctual::background::spawn("punctual-udp", receive)?;
        Ok(Self { address, over, thread: Some(thread) })
    }

    /// Returns the local address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the thread. Messages that have arrived but were not received are lost.
    pub fn finish(self) {}
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Panics of user code are caught, and the rest of the thread does not panic.
            let _ = thread.join();
        }
    }
}

fn receive<T: Message>(socket: &UdpSocket, over: &AtomicBool, subscription: &mut Subscription<T>) {
    let mut bytes = vec![0; MAX_BYTES];
    let mut logged = false;
    while !over.load(Ordering::Acquire) {
        match socket.recv_from(&mut bytes) {
            // A rejected message is counted by the subscription, and has no one to be reported to.
            Ok((length, sender)) => _ = subscription.take(&bytes[..length], Layout::Cdr, &sender),
            Err(error) if is_passing(error.kind()) => {}
            Err(error) => {
                if !std::mem::replace(&mut logged, true) {
                    warn(format_args!("{}: nothing can be received: {error}", subscription.topic()));
                }
                thread::sleep(RECEIVE_TIMEOUT);
            }
        }
    }
}

fn is_passing(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
