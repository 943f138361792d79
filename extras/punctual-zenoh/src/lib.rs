//! A node of Zenoh for the topics of a [`punctual_bridge::Bridge`], on this machine and others.
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

/// Whose settings the threads of Zenoh inherit.
const THREAD: &str = "punctual-zenoh";
/// How long the node may take to come up or to take leave. Zenoh itself gives a peer that stands still 5 s.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a peer to be found at the start may take.
const CONNECT_MS: u32 = 5000;
/// The longest message that is received, where no file says another. Zenoh's own bound is a gigabyte, which a peer could have allocated.
const MAX_BYTES: u32 = 1 << 20;
/// How often it is looked who is connected.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The bytes that go with each message: its time in ns since 1970 and its number.
const ATTACHED: usize = 12;

/// A node of Zenoh, which publishes the topics of a [`Bridge`](punctual_bridge::Bridge) as its
/// [`Sink`], and to which others publish: what spans machines.
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
/// let node = node.subscribe(SETPOINT.subscribe().expect("nobody else takes it"))?;
/// let bridge = Bridge::new().topic(&ANGLES).sink(node).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The topic `/angles` has the key `angles`; a message is its bytes in CDR, as ROS 2 has it, with the encoding
/// `application/cdr;geometry_msgs/msg/Vector3`. Twelve bytes are attached, little-endian: when it was released, in ns since 1970 (`u64`), and its
/// number (`u32`), which has a gap wherever something was lost on the way.
///
/// As many messages may wait for peers as in all topics together. A peer that stands still makes
/// them wait; what finds no room then is counted as
/// [`dropped`](punctual_bridge::SinkReport::dropped), and other sinks do not notice. After 5 s
/// Zenoh closes the connection to such a peer. What is on its way to a peer when either of the two
/// goes may be lost; how much only the numbers tell, but that a peer has gone is said. A program
/// whose last messages matter ends its bridge a moment after them.
///
/// Whoever reaches the endpoint can publish and subscribe, unless a [file](Self::configured) says otherwise.
pub struct Zenoh {
    session: Option<Session>,
    name: String,
    subscribers: Vec<Subscriber<()>>,
    sending: Option<Sending>,
}

/// Why there is no node, or no topic of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZenohError {
    /// Something that was asked for cannot be had.
    #[error("Zenoh: {what}: {reason}; {advice}")]
    Refused {
        /// What was to be done.
        what: String,
        /// Why it was not.
        reason: String,
        /// What helps.
        advice: &'static str,
    },
    /// It takes too long.
    #[error("Zenoh: {0} takes more than 15 s; given up")]
    Silent(String),
    /// No thread can be started.
    #[error("Zenoh: a thread cannot be started: {0}")]
    Thread(#[from] io::Error),
}

impl Zenoh {
    /// A peer to which others connect at this endpoint, `tcp/ADDRESS:PORT`. It looks for nobody, and neither encrypts nor asks who connects.
    ///
    /// Waits for it, for 15 s at most. All threads of Zenoh are ordinary ones off the CPUs of the partitions if the machine has others and the
    /// app has been started. So the place to call it is `init`. The same holds of the other constructors.
    ///
    /// # Errors
    /// [`ZenohError`]: the endpoint is none, or somebody has it.
    pub fn listen(endpoint: &str) -> Result<Self, ZenohError> {
        let advice = "tcp/ADDRESS:PORT is an endpoint, with a port that nobody else listens at";
        let what = format!("nobody can connect at {endpoint:?}");
        Self::peer(&[("listen/endpoints", endpoint)], what, advice, format!("at {endpoint}"))
    }

    /// A peer that connects to another, or to a router (`zenohd`), at this endpoint, and again whenever the connection is lost.
    ///
    /// # Errors
    /// [`ZenohError`]: the endpoint is none, or nobody answers there within 5 s.
    pub fn connect(endpoint: &str) -> Result<Self, ZenohError> {
        let advice = "tcp/ADDRESS:PORT is an endpoint, where a router or a peer has to listen already";
        let what = format!("no connection to {endpoint:?}");
        Self::peer(&[("connect/endpoints", endpoint)], what, advice, format!("with {endpoint}"))
    }

