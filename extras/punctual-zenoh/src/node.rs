//! The node: its publishers and subscribers.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use punctual_bridge::transport::{Direction, OutgoingMessage};
use punctual_transport::{App, Network, Notice, node_name, print};
use zenoh::bytes::Encoding;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::SampleKind;
use zenoh::{Config, Session, Wait};

use crate::rmw::{self, Ros};

/// The endpoint without options.
const DEFAULT_ENDPOINT: &str = "tcp/127.0.0.1:7447";
/// The time limit for connecting to a peer at the start.
const CONNECT_MS: u32 = 5000;
/// The maximum length of a received message, unless a file sets another. Zenoh's own bound is a
/// gigabyte, which a peer could make it allocate.
const MAX_BYTES: u32 = 1 << 20;
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
/// A blocked peer blocks this process. The app reports this, and counts the messages that it
/// overwrites in that time. After 5 s Zenoh closes the connection to such a peer. Messages in
/// flight may be lost when either side ends; only the sequence numbers show how many.
pub(crate) struct Zenoh {
    _subscribers: Vec<Subscriber<()>>,
    /// With `--ros`, the announcements of the node and of its topics.
    _tokens: Vec<LivelinessToken>,
    /// For each topic, the publisher if the app publishes it, and with `--ros` its token.
    publishers: Vec<Option<(Publisher<'static>, Option<String>)>>,
    session: Session,
    /// The IDs of the connected peers.
    peers: BTreeSet<String>,
}

/// The operands.
pub(crate) struct Options {
    place: Place,
    /// The name of the node of ROS, if the node is one.
    ros: Option<String>,
}

/// The place of the node in the network.
pub(crate) enum Place {
    Listen(String),
    Connect(String),
    Configured(String),
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
    fn new(what: &str, reason: &dyn fmt::Display, advice: &'static str) -> Self {
        Self { what: what.to_owned(), reason: reason.to_string(), advice }
    }
}

impl Place {
    fn session(&self) -> Result<Session, ZenohError> {
        let (what, advice) = match self {
            Self::Listen(endpoint) => (
                format!("cannot listen at {endpoint:?}"),
                "an endpoint is tcp/ADDRESS:PORT, with a port that is not in use",
            ),
            Self::Connect(endpoint) => (
                format!("no connection to {endpoint:?}"),
                "an endpoint is tcp/ADDRESS:PORT, where a router or a peer must already listen",
            ),
            Self::Configured(file) => {
                (format!("a node configured by {file}"), "see Zenoh's DEFAULT_CONFIG.json5 for the settings")
            }
        };
        let config = match self {
            Self::Listen(endpoint) => peer("listen/endpoints", endpoint),
            Self::Connect(endpoint) => peer("connect/endpoints", endpoint),
            Self::Configured(file) => Config::from_file(file),
        };
        let session = config.and_then(|config| zenoh::open(config).wait());
        session.map_err(|error| ZenohError::new(&what, &error, advice))
    }
}

/// Returns the configuration of a peer without discovery, encryption and authentication.
fn peer(key: &str, endpoint: &str) -> zenoh::Result<Config> {
    let mut config = Config::default();
    // For all characters of endpoints, quoting in Rust is the same as in JSON.
    let endpoints = format!("[{endpoint:?}]");
    for (key, value) in [
        ("mode", "\"peer\""),
        ("scouting/multicast/enabled", "false"),
        // Listens only where requested.
        ("listen/endpoints", "[]"),
        ("connect/timeout_ms", &CONNECT_MS.to_string()),
        ("connect/exit_on_failure", "true"),
        ("transport/link/rx/max_message_size", &MAX_BYTES.to_string()),
        (key, &endpoints),
    ] {
        config.insert_json5(key, value)?;
    }
    Ok(config)
}

impl Network for Zenoh {
    const NAME: &'static str = "zenoh";
    const OPERANDS: &'static str = "[--ros] [--listen ENDPOINT | --connect ENDPOINT | --config FILE]";
    const HELP: &'static str = "\
Publishes the topics of a running Punctual app as a node of Zenoh, and passes messages of other nodes
to the app. Waits for the app, and ends with it. An endpoint is tcp/ADDRESS:PORT.

