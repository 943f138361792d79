//! A ROS 2 node for the topics of a [`punctual_bridge::Bridge`] and its parameters, based on
//! ros2-client and rustdds.
//!
//! See [`Ros2`] for an example.

mod discovery;
mod interfaces;
mod parameters;
mod readers;
mod values;

use std::convert::Infallible;
use std::env;
use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::future::{Either, select};
use futures::stream::StreamExt;
use punctual::background::warn;
use punctual_bridge::message::{Description, Layout};
use punctual_bridge::parameters::ParameterAccess;
use punctual_bridge::transport::within;
use punctual_bridge::{Channel, Clock, Message, Parameters, Sample, Sink, Subscription, TuningServer};
use ros2_client::dds::rustdds::bytes::Bytes;
use ros2_client::dds::rustdds::dds::WriteError;
use ros2_client::dds::rustdds::no_key::{
    DataWriter, Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter,
};
use ros2_client::dds::rustdds::{QosPolicies, RepresentationIdentifier, Timestamp, Topic};
use ros2_client::dds::{Context, Node, ServiceMapping};
use ros2_client::qos::{History, QosProfile, Reliability, WhenFull};
use ros2_client::{MessageTypeName, Name, NodeName, NodeOptions};

use crate::discovery::Discovery;
use crate::interfaces::Interfaces;
use crate::parameters::Answers;
use crate::readers::Readers;

/// The name of the thread whose settings the threads of rustdds inherit.
const THREAD: &str = "punctual-ros2";
/// The time limit for the start and the end of the node.
const PATIENCE: Duration = Duration::from_secs(15);
/// The history depth of a topic, in messages.
const DEPTH: usize = 64;
/// The pause after an error of a reader.
const PAUSE: Duration = Duration::from_millis(50);
/// The size of the header before a message.
const HEADER_BYTES: usize = 4;

/// A ROS 2 node, which publishes the topics of a [`Bridge`](punctual_bridge::Bridge) as its
/// [`Sink`], and subscribes to topics of other nodes.
///
/// `ROS_DOMAIN_ID`, `ROS_LOCALHOST_ONLY`, `ROS_AUTOMATIC_DISCOVERY_RANGE` and `RMW_IMPLEMENTATION`
/// apply as for every node. Unsupported settings, such as discovery by `ROS_STATIC_PEERS`, are
/// errors at the start.
///
/// ```no_run
/// use punctual_bridge::messages::Vector3;
/// use punctual_bridge::{Bridge, Incoming, Topic};
/// use punctual_ros2::Ros2;
///
/// static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);
/// static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
///
/// let node = Ros2::connect("gimbal")?.subscribe(SETPOINT.subscribe().expect("the subscription is free"))?;
/// let bridge = Bridge::new().topic(&ANGLES).sink(node).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```text
/// ros2 topic pub -1 /setpoint geometry_msgs/msg/Vector3 '{x: 0.5, y: -0.2}'
/// ros2 topic echo --csv /angles
/// ```
///
/// Outgoing topics are reliable, volatile, and keep the last 64 messages: the ROS 2 defaults except
/// for the depth. Incoming ones accept every publisher, reliable and best effort (sensor data,
/// PX4), volatile and transient local. Messages for which rustdds has no room at the time are
/// dropped, and counted in the [report](punctual_bridge::SinkReport::dropped). Only DDS knows
/// whether a peer has received a sent message: a peer that is more than 64 messages behind may find
/// a gap, which is not counted.
///
/// `ros2 topic` finds the topics, `ros2 node list` the node; `ros2 node info` does not list its
/// topics.
///
/// When a network interface comes up later, as by DHCP after a boot, the node reconnects in order to
/// use it: it appears to its peers as a new one, and exchanges no messages with them until they have
/// found each other again. Local nodes (`ROS_LOCALHOST_ONLY`) do not reconnect.
///
/// With [`parameters`](Self::parameters) the node also has parameters: `ros2 param set /gimbal
/// pan.kp 1.5`.
pub struct Ros2 {
    services: Option<Waiting<Answers>>,
    /// `None` after the end.
    link: Option<Link>,
    name: String,
    writers: Vec<DataWriter<Whole, Raw>>,
    subscribers: Vec<Waiting<Readers>>,
    plan: Plan,
    interfaces: Interfaces,
    /// Another node, while a thread makes it.
    making: Option<Receiver<Result<Made, String>>>,
}

