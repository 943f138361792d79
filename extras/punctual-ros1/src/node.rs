//! The node: its publishers and subscribers.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use punctual_bridge::message::{Description, ParseError, pack, parse};
use punctual_bridge::transport::{
    Attachment, Direction, IncomingPublisher, OutgoingMessage, TopicInfo, within,
};
use rosrust::api::Ros;
use rosrust::{Publisher, RawMessage, RawMessageDescription, RosMsg, Subscriber};

use crate::description::{definition, md5sum, type_name};

/// The time limit for the master's answer.
const MASTER_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of messages that wait for a peer, for each topic.
const QUEUE: usize = 64;
/// The interval of messages about continuing failures.
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);

/// A registered node.
pub(crate) struct Node {
    /// The publisher of each topic of the app, if the app publishes it.
    publishers: Vec<Option<(Publisher<RawMessage>, &'static Description)>>,
    /// Unsubscribe when they are dropped.
    _subscribers: Vec<Subscriber>,
    ros: Arc<Ros>,
    notice: Notice,
}

/// The error of a node or of one of its topics.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// There is no master, or it rejects the request.
    #[error("{what}: {reason}; is a master at {master} (`roscore`, ROS_MASTER_URI)?")]
    Refused { what: String, reason: String, master: String },
    /// The master does not answer.
    #[error("{what}: the master at {master} does not answer")]
    Silent { what: String, master: String },
    /// The app has more incoming topics than this program supports.
    #[error("the app receives {0} topics, and this program supports {MAX_INCOMING}")]
    TooManyTopics(usize),
    /// The type of a topic cannot be parsed.
    #[error("{topic}: {error}")]
    Type { topic: String, error: ParseError },
    /// Another program has shut the node down.
    #[error(
        "the node was shut down, by `rosnode kill` or by another node of the same name; start this program again"
    )]
    ShutDown,
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

impl Node {
    /// Registers with the master, and publishes and subscribes to the topics of the app.
    pub(crate) fn connect(name: &str, app: &mut Attachment) -> Result<Self, NodeError> {
        let own = name.to_owned();
        let ros = Arc::new(ask(app, format!("the node {name}"), move || Ros::new(&own))?);
        let topics = app.topics().to_vec();
        let count = topics.iter().filter(|topic| topic.direction == Direction::Incoming).count();
        if count > MAX_INCOMING {
            return Err(NodeError::TooManyTopics(count));
        }
        app.publish_packed();
        let (mut publishers, mut subscribers) = (vec![], vec![]);
        for topic in topics {
            let TopicInfo { name, type_name, definition, direction, .. } = &topic;
            let described = parse(type_name, definition);
            let described = described.map_err(|error| NodeError::Type { topic: name.clone(), error })?;
            publishers.push(match direction {
                Direction::Outgoing => Some((publish(app, &ros, name, described)?, described)),
                Direction::Incoming => {
                    if let Some(publisher) = app.publisher(name) {
                        let slot = subscribers.len();
                        subscribers.push(subscribe(app, &ros, name, described, slot, publisher)?);
                    }
                    None
                }
            });
        }
        Ok(Self { publishers, _subscribers: subscribers, ros, notice: Notice::default() })
    }

    /// Publishes a message of the app, if any node subscribes to its topic.
    pub(crate) fn publish(&mut self, message: &OutgoingMessage<'_>) {
        let Some(Some((publisher, description))) = self.publishers.get(message.topic) else { return };
        if publisher.subscriber_count() == 0 {
            return;
        }
        let packed = pack(description, message.payload, message.sequence);
        if let Err(error) = publisher.send(RawMessage(packed)) {
            self.notice.add(&format!("a message was not published: {error}"));
        }
    }

    /// Returns an error if another program has shut the node down.
    pub(crate) fn check(&self) -> Result<(), NodeError> {
        if self.ros.is_ok() { Ok(()) } else { Err(NodeError::ShutDown) }
    }

    /// Unregisters everything. Waits for the master for at most 5 s.
    pub(crate) fn leave(self) {
        // Publishers, subscribers and the node unregister when they are dropped.
        if !matches!(within("ros1-leave", MASTER_TIMEOUT, move || drop(self)), Ok(Some(()))) {
            eprintln!("punctual-ros1: the master does not confirm the end of the node");
        }
    }
}

