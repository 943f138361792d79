//! A Zenoh node for the topics of a [`punctual_bridge::Bridge`], on this machine and others.
//!
//! See [`Zenoh`] for an example.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use punctual::background::warn;
use punctual_bridge::message::Layout;
use punctual_bridge::transport::within;
use punctual_bridge::{Channel, Clock, Message, Sample, Sink, Subscription};
use zenoh::bytes::Encoding;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::SampleKind;
use zenoh::{self as engine, Config, Session, Wait};

/// The name of the thread whose settings the threads of Zenoh inherit.
const THREAD: &str = "punctual-zenoh";
/// The time limit for the start and the end of the node. Zenoh's own limit for a blocked peer is 5
/// s.
const PATIENCE: Duration = Duration::from_secs(15);
/// The time limit for connecting to a peer at the start.
const CONNECT_MS: u32 = 5000;
/// The maximum length of a received message, unless a file sets another. Zenoh's own bound is a
/// gigabyte, which a peer could make it allocate.
const MAX_BYTES: u32 = 1 << 20;
/// The interval between checks of the connected peers.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The size of each message's attachment: its time in ns since 1970 and its number.
const ATTACHED: usize = 12;

/// A Zenoh node, which publishes the topics of a [`Bridge`](punctual_bridge::Bridge) as its
/// [`Sink`], and subscribes to topics of other nodes, across machines.
///
/// ```no_run
/// use punctual_bridge::messages::Vector3;
/// use punctual_bridge::{Bridge, Incoming, Topic};
/// use punctual_zenoh::Zenoh;
///
/// static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);
/// static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
///
/// let node = Zenoh::listen("tcp/0.0.0.0:7447")?;
/// let node = node.subscribe(SETPOINT.subscribe().expect("the subscription is free"))?;
/// let bridge = Bridge::new().topic(&ANGLES).sink(node).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The topic `/angles` has the key `angles`; a message consists of its bytes in CDR, as in ROS 2,
/// with the encoding `application/cdr;geometry_msgs/msg/Vector3`. Its attachment has twelve bytes,
/// little-endian: the release, in ns since 1970 (`u64`), and the sequence number (`u32`), which has
/// a gap where messages were lost.
///
/// The queue for peers has as many slots as all topics together. A blocked peer makes messages
/// wait; when the queue is full, further ones are counted as
/// [`dropped`](punctual_bridge::SinkReport::dropped), and other sinks are not affected. After 5 s
/// Zenoh closes the connection to such a peer. Messages in flight may be lost when either side
/// ends; only the sequence numbers show how many, but the end of a peer is reported. A program
/// whose last messages matter should end its bridge a moment after publishing them.
///
/// Any process that can reach the endpoint can publish and subscribe, unless a
/// [file](Self::configured) restricts this.
pub struct Zenoh {
    session: Option<Session>,
    name: String,
    subscribers: Vec<Subscriber<()>>,
    sending: Option<Sending>,
}

/// The error of a node or of one of its topics.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZenohError {
    /// A request failed.
    #[error("Zenoh: {what}: {reason}; {advice}")]
    Refused {
        /// The operation.
        what: String,
        /// The reason.
        reason: String,
        /// The advice.
        advice: &'static str,
    },
    /// A call timed out.
    #[error("Zenoh: {0} takes more than 15 s; given up")]
    Silent(String),
    /// A thread cannot be started.
    #[error("Zenoh: a thread cannot be started: {0}")]
    Thread(#[from] io::Error),
}

impl Zenoh {
    /// Creates a peer to which others connect at this endpoint, `tcp/ADDRESS:PORT`. It uses no
    /// discovery, no encryption and no authentication.
    ///
    /// Waits for it for at most 15 s. All threads of Zenoh are ordinary ones off the CPUs of the
    /// partitions if the machine has others and the app has been started. Therefore call it in
    /// `init`. The same holds for the other constructors.
    ///
    /// # Errors
    /// [`ZenohError`]: the endpoint is invalid or in use.
    pub fn listen(endpoint: &str) -> Result<Self, ZenohError> {
        let advice = "tcp/ADDRESS:PORT is an endpoint, with a port that is not in use";
        let what = format!("cannot listen at {endpoint:?}");
        Self::peer(&[("listen/endpoints", endpoint)], what, advice, format!("at {endpoint}"))
    }

    /// Creates a peer that connects to another, or to a router (`zenohd`), at this endpoint, and
    /// reconnects after a connection is lost.
    ///
    /// # Errors
    /// [`ZenohError`]: the endpoint is invalid, or there is no answer within 5 s.
    pub fn connect(endpoint: &str) -> Result<Self, ZenohError> {
        let advice = "tcp/ADDRESS:PORT is an endpoint, where a router or a peer has to listen already";
        let what = format!("no connection to {endpoint:?}");
        Self::peer(&[("connect/endpoints", endpoint)], what, advice, format!("with {endpoint}"))
    }