/// Everything that the node announces.
#[derive(Clone)]
struct Plan {
    node: NodeName,
    discovery: Discovery,
    channels: Vec<Channel>,
    subscriptions: Vec<(&'static str, &'static Description)>,
    services: Option<(ServiceMapping, ParameterAccess)>,
}

/// A node as planned.
struct Made {
    link: Link,
    writers: Vec<DataWriter<Whole, Raw>>,
    /// One for each subscription.
    readers: Vec<Readers>,
    answers: Option<Answers>,
}

impl Plan {
    fn link(&self) -> Result<Link, String> {
        let participant = self.discovery.participant().build().map_err(text)?;
        let context = Context::from_domain_participant(participant).map_err(text)?;
        let options = NodeOptions::new().enable_rosout(false).start_parameter_services(false);
        let node = context.new_node(self.node.clone(), options).map_err(|error| format!("{error:?}"))?;
        Ok(Link { context, node })
    }

    fn make(&self) -> Result<Made, String> {
        let mut link = self.link()?;
        let readers = self.subscriptions.iter().map(|(name, description)| link.readers(name, description));
        let readers = readers.collect::<Result<_, _>>()?;
        let answers = match &self.services {
            Some((mapping, access)) => Some(parameters::services(&mut link.node, *mapping, access.clone())?),
            None => None,
        };
        let writers = self.channels.iter().map(|channel| link.writer(channel)).collect::<Result<_, _>>()?;
        Ok(Made { link, writers, readers, answers })
    }
}

/// The error of a node or of one of its topics.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ros2Error {
    /// The name is invalid.
    #[error("ROS 2: {name:?} cannot be the name of a node: {reason}; letters, digits and `_` make one")]
    Name {
        /// The given name.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The domain is invalid.
    #[error("ROS 2: ROS_DOMAIN_ID is {0:?}; a number from 0 to 232 is needed")]
    Domain(String),
    /// The operation failed.
    #[error(
        "ROS 2: {what}: {reason}; has the machine a network interface that is up, and are the ports of the domain free?"
    )]
    Refused {
        /// The operation.
        what: String,
        /// The reason.
        reason: String,
    },
    /// The environment requests an unsupported middleware.
    #[error(
        "ROS 2: RMW_IMPLEMENTATION is {0:?}; parameters are served as rmw_fastrtps_cpp or rmw_cyclonedds_cpp has them"
    )]
    Middleware(String),
    /// A variable of the environment requests unsupported discovery.
    #[error("ROS 2: {variable} is {value:?}: {advice}")]
    Environment {
        /// The name of the variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The supported values.
        advice: &'static str,
    },
    /// The start timed out.
    #[error("ROS 2: {0} does not come up")]
    Silent(String),
    /// A thread cannot be started.
    #[error("ROS 2: a thread cannot be started: {0}")]
    Thread(#[from] io::Error),
}

/// A participant of the domain, and the node visible to others.
struct Link {
    context: Context,
    node: Node,
}