    /// A node as a file of Zenoh in JSON5 says: router, discovery, TLS and access control are its matter. Of the links, TCP is built in; a program that wants
    /// others names the crate `zenoh` in its manifest, with their features.
    ///
    /// # Errors
    /// [`ZenohError`]: the file cannot be read, or what it says not be had.
    pub fn configured(file: impl AsRef<Path>) -> Result<Self, ZenohError> {
        let file = file.as_ref();
        let what = format!("a node as {} says", file.display());
        let advice = "Zenoh's DEFAULT_CONFIG.json5 says what can stand there";
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
        // Nowhere but where it is said.
        set("listen/endpoints", "[]")?;
        set("connect/timeout_ms", &CONNECT_MS.to_string())?;
        set("connect/exit_on_failure", "true")?;
        set("transport/link/rx/max_message_size", &MAX_BYTES.to_string())?;
        for (key, endpoint) in endpoints {
            // As Rust quotes text, JSON does for whatever can be an endpoint.
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

    /// Takes the messages of this topic, of whatever node publishes it.
    ///
    /// # Errors
    /// [`ZenohError`].
    pub fn subscribe<T: Message>(mut self, subscription: Subscription<T>) -> Result<Self, ZenohError> {
        let topic = subscription.topic();
        let what = format!("the subscription to {topic}");
        let Some(session) = self.session.clone() else { return Err(ZenohError::Silent(what)) };
        // Called by one thread of Zenoh for each peer.
        let subscription = Mutex::new(subscription);
        let take = move |sample: engine::sample::Sample| {
            if sample.kind() == SampleKind::Put {
                let bytes = sample.payload().to_bytes();
                let mut subscription = subscription.lock().unwrap_or_else(PoisonError::into_inner);
                // What is not taken is counted there, and there is nobody to tell.
                let _ = subscription.take(&bytes, Layout::Cdr, &"a peer of Zenoh");
            }
        };
        let declare = move || session.declare_subscriber(key(topic)).callback(take).wait();
        let subscriber = done(within(THREAD, PATIENCE, declare)?, &what)?;
        self.subscribers.push(subscriber);
        Ok(self)
    }
}

/// What Zenoh calls a topic: it knows no `/` at the beginning.
fn key(topic: &'static str) -> &'static str {
    topic.strip_prefix('/').unwrap_or(topic)
}

fn refused(what: &str, reason: &dyn fmt::Display, advice: &'static str) -> ZenohError {
    ZenohError::Refused { what: what.to_owned(), reason: reason.to_string(), advice }
}

/// What became of a call that may never return.
fn done<R>(result: Option<engine::Result<R>>, what: &str) -> Result<R, ZenohError> {
    match result {
        Some(Ok(done)) => Ok(done),
        Some(Err(error)) => Err(refused(what, &error, "the node has ended, or its name is no key")),
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
                // What is dropped is counted before, by the queue. Zenoh would drop it unseen.
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
                io::Error::other("Zenoh takes no more messages; the reason is said above")
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
            Some(Ok(false)) => Err(io::Error::other("not all that waited could be sent")),
            Some(Err(error)) => Err(io::Error::other(error.to_string())),
            None => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "a peer stands still, and the node does not end"))
            }
        }
    }
}

impl fmt::Debug for Zenoh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zenoh").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A message as it waits for peers.
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

/// The bytes attached to a message.
fn attached(time_ns: u64, sequence: u32) -> [u8; ATTACHED] {
    let mut attached = [0; ATTACHED];
    attached[..8].copy_from_slice(&time_ns.to_le_bytes());
    attached[8..].copy_from_slice(&sequence.to_le_bytes());
    attached
}

/// The thread that waits for peers, and what waits for it.
struct Sending {
    queue: SyncSender<Sent>,
    /// Whether everything was given to Zenoh, at the end.
    went_well: Receiver<bool>,
}

impl Sending {
    fn start(session: Session, publishers: Vec<Publisher<'static>>, room: usize) -> io::Result<Self> {
        let (queue, waiting) = sync_channel(room);
        let (tell, went_well) = sync_channel(1);
        punctual::background::spawn(THREAD, move || {
            // Nobody listens if the node is dropped without an end.
            let _ = tell.send(send(&session, &publishers, &waiting));
        })?;
        Ok(Self { queue, went_well })
    }

    /// Sends what waits, and says whether everything was sent.
    fn finish(self) -> bool {
        drop(self.queue);
        self.went_well.recv() == Ok(true)
    }
}

fn send(session: &Session, publishers: &[Publisher<'static>], waiting: &Receiver<Sent>) -> bool {
    let (mut peers, mut looked) = (connected(session), Instant::now());
    loop {
        match waiting.recv_timeout(LOOK_INTERVAL) {
            Ok(Sent { channel, attached, payload }) => {
                if let Err(error) = publishers[channel].put(payload).attachment(attached.as_slice()).wait() {
                    let lost = 1 + waiting.try_iter().count();
                    warn(format_args!("Zenoh: {error}; {lost} messages that waited for peers are lost"));
                    return false;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return true,
        }
        if looked.elapsed() >= LOOK_INTERVAL {
            looked = Instant::now();
            let before = std::mem::replace(&mut peers, connected(session));
            for gone in before.difference(&peers) {
                warn(format_args!("Zenoh: {gone} is no longer connected; what was on its way there is lost"));
            }
        }
    }
}

/// Who is connected, by the names that Zenoh gives them.
fn connected(session: &Session) -> BTreeSet<String> {
    let info = session.info();
    info.peers_zid().wait().chain(info.routers_zid().wait()).map(|id| id.to_string()).collect()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_keys_without_the_first_slash() {
        assert_eq!(key("/gimbal/angles"), "gimbal/angles");
    }

    #[test]
    fn attaches_time_and_number() {
        assert_eq!(attached(0x0102_0304_0506_0708, 9), [8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0]);
    }
}
