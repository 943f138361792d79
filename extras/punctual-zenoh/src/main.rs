//! A node of Zenoh for the topics of a Punctual app: a separate process, which attaches to the app.
//!
//! ```text punctual-zenoh APP [--ros] [--listen ENDPOINT | --connect ENDPOINT | --config FILE]
//! [--tls-ca FILE] ... ```

mod place;
mod rmw;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use punctual_bridge::transport::{Direction, OutgoingMessage};
use punctual_bridge::{Durability, Qos};
use punctual_transport::{App, Network, Notice, node_name, print, ros_domain};
use zenoh::bytes::Encoding;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::{Sample, SampleKind};
use zenoh::{Session, Wait};
use zenoh_ext::{
    AdvancedPublisher, AdvancedPublisherBuilderExt, AdvancedSubscriber, AdvancedSubscriberBuilderExt,
    CacheConfig, HistoryConfig, MissDetectionConfig,
};

use crate::place::Place;
use crate::rmw::Ros;

fn main() -> std::process::ExitCode {
    punctual_transport::run::<Zenoh>()
}

/// The size of each message's attachment: its time in ns since 1970 and its number.
const ATTACHED: usize = 12;

/// A node, which publishes and subscribes to the topics of an app.
///
/// The topic `/angles` has the key `angles`; a message consists of its bytes in CDR, as in ROS 2,
/// with the encoding `application/cdr;geometry_msgs/msg/Vector3`. Its attachment has twelve bytes,
/// little-endian: the release, in ns since 1970 (`u64`), and the sequence number (`u32`), which has
/// a gap where messages were lost. With `--ros`, keys, attachments and tokens are those of
/// `rmw_zenoh_cpp`.
///
/// A transient-local topic keeps as many messages as its depth for subscribers that join later, and
/// requests such messages of its publishers, as `zenoh_ext` and `rmw_zenoh_cpp` do.
///
/// A blocked peer blocks this process. The app reports this, and counts the messages that it
/// overwrites in that time. After 5 s Zenoh closes the connection to such a peer. Messages in
/// flight may be lost when either side ends; only the sequence numbers show how many.
pub(crate) struct Zenoh {
    _subscribers: Vec<Receiver>,
    /// With `--ros`, the announcements of the node and of its topics.
    _tokens: Vec<LivelinessToken>,
    /// For each topic, the publisher if the app publishes it, and with `--ros` its token.
    publishers: Vec<Option<(Sender, Option<String>)>>,
    session: Session,
    /// The IDs of the connected peers.
    peers: BTreeSet<String>,
}