impl Ros2 {
    /// Creates a node with this name in the root namespace.
    ///
    /// Waits for it for at most 15 s. All threads of rustdds are ordinary ones off the CPUs of the
    /// partitions if the machine has others and the app has been started. Therefore call it in
    /// `init`.
    ///
    /// # Errors
    /// [`Ros2Error`].
    pub fn connect(name: &str) -> Result<Self, Ros2Error> {
        let wrong =
            |error: &dyn fmt::Display| Ros2Error::Name { name: name.into(), reason: error.to_string() };
        let node_name = NodeName::new("/", name).map_err(|error| wrong(&error))?;
        let discovery =
            Discovery::new(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))?;
        let what = format!("the node {name} in domain {}", discovery.domain);
        let plan =
            Plan { node: node_name, discovery, channels: vec![], subscriptions: vec![], services: None };
        // Before the participant: an interface between the two is new.
        let interfaces = Interfaces::now();
        let first = plan.clone();
        let link = match within(THREAD, PATIENCE, move || first.link())? {
            Some(Ok(link)) => link,
            Some(Err(reason)) => return Err(Ros2Error::Refused { what, reason }),
            None => return Err(Ros2Error::Silent(what)),
        };
        Ok(Self {
            services: None,
            link: Some(link),
            name: name.to_owned(),
            writers: vec![],
            subscribers: vec![],
            plan,
            interfaces,
            making: None,
        })
    }

    /// Receives the messages of this topic from any node.
    ///
    /// # Errors
    /// [`Ros2Error`].
    pub fn subscribe<T: Message>(mut self, mut subscription: Subscription<T>) -> Result<Self, Ros2Error> {
        let name = subscription.topic();
        let link = self.link.as_ref().ok_or_else(|| "the node has ended".to_owned());
        let readers = link.and_then(|link| link.readers(name, T::DESCRIPTION));
        let refused = |reason| Ros2Error::Refused { what: format!("the subscription to {name}"), reason };
        let readers = readers.map_err(refused)?;
        let wait = move |links| futures::executor::block_on(take(links, &mut subscription));
        self.subscribers.push(Waiting::start(readers, wait)?);
        self.plan.subscriptions.push((name, T::DESCRIPTION));
        Ok(self)
    }

    /// Serves these parameters as those of the node, in addition to the socket of `punctual set`:
    /// the services `list_parameters`, `get_parameters`, `get_parameter_types`,
    /// `describe_parameters`, `set_parameters` and `set_parameters_atomically` of `rcl_interfaces`.
    ///
    /// A floating-point number is a ROS double, any other number an integer, and each descriptor
    /// contains the range. `set_parameters_atomically` sets all parameters or none;
    /// `set_parameters` sets one after the other, as in ROS. A refusal returns its reason. After
    /// the server has ended, parameters cannot be set. Changes are not published on
    /// `/parameter_events`.
    ///
    /// The mapping of services to DDS depends on the middleware: as for other nodes,
    /// `RMW_IMPLEMENTATION` selects the one that the other nodes use, `rmw_fastrtps_cpp` (default)
    /// or `rmw_cyclonedds_cpp`.
    ///
    /// # Errors
    /// [`Ros2Error`].
    pub fn parameters<P: Parameters>(mut self, server: &TuningServer<P>) -> Result<Self, Ros2Error> {
        let mapping = parameters::mapping(env::var_os("RMW_IMPLEMENTATION"))?;
        let refused =
            |reason| Ros2Error::Refused { what: format!("the parameters of the node {}", self.name), reason };
        let link = self.link.as_mut().ok_or_else(|| refused("the node has ended".into()))?;
        let access = server.access();
        let answers = parameters::services(&mut link.node, mapping, access.clone()).map_err(refused)?;
        let wait = |links| futures::executor::block_on(parameters::serve_all(links));
        self.services = Some(Waiting::start(answers, wait)?);
        self.plan.services = Some((mapping, access));
        Ok(self)
    }

    /// Begins to make another node if a network interface has come up. Another thread makes it, since
    /// that takes longer than messages can be queued.
    fn follow_interfaces(&mut self) -> io::Result<()> {
        let appeared = self.interfaces.new_ones();
        if appeared.iter().all(|address| !self.plan.discovery.uses(*address)) {
            return Ok(());
        }
        let addresses: Vec<String> = appeared.iter().map(ToString::to_string).collect();
        let (made, making) = sync_channel(1);
        let plan = self.plan.clone();
        punctual::background::spawn(THREAD, move || {
            // The bridge may have ended.
            let _ = made.send(plan.make());
        })?;
        self.making = Some(making);
        warn(format_args!("{}: reconnects, to use the new address {}", self.name(), addresses.join(", ")));
        Ok(())
    }

    /// Replaces the node.
    fn adopt(&mut self, made: Made) -> io::Result<()> {
        let Made { link, writers, readers, answers } = made;
        for (subscriber, readers) in self.subscribers.iter().zip(readers) {
            subscriber.renew(readers);
        }
        if let (Some(services), Some(answers)) = (&self.services, answers) {
            services.renew(answers);
        }
        let old = (std::mem::replace(&mut self.writers, writers), self.link.replace(link));
        // Dropping it takes long, since it notifies its peers.
        punctual::background::spawn(THREAD, move || drop(old)).map(drop)
    }
}