    /// Creates a node from a Zenoh file in JSON5, which can set router, discovery, TLS and access
    /// control. The only built-in link is TCP; a program that needs others adds the crate `zenoh`
    /// to its manifest, with their features.
    ///
    /// # Errors
    /// [`ZenohError`]: the file cannot be read or is rejected.
    pub fn configured(file: impl AsRef<Path>) -> Result<Self, ZenohError> {
        let file = file.as_ref();
        let what = format!("a node configured by {}", file.display());
        let advice = "see Zenoh's DEFAULT_CONFIG.json5 for the settings";
        let config = Config::from_file(file).map_err(|error| refused(&what, &error, advice))?;
        Self::open(config, what, advice, format!("of {}", file.display()))
    }

    fn peer(
        endpoints: &[(&str, &str)],
        what: String,
        advice: &'static str,
        name: String,
    ) -> Result<Self, ZenohError> {
        let mut config = Config::default();
        let mut set = |key: &str, value: &str| {
            config.insert_json5(key, value).map_err(|error| refused(&what, &error, advice))
        };
        set("mode", "\"peer\"")?;
        set("scouting/multicast/enabled", "false")?;
        // Listens only where requested.
        set("listen/endpoints", "[]")?;
        set("connect/timeout_ms", &CONNECT_MS.to_string())?;
        set("connect/exit_on_failure", "true")?;
        set("transport/link/rx/max_message_size", &MAX_BYTES.to_string())?;
        for (key, endpoint) in endpoints {
            // For all characters of endpoints, quoting in Rust is the same as in JSON.
            set(key, &format!("[{endpoint:?}]"))?;
        }
        Self::open(config, what, advice, name)
    }

    fn open(config: Config, what: String, advice: &'static str, name: String) -> Result<Self, ZenohError> {
        match within(THREAD, PATIENCE, move || engine::open(config).wait())? {
            Some(Ok(session)) => {
                Ok(Self { session: Some(session), name, subscribers: vec![], sending: None })
            }
            Some(Err(error)) => Err(refused(&what, &error, advice)),
            None => Err(ZenohError::Silent(what)),
        }
    }

    /// Receives the messages of this topic from any node.
    ///
    /// # Errors
    /// [`ZenohError`].
    pub fn subscribe<T: Message>(mut self, subscription: Subscription<T>) -> Result<Self, ZenohError> {
        let topic = subscription.topic();
        let what = format!("the subscription to {topic}");
        let Some(session) = self.session.clone() else { return Err(ZenohError::Silent(what)) };
        // Called by one Zenoh thread per peer.
        let subscription = Mutex::new(subscription);
        let take = move |sample: engine::sample::Sample| {
            if sample.kind() == SampleKind::Put {
                let bytes = sample.payload().to_bytes();
                let mut subscription = subscription.lock().unwrap_or_else(PoisonError::into_inner);
                // The subscription counts rejected messages; there is no one to report them to.
                let _ = subscription.take(&bytes, Layout::Cdr, &"a peer of Zenoh");
            }
        };
        let declare = move || session.declare_subscriber(key(topic)).callback(take).wait();
        let subscriber = done(within(THREAD, PATIENCE, declare)?, &what)?;
        self.subscribers.push(subscriber);
        Ok(self)
    }
}