  --ros               keys, type hashes and announcements of rmw_zenoh_cpp, in the domain of
                      ROS_DOMAIN_ID; connects to the router at tcp/127.0.0.1:7447 by default
  --listen ENDPOINT   where peers connect, tcp/127.0.0.1:7447 by default: without discovery,
                      encryption and authentication
  --connect ENDPOINT  a peer or router (zenohd) to connect to; reconnects after a loss
  --config FILE       a configuration of Zenoh in JSON5: router, discovery, TLS, access control";
    type Options = Options;
    type Error = ZenohError;

    fn options(app: &str, operands: &[String]) -> Option<Options> {
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        let (is_ros, operands) = match operands[..] {
            ["--ros", ref rest @ ..] => (true, rest),
            ref all => (false, all),
        };
        let place = match *operands {
            [] if is_ros => Place::Connect(DEFAULT_ENDPOINT.to_owned()),
            [] => Place::Listen(DEFAULT_ENDPOINT.to_owned()),
            ["--listen", endpoint] => Place::Listen(endpoint.to_owned()),
            ["--connect", endpoint] => Place::Connect(endpoint.to_owned()),
            ["--config", file] => Place::Configured(file.to_owned()),
            _ => return None,
        };
        Some(Options { place, ros: is_ros.then(|| node_name(app)) })
    }

    fn connect(Options { place, ros }: Options, app: App) -> Result<Self, ZenohError> {
        let domain = std::env::var_os("ROS_DOMAIN_ID").map(|value| value.to_string_lossy().into_owned());
        let ros = ros.map(|node| Ros::new(node, domain.as_deref())).transpose();
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
                    let publisher = session.declare_publisher(key.clone()).encoding(encoding);
                    // The app's ring drops messages first, and counts them. Zenoh would drop them
                    // silently.
                    let publisher = publisher.congestion_control(CongestionControl::Block);
                    Some((publisher.wait().map_err(explain)?, token))
                }
                Direction::Incoming => None,
            });
            if let Some(publisher) = topic.publisher {
                // Called by one thread of Zenoh per peer.
                let end = Mutex::new((publisher, Notice::new(Self::NAME)));
                let topic = name.clone();
                let take = move |sample: zenoh::sample::Sample| {
                    let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
                    let (publisher, notice) = &mut *end;
                    if sample.kind() == SampleKind::Put
                        && let Err(error) = publisher.publish(&sample.payload().to_bytes())
                    {
                        notice.add(format_args!("{topic}: {error}"));
                    }
                };
                subscribers.push(session.declare_subscriber(key).callback(take).wait().map_err(explain)?);
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
        let put = publisher.put(message.payload.to_vec()).attachment(attached);
        put.wait().map_err(|error| error.to_string())
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
    fn accepts_one_place() {
        let place = |operands: &[&str]| {
            let operands: Vec<String> = operands.iter().map(|&operand| operand.to_owned()).collect();
            let Options { place, ros } = Zenoh::options("app", &operands)?;
            let ros = ros.map_or_else(String::new, |node| format!("{node} "));
            match place {
                Place::Listen(endpoint) => Some(format!("{ros}at {endpoint}")),
                Place::Connect(endpoint) => Some(format!("{ros}to {endpoint}")),
                Place::Configured(file) => Some(format!("{ros}by {file}")),
            }
        };
        assert_eq!(place(&[]).unwrap(), "at tcp/127.0.0.1:7447");
        assert_eq!(place(&["--ros"]).unwrap(), "app to tcp/127.0.0.1:7447");
        assert_eq!(place(&["--ros", "--listen", "tcp/[::]:1"]).unwrap(), "app at tcp/[::]:1");
        assert_eq!(place(&["--listen", "tcp/[::]:1"]).unwrap(), "at tcp/[::]:1");
        assert_eq!(place(&["--connect", "tcp/10.0.0.2:1"]).unwrap(), "to tcp/10.0.0.2:1");
        assert_eq!(place(&["--config", "node.json5"]).unwrap(), "by node.json5");
        for wrong in [&["tcp/[::]:1"][..], &["--listen"], &["--listen", "a", "--connect", "b"]] {
            assert_eq!(place(wrong), None, "{wrong:?}");
        }
    }
}