/// The policies of topics and services: reliable, without waiting for peers.
fn qos() -> QosProfile {
    QosProfile {
        reliability: Reliability::Reliable { when_full: WhenFull::Fail },
        history: History::KeepLast { depth: DEPTH },
        ..QosProfile::publisher_default()
    }
}

impl Link {
    /// Returns the DDS topic, and its policies.
    fn topic(&self, name: &str, description: &Description) -> Result<(Topic, QosPolicies), String> {
        let (package, kind) = description.name().split_once("/msg/").ok_or("the message has no package")?;
        let qos = qos();
        let name = Name::parse(name).map_err(text)?;
        let topic = self.node.create_topic(&name, MessageTypeName::new(package, kind), &qos).map_err(text)?;
        Ok((topic, QosPolicies::from(&qos)))
    }

    fn readers(&self, name: &str, description: &Description) -> Result<Readers, String> {
        let (topic, qos) = self.topic(name, description)?;
        Readers::new(self.context.domain_participant(), &topic, qos)
    }

    fn writer(&self, channel: &Channel) -> Result<DataWriter<Whole, Raw>, String> {
        let (topic, qos) = self.topic(channel.topic, channel.description)?;
        let all = self.context.domain_participant().create_publisher(&qos).map_err(text)?;
        all.create_datawriter_no_key::<Whole, Raw>(&topic, Some(qos)).map_err(text)
    }
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Converts a time to the format of DDS: seconds since 1970, and a fraction in units of 2⁻³² s.
fn timestamp(time_ns: u64) -> Timestamp {
    const NANOS: u64 = 1_000_000_000;
    Timestamp::from_ticks(((time_ns / NANOS) << 32) | (((time_ns % NANOS) << 32) / NANOS))
}

impl Sink for Ros2 {
    fn name(&self) -> String {
        format!("ROS 2 node {}", self.name)
    }

    fn begin(&mut self, channels: &[Channel], _: Clock) -> io::Result<()> {
        let link = self.link.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        for channel in channels {
            let writer = link.writer(channel).map_err(|reason| {
                let what = format!("the publication of {}", channel.topic);
                io::Error::other(Ros2Error::Refused { what, reason })
            })?;
            self.writers.push(writer);
        }
        self.plan.channels = channels.to_vec();
        Ok(())
    }

    fn write(&mut self, _: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        let whole = Whole(sample.payload.to_vec());
        self.writers[sample.channel].write(whole, Some(timestamp(sample.time_ns))).map_err(
            |error| match error {
                WriteError::WouldBlock { .. } => io::ErrorKind::WouldBlock.into(),
                WriteError::Io(error) => error,
                other => io::Error::other(other.to_string()),
            },
        )
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(making) = &self.making else { return self.follow_interfaces() };
        let made = match making.try_recv() {
            Ok(made) => made,
            Err(TryRecvError::Empty) => return Ok(()),
            Err(TryRecvError::Disconnected) => Err("it panicked".to_owned()),
        };
        self.making = None;
        match made {
            Ok(made) => self.adopt(made),
            // The present node remains.
            Err(reason) => {
                warn(format_args!(
                    "{}: cannot reconnect: {reason}; it does not use the new address",
                    self.name()
                ));
                Ok(())
            }
        }
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        self.subscribers.clear();
        self.services = None;
        // They notify their peers when they are dropped.
        let ends = (std::mem::take(&mut self.writers), self.link.take());
        match within(THREAD, PATIENCE, move || drop(ends))? {
            Some(()) => Ok(()),
            None => Err(io::Error::new(io::ErrorKind::TimedOut, "the node does not end")),
        }
    }
}

impl fmt::Debug for Ros2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ros2").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A thread that waits for messages on the newest `L`, and ends when this is dropped.
struct Waiting<L> {
    links: Option<UnboundedSender<L>>,
    thread: Option<JoinHandle<()>>,
}

impl<L: Send + 'static> Waiting<L> {
    /// Starts `wait` on an ordinary thread, with `first` in the channel. It must return when the
    /// channel is closed, and must not panic.
    fn start(first: L, wait: impl FnOnce(UnboundedReceiver<L>) + Send + 'static) -> io::Result<Self> {
        let (links, newest) = unbounded();
        let thread = punctual::background::spawn(THREAD, move || wait(newest))?;
        let waiting = Self { links: Some(links), thread: Some(thread) };
        waiting.renew(first);
        Ok(waiting)
    }