/// Runs a request to the master, for which the app sees that this transport is alive.
fn ask<R: Send + 'static>(
    app: &Attachment,
    what: String,
    request: impl FnOnce() -> rosrust::error::Result<R> + Send + 'static,
) -> Result<R, NodeError> {
    app.beat();
    let master = rosrust::api::resolve::master();
    match within("ros1-request", MASTER_TIMEOUT, request)? {
        Some(Ok(result)) => Ok(result),
        Some(Err(error)) => {
            let reasons: Vec<String> = error.iter().map(ToString::to_string).collect();
            Err(NodeError::Refused { what, reason: reasons.join(": "), master })
        }
        None => Err(NodeError::Silent { what, master }),
    }
}

fn publish(
    app: &Attachment,
    ros: &Arc<Ros>,
    topic: &str,
    described: &'static Description,
) -> Result<Publisher<RawMessage>, NodeError> {
    let description = RawMessageDescription {
        msg_definition: definition(described),
        md5sum: md5sum(described),
        msg_type: type_name(described),
    };
    let (ros, topic) = (Arc::clone(ros), topic.to_owned());
    let what = format!("the publication of {topic}");
    ask(app, what, move || ros.publish_with_description::<RawMessage>(&topic, QUEUE, description))
}

/// The maximum number of topics that the app receives: see [`Bytes`].
const MAX_INCOMING: usize = 16;

/// The types of the topics that the app receives.
static TYPES: [OnceLock<&'static Description>; MAX_INCOMING] = [const { OnceLock::new() }; MAX_INCOMING];

/// The bytes of a message of the type `TYPES[SLOT]`.
///
/// rosrust compares the type and the sum of a publisher with those of a Rust type. The types of an
/// app are known only at run time, so there is one Rust type for each place in a table.
#[derive(Debug, Clone, Default, PartialEq)]
struct Bytes<const SLOT: usize>(Vec<u8>);

impl<const SLOT: usize> Bytes<SLOT> {
    fn describe(text: fn(&'static Description) -> String) -> String {
        TYPES[SLOT].get().map(|description| text(description)).unwrap_or_default()
    }
}

impl<const SLOT: usize> RosMsg for Bytes<SLOT> {
    fn encode<W: io::Write>(&self, mut to: W) -> io::Result<()> {
        to.write_all(&self.0)
    }

    fn decode<R: io::Read>(mut from: R) -> io::Result<Self> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl<const SLOT: usize> rosrust::Message for Bytes<SLOT> {
    fn msg_definition() -> String {
        Self::describe(definition)
    }

    fn md5sum() -> String {
        Self::describe(md5sum)
    }

    fn msg_type() -> String {
        Self::describe(type_name)
    }
}

/// Subscribes to a topic as the type in this slot of the table.
fn subscribe(
    app: &Attachment,
    ros: &Arc<Ros>,
    topic: &str,
    described: &'static Description,
    slot: usize,
    publisher: IncomingPublisher,
) -> Result<Subscriber, NodeError> {
    // There is one node in a process, so the slot is free.
    let _ = TYPES[slot].set(described);
    let (ros, topic) = (Arc::clone(ros), topic.to_owned());
    let what = format!("the subscription to {topic}");
    let forward = Forward { topic: topic.clone(), publisher, notice: Notice::default() };
    macro_rules! subscribe_as {
        ($($slot:literal)*) => {
            match slot {
                $($slot => ros.subscribe_with::<Bytes<$slot>, _>(&topic, QUEUE, forward),)*
                _ => unreachable!("`Node::connect` has counted the topics"),
            }
        };
    }
    ask(app, what, move || subscribe_as!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15))
}

/// Passes the messages of a topic to the app, which checks and counts them.
struct Forward {
    topic: String,
    publisher: IncomingPublisher,
    notice: Notice,
}

impl<const SLOT: usize> rosrust::SubscriptionHandler<Bytes<SLOT>> for Forward {
    fn connection(&mut self, _: HashMap<String, String>) {}

    fn message(&mut self, message: Bytes<SLOT>, sender: &str) {
        if let Err(error) = self.publisher.publish(&message.0) {
            self.notice.add(&format!("{}: {sender}: {error}", self.topic));
        }
    }
}

/// Prints failures, at most once per second, with their number.
#[derive(Default)]
struct Notice {
    count: u64,
    told: Option<Instant>,
}

impl Notice {
    fn add(&mut self, text: &str) {
        self.count += 1;
        if self.told.is_none_or(|told| told.elapsed() >= NOTICE_INTERVAL) {
            self.told = Some(Instant::now());
            eprintln!("punctual-ros1: {text} ({} such failures so far)", self.count);
        }
    }
}
