//! A node of ROS 1 for the topics of a Punctual app: a separate process, which attaches to the app.
//!
//! ```text
//! punctual-ros1 APP [NODE]
//! ```
//!
//! ROS 1 has reached its end of life; this program is for machines that still run it.

use std::collections::HashMap;
use std::io;
use std::sync::OnceLock;

use md5::{Digest, Md5};
use punctual_bridge::message::{Description, Dialect, ParseError, pack, parse};
use punctual_bridge::transport::{Direction, IncomingPublisher, OutgoingMessage};
use punctual_transport::{App, AppTopic, Network, Notice, node_name};
use rosrust::api::Ros;
use rosrust::{Publisher, RawMessage, RawMessageDescription, RosMsg, Subscriber};

fn main() -> std::process::ExitCode {
    punctual_transport::run::<Node>()
}

/// The number of messages that wait for a peer, for each topic.
const QUEUE: usize = 64;

/// A registered node. Dropping it unregisters everything.
struct Node {
    /// The publisher of each topic of the app, if the app publishes it.
    publishers: Vec<Option<(Publisher<RawMessage>, &'static Description)>>,
    _subscribers: Vec<Subscriber>,
    ros: Ros,
}

/// The error of a node or of one of its topics.
#[derive(Debug, thiserror::Error)]
enum NodeError {
    /// There is no master, or it rejects the request.
    #[error("{what}: {reason}; is a master at {master} (`roscore`, ROS_MASTER_URI)?")]
    Refused { what: String, reason: String, master: String },
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
}

impl Network for Node {
    const NAME: &'static str = "ros1";
    const OPERANDS: &'static str = "[NODE]";
    const HELP: &'static str = "\
Publishes the topics of a running Punctual app as a node of ROS 1, and passes messages of other
nodes to the app. Waits for the app, and ends with it.

ROS_MASTER_URI, ROS_IP and ROS_HOSTNAME have the usual meaning.

  NODE          the name of the node, by default that of the app";
    const IS_PACKED: bool = true;
    type Options = String;
    type Error = NodeError;

    fn options(app: &str, operands: &[String]) -> Option<String> {
        match operands {
            [] => Some(node_name(app)),
            [name] => Some(node_name(name)),
            _ => None,
        }
    }

    fn connect(name: String, app: App) -> Result<Self, NodeError> {
        let count = app.topics.iter().filter(|topic| topic.publisher.is_some()).count();
        if count > MAX_INCOMING {
            return Err(NodeError::TooManyTopics(count));
        }
        let ros = explain(format!("the node {name}"), Ros::new(&name))?;
        let (mut publishers, mut subscribers) = (vec![], vec![]);
        for AppTopic { info, publisher, .. } in app.topics {
            let described = parse(&info.type_name, &info.definition);
            let topic = info.name;
            let described = described.map_err(|error| NodeError::Type { topic: topic.clone(), error })?;
            publishers.push(match info.direction {
                Direction::Outgoing => Some((publish(&ros, &topic, described)?, described)),
                Direction::Incoming => None,
            });
            if let Some(publisher) = publisher {
                subscribers.push(subscribe(&ros, &topic, described, subscribers.len(), publisher)?);
            }
        }
        Ok(Self { publishers, _subscribers: subscribers, ros })
    }

    /// Publishes a message, if any node subscribes to its topic.
    fn publish(&mut self, message: &OutgoingMessage<'_>) -> Result<(), String> {
        let Some(Some((publisher, description))) = self.publishers.get(message.topic) else { return Ok(()) };
        if publisher.subscriber_count() == 0 {
            return Ok(());
        }
        let packed = pack(description, message.payload, message.sequence);
        publisher.send(RawMessage(packed)).map_err(|error| error.to_string())
    }

    /// Fails if another program has shut the node down.
    fn check(&mut self) -> Result<(), NodeError> {
        if self.ros.is_ok() { Ok(()) } else { Err(NodeError::ShutDown) }
    }
}

/// Adds the request and the master to an error.
fn explain<R>(what: String, result: rosrust::error::Result<R>) -> Result<R, NodeError> {
    result.map_err(|error| {
        let reasons: Vec<String> = error.iter().map(ToString::to_string).collect();
        NodeError::Refused { what, reason: reasons.join(": "), master: rosrust::api::resolve::master() }
    })
}

fn publish(
    ros: &Ros,
    topic: &str,
    described: &'static Description,
) -> Result<Publisher<RawMessage>, NodeError> {
    let description = RawMessageDescription {
        msg_definition: definition(described),
        md5sum: md5sum(described),
        msg_type: type_name(described),
    };
    let result = ros.publish_with_description::<RawMessage>(topic, QUEUE, description);
    explain(format!("the publication of {topic}"), result)
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
    ros: &Ros,
    topic: &str,
    described: &'static Description,
    slot: usize,
    publisher: IncomingPublisher,
) -> Result<Subscriber, NodeError> {
    // There is one node in a process, so the slot is free.
    let _ = TYPES[slot].set(described);
    let forward = Forward { topic: topic.to_owned(), publisher, notice: Notice::new(Node::NAME) };
    macro_rules! subscribe_as {
        ($($slot:literal)*) => {
            match slot {
                $($slot => ros.subscribe_with::<Bytes<$slot>, _>(topic, QUEUE, forward),)*
                _ => unreachable!("`Node::connect` has counted the topics"),
            }
        };
    }
    let result = subscribe_as!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    explain(format!("the subscription to {topic}"), result)
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
            self.notice.add(format_args!("{}: {sender}: {error}", self.topic));
        }
    }
}

/// Returns the name of a message type in ROS 1: `geometry_msgs/Vector3`.
fn type_name(description: &Description) -> String {
    description.name().replacen("/msg/", "/", 1)
}

/// Returns the definition of a message type in ROS 1.
fn definition(description: &'static Description) -> String {
    Dialect::Ros1.definition(description)
}

/// Returns the sum by which nodes check that a name means the same type to both.
fn md5sum(description: &Description) -> String {
    let digest = Md5::digest(Dialect::Ros1.lines(description, &md5sum).as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use punctual_bridge::Message;
    use punctual_bridge::messages::{Header, STANDARD, Vector3};

    use super::*;

    #[test]
    fn sums_are_those_of_ros() {
        let table = include_str!("../../support/standard_messages.txt");
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for (message, row) in STANDARD.iter().zip(rows) {
            let (name, sum) = (row.split(' ').next().unwrap(), row.rsplit(' ').next().unwrap());
            assert_eq!(message.name(), name);
            if sum != "-" {
                assert_eq!(md5sum(message), sum, "{name}");
                count += 1;
            }
        }
        assert_eq!(count, STANDARD.len() - 6);
        assert_eq!(md5sum(Header::<8>::DESCRIPTION), "2176decaecbce78abc3b96ef049fabed");
        assert_eq!(type_name(Vector3::DESCRIPTION), "geometry_msgs/Vector3");
    }
}