/// The publisher of a topic.
enum Sender {
    Volatile(Publisher<'static>),
    TransientLocal(AdvancedPublisher<'static>),
}

/// The subscriber of a topic. Dropping it ends the subscription.
#[expect(dead_code, reason = "the subscribers are only dropped")]
enum Receiver {
    Volatile(Subscriber<()>),
    TransientLocal(AdvancedSubscriber<()>),
}

impl Sender {
    fn new(session: &Session, key: String, encoding: Encoding, qos: Qos) -> zenoh::Result<Self> {
        // The app's ring drops messages first, and counts them. Zenoh would drop them silently.
        let publisher = session.declare_publisher(key).encoding(encoding);
        let publisher = publisher.congestion_control(CongestionControl::Block);
        match qos.durability {
            Durability::Volatile => publisher.wait().map(Self::Volatile),
            Durability::TransientLocal => publisher
                .cache(CacheConfig::default().max_samples(qos.depth as usize))
                // Numbers the messages, by which a subscriber recognizes those it has received.
                .sample_miss_detection(MissDetectionConfig::default())
                .publisher_detection()
                .wait()
                .map(Self::TransientLocal),
        }
    }

    fn put(&self, payload: Vec<u8>, attached: Vec<u8>) -> zenoh::Result<()> {
        match self {
            Self::Volatile(publisher) => publisher.put(payload).attachment(attached).wait(),
            Self::TransientLocal(publisher) => publisher.put(payload).attachment(attached).wait(),
        }
    }
}

impl Receiver {
    fn new(
        session: &Session,
        key: String,
        qos: Qos,
        take: impl Fn(Sample) + Send + Sync + 'static,
    ) -> zenoh::Result<Self> {
        let subscriber = session.declare_subscriber(key).callback(take);
        match qos.durability {
            Durability::Volatile => subscriber.wait().map(Self::Volatile),
            Durability::TransientLocal => {
                let history = HistoryConfig::default().detect_late_publishers();
                let subscriber = subscriber.history(history.max_samples(qos.depth as usize));
                subscriber.wait().map(Self::TransientLocal)
            }
        }
    }
}

/// The operands.
pub(crate) struct Options {
    place: Place,
    /// The name of the node of ROS, if the node is one.
    ros: Option<String>,
}

/// The error of a node or of one of its topics.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}; {advice}")]
pub(crate) struct ZenohError {
    what: String,
    reason: String,
    advice: &'static str,
}

impl ZenohError {
    pub(crate) fn new(what: &str, reason: &dyn fmt::Display, advice: &'static str) -> Self {
        Self { what: what.to_owned(), reason: reason.to_string(), advice }
    }
}

impl Network for Zenoh {
    const NAME: &'static str = "zenoh";
    const OPERANDS: &'static str =
        "[--ros] [--listen ENDPOINT | --connect ENDPOINT | --config FILE] [--tls-ca FILE] ...";
    const HELP: &'static str = "\
Publishes the topics of a running Punctual app as a node of Zenoh, and passes messages of other nodes
to the app. Waits for the app, and ends with it. An endpoint is tcp/ADDRESS:PORT or tls/HOST:PORT.

  --ros               keys, type hashes and announcements of rmw_zenoh_cpp, in the domain of
                      ROS_DOMAIN_ID; connects to the router at tcp/127.0.0.1:7447 by default
  --listen ENDPOINT   where peers connect, tcp/127.0.0.1:7447 by default: without discovery,
                      encryption and authentication
  --connect ENDPOINT  a peer or router (zenohd) to connect to; reconnects after a loss
  --config FILE       a configuration of Zenoh in JSON5: router, discovery, access control
  --tls-ca FILE       for tls/: the certificate of the authority that has signed those of the peers
  --tls-cert FILE     for tls/: the certificate of this node; required by --listen
  --tls-key FILE      for tls/: its private key. With all three, both sides must have certificates";
    type Options = Options;
    type Error = ZenohError;

    fn options(app: &str, operands: &[String]) -> Option<Options> {
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        let (is_ros, operands) = match operands[..] {
            ["--ros", ..] => (true, &operands[1..]),
            _ => (false, &operands[..]),
        };
        let place = Place::new(operands, is_ros)?;
        Some(Options { place, ros: is_ros.then(|| node_name(app)) })
    }

    fn connect(Options { place, ros }: Options, app: App) -> Result<Self, ZenohError> {
        let ros = ros.map(|node| ros_domain().map(|domain| Ros { domain, node })).transpose();
        let ros = ros.map_err(|error| ZenohError::new("--ros", &error, "unset the variable"))?;
        let session = place.session()?;
        let id = session.zid().to_string();
        let announce = |token: &str| {
            let declared = session.liveliness().declare_token(token.to_owned()).wait();
            declared.map_err(|error| ZenohError::new(token, &error, "the node cannot be announced"))
        };
        let (mut publishers, mut subscribers, mut tokens) = (vec![], vec![], vec![]);
        if let Some(ros) = &ros {
            tokens.push(announce(&ros.token(&id))?);
        }
        for (index, topic) in app.topics.into_iter().enumerate() {
            let (name, mut key) = (topic.info.name.clone(), key(&topic.info.name).to_owned());
            let explain = |error| ZenohError::new(&name, &error, "its name is not a valid key of Zenoh");
            let mut token = None;
            if let Some(ros) = &ros {
                let names = ros
                    .names(&id, index, &topic.info)
                    .map_err(|error| ZenohError::new(&name, &error, "its type cannot be announced to ROS"))?;
                tokens.push(announce(&names.token)?);
                (key, token) = (names.key, Some(names.token));
            }
            publishers.push(match topic.info.direction {
                Direction::Outgoing => {
                    let encoding = Encoding::APPLICATION_CDR.with_schema(topic.info.type_name.as_str());
                    let sender = Sender::new(&session, key.clone(), encoding, topic.info.qos);
                    Some((sender.map_err(explain)?, token))
                }
                Direction::Incoming => None,
            });
            if let Some(publisher) = topic.publisher {
                // Called by one thread of Zenoh per peer.
                let end = Mutex::new((publisher, Notice::new(Self::NAME)));
                let (topic, qos) = (name.clone(), topic.info.qos);
                let take = move |sample: Sample| {
                    let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
                    let (publisher, notice) = &mut *end;
                    if sample.kind() == SampleKind::Put
                        && let Err(error) = publisher.publish(&sample.payload().to_bytes())
                    {
                        notice.add(format_args!("{topic}: {error}"));
                    }
                };
                subscribers.push(Receiver::new(&session, key, qos, take).map_err(explain)?);
            }
        }
        let peers = connected(&session);
        Ok(Self { _subscribers: subscribers, _tokens: tokens, publishers, session, peers })
    }

    fn publish(&mut self, message: &OutgoingMessage<'_>) -> Result<(), String> {
        let Some(Some((publisher, token))) = self.publishers.get(message.topic) else { return Ok(()) };
        let attached = match token {
            Some(token) => rmw::attached(message.time_ns, message.sequence, token),
            None => attached(message.time_ns, message.sequence).to_vec(),
        };
        publisher.put(message.payload.to_vec(), attached).map_err(|error| error.to_string())
    }

    /// Reports peers that have disconnected.
    fn check(&mut self) -> Result<(), ZenohError> {
        let before = std::mem::replace(&mut self.peers, connected(&self.session));
        for gone in before.difference(&self.peers) {
            print(
                Self::NAME,
                format_args!("{gone} is no longer connected; messages in flight to it are lost"),
            );
        }
        Ok(())
    }
}

impl Drop for Zenoh {
    fn drop(&mut self) {
        if let Err(error) = self.session.close().wait() {
            print(Self::NAME, format_args!("{error}"));
        }
    }
}

/// Returns Zenoh's name of a topic, which has no leading `/`.
fn key(topic: &str) -> &str {
    topic.strip_prefix('/').unwrap_or(topic)
}

/// Returns the attachment of a message.
fn attached(time_ns: u64, sequence: u32) -> [u8; ATTACHED] {
    let mut attached = [0; ATTACHED];
    attached[..8].copy_from_slice(&time_ns.to_le_bytes());
    attached[8..].copy_from_slice(&sequence.to_le_bytes());
    attached
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

    #[test]
    fn node_of_ros_has_the_name_of_the_app() {
        let node = |operands: &[&str]| {
            let operands: Vec<String> = operands.iter().map(|&operand| operand.to_owned()).collect();
            Zenoh::options("app", &operands).map(|options| options.ros)
        };
        assert_eq!(node(&["--ros"]), Some(Some("app".to_owned())));
        assert_eq!(node(&["--listen", "tcp/[::]:1"]), Some(None));
        assert_eq!(node(&["--listen", "tcp/[::]:1", "--ros"]), None);
    }
}