/// Returns Zenoh's name of a topic, which has no leading `/`.
fn key(topic: &'static str) -> &'static str {
    topic.strip_prefix('/').unwrap_or(topic)
}

fn refused(what: &str, reason: &dyn fmt::Display, advice: &'static str) -> ZenohError {
    ZenohError::Refused { what: what.to_owned(), reason: reason.to_string(), advice }
}

/// Returns the result of a call that may never return.
fn done<R>(result: Option<engine::Result<R>>, what: &str) -> Result<R, ZenohError> {
    match result {
        Some(Ok(done)) => Ok(done),
        Some(Err(error)) => Err(refused(what, &error, "the node has ended, or its name is not a valid key")),
        None => Err(ZenohError::Silent(what.to_owned())),
    }
}

impl Sink for Zenoh {
    fn name(&self) -> String {
        format!("Zenoh {}", self.name)
    }

    fn begin(&mut self, channels: &[Channel], _: Clock) -> io::Result<()> {
        let session = self.session.clone().ok_or(io::ErrorKind::NotConnected)?;
        let all = channels.to_vec();
        let declares = session.clone();
        let declare = move || {
            let publisher = |channel: &Channel| {
                let encoding = Encoding::APPLICATION_CDR.with_schema(channel.description.name());
                let publisher = declares.declare_publisher(key(channel.topic)).encoding(encoding);
                // Our queue drops messages first, and counts them. Zenoh would drop them silently.
                publisher.congestion_control(CongestionControl::Block).wait()
            };
            all.iter().map(publisher).collect::<engine::Result<Vec<_>>>()
        };
        let publishers = done(within(THREAD, PATIENCE, declare)?, "the publication of topics");
        let room = channels.iter().map(|channel| channel.capacity).sum();
        self.sending = Some(Sending::start(session, publishers.map_err(io::Error::other)?, room)?);
        Ok(())
    }

    fn write(&mut self, _: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        let sending = self.sending.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        sending.queue.try_send(Sent::new(sample)).map_err(|error| match error {
            TrySendError::Full(_) => io::ErrorKind::WouldBlock.into(),
            TrySendError::Disconnected(_) => {
                io::Error::other("Zenoh accepts no more messages, for the reason above")
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        let (sending, subscribers) = (self.sending.take(), std::mem::take(&mut self.subscribers));
        let session = self.session.take();
        let end = move || {
            let sent = sending.is_none_or(Sending::finish);
            drop(subscribers);
            session.map_or(Ok(()), |session| session.close().wait()).map(|()| sent)
        };
        match within(THREAD, PATIENCE, end)? {
            Some(Ok(true)) => Ok(()),
            Some(Ok(false)) => Err(io::Error::other("some queued messages could not be sent")),
            Some(Err(error)) => Err(io::Error::other(error.to_string())),
            None => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the node does not end because a peer is blocked",
            )),
        }
    }
}

impl fmt::Debug for Zenoh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zenoh").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A message queued for peers.
struct Sent {
    channel: usize,
    attached: [u8; ATTACHED],
    payload: Vec<u8>,
}

impl Sent {
    fn new(sample: &Sample<'_>) -> Self {
        let attached = attached(sample.time_ns, sample.sequence);
        Self { channel: sample.channel, attached, payload: sample.payload.to_vec() }
    }
}

/// Returns the attachment of a message.
fn attached(time_ns: u64, sequence: u32) -> [u8; ATTACHED] {
    let mut attached = [0; ATTACHED];
    attached[..8].copy_from_slice(&time_ns.to_le_bytes());
    attached[8..].copy_from_slice(&sequence.to_le_bytes());
    attached
}

/// The thread that waits for peers, and its queue.
struct Sending {
    queue: SyncSender<Sent>,
    /// `true` at the end if all messages were passed to Zenoh.
    went_well: Receiver<bool>,
}

impl Sending {
    fn start(session: Session, publishers: Vec<Publisher<'static>>, room: usize) -> io::Result<Self> {
        let (queue, waiting) = sync_channel(room);
        let (tell, went_well) = sync_channel(1);
        punctual::background::spawn(THREAD, move || {
            // There is no receiver if the node is dropped without an end.
            let _ = tell.send(send(&session, &publishers, &waiting));
        })?;
        Ok(Self { queue, went_well })
    }

    /// Sends queued messages, and returns `true` if all were sent.
    fn finish(self) -> bool {
        drop(self.queue);
        self.went_well.recv() == Ok(true)
    }
}

fn send(session: &Session, publishers: &[Publisher<'static>], waiting: &Receiver<Sent>) -> bool {
    let (mut peers, mut looked) = (connected(session), Instant::now());
    loop {
        match waiting.recv_timeout(CHECK_INTERVAL) {
            Ok(Sent { channel, attached, payload }) => {
                if let Err(error) = publishers[channel].put(payload).attachment(attached.as_slice()).wait() {
                    let lost = 1 + waiting.try_iter().count();
                    warn(format_args!("Zenoh: {error}; {lost} queued messages are lost"));
                    return false;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return true,
        }
        if looked.elapsed() >= CHECK_INTERVAL {
            looked = Instant::now();
            let before = std::mem::replace(&mut peers, connected(session));
            for gone in before.difference(&peers) {
                warn(format_args!("Zenoh: {gone} is no longer connected; messages in flight to it are lost"));
            }
        }
    }
}

/// Returns the connected peers, by their Zenoh IDs.
fn connected(session: &Session) -> BTreeSet<String> {
    let info = session.info();
    info.peers_zid().wait().chain(info.routers_zid().wait()).map(|id| id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_keys_without_leading_slash() {
        assert_eq!(key("/gimbal/angles"), "gimbal/angles");
    }

    #[test]
    fn attaches_time_and_number() {
        assert_eq!(attached(0x0102_0304_0506_0708, 9), [8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0]);
    }
}