    /// Replaces what the thread waits on.
    fn renew(&self, newest: L) {
        if let Some(links) = &self.links {
            // An error: the thread has ended.
            let _ = links.unbounded_send(newest);
        }
    }
}

impl<L> Drop for Waiting<L> {
    fn drop(&mut self) {
        drop(self.links.take());
        if let Some(thread) = self.thread.take() {
            // Panics of user code are caught, and the rest of the thread does not panic.
            let _ = thread.join();
        }
    }
}

/// Receives messages from the newest readers until there are no further ones.
async fn take<T: Message>(mut links: UnboundedReceiver<Readers>, subscription: &mut Subscription<T>) {
    let mut said = false;
    let mut newest = links.next().await;
    while let Some(readers) = newest {
        let messages = readers.messages();
        futures::pin_mut!(messages);
        newest = loop {
            match select(links.next(), messages.next()).await {
                Either::Left((newest, _)) => break newest,
                Either::Right((None, links)) => break links.await,
                Either::Right((Some(Ok((sender, message))), _)) => {
                    let sender = format!("{:?}", sender.prefix);
                    // The subscription counts rejected messages.
                    let _ = subscription.take(&message.0, Layout::Cdr, &sender);
                }
                Either::Right((Some(Err(error)), _)) => {
                    if !std::mem::replace(&mut said, true) {
                        warn(format_args!("{}: cannot receive: {error}", subscription.topic()));
                    }
                    thread::sleep(PAUSE);
                }
            }
        };
    }
}

/// The bytes of a message, with its header.
struct Whole(Vec<u8>);

/// Passes the bytes on unchanged.
struct Raw;

impl SerializerAdapter<Whole> for Raw {
    type Error = Infallible;

    fn output_encoding() -> RepresentationIdentifier {
        RepresentationIdentifier::CDR_LE
    }

    fn to_bytes(value: &Whole) -> Result<Bytes, Infallible> {
        // The library prepends the same header.
        Ok(Bytes::copy_from_slice(value.0.get(HEADER_BYTES..).unwrap_or_default()))
    }
}

impl DeserializerAdapter<Whole> for Raw {
    type Error = Infallible;
    type Decoded = Whole;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        // Encodings other than plain CDR are rejected, and counted, because of their header.
        const ALL: [RepresentationIdentifier; 6] = [
            RepresentationIdentifier::CDR_LE,
            RepresentationIdentifier::CDR_BE,
            RepresentationIdentifier::PL_CDR_LE,
            RepresentationIdentifier::PL_CDR_BE,
            RepresentationIdentifier::XCDR2_LE,
            RepresentationIdentifier::XCDR2_BE,
        ];
        &ALL
    }

    fn transform_decoded(decoded: Whole) -> Whole {
        decoded
    }
}

impl DefaultDecoder<Whole> for Raw {
    type Decoder = Self;

    const DECODER: Self = Self;
}

impl Clone for Raw {
    fn clone(&self) -> Self {
        Self
    }
}

impl Decode<'_, Whole> for Raw {
    type Error = Infallible;

    fn decode_bytes(self, bytes: &[u8], encoding: RepresentationIdentifier) -> Result<Whole, Infallible> {
        let second = match encoding {
            RepresentationIdentifier::CDR_BE => 0,
            RepresentationIdentifier::CDR_LE => 1,
            // Any encoding other than plain CDR.
            _ => 2,
        };
        Ok(Whole([&[0, second, 0, 0], bytes].concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_encoding() {
        use RepresentationIdentifier as Encoding;
        for (encoding, second) in [(Encoding::CDR_BE, 0), (Encoding::CDR_LE, 1), (Encoding::XCDR2_LE, 2)] {
            let Ok(Whole(bytes)) = Raw.decode_bytes(&[7], encoding);
            assert_eq!(bytes, [0, second, 0, 0, 7], "{encoding:?}");
        }
    }

    #[test]
    fn time_is_in_fractions_of_second() {
        assert_eq!(timestamp(3_500_000_000).to_ticks(), (3 << 32) + (1 << 31));
    }
}
