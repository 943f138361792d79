//! The node: its publishers, subscribers and services.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::executor::block_on;
use futures::future::{Either, select};
use futures::stream::StreamExt;
use punctual_bridge::messages::rosgraph_msgs::Clock;
use punctual_bridge::transport::{Direction, OutgoingMessage, TopicInfo};
use punctual_bridge::{Message, Qos};
use punctual_transport::{
    App, AppTopic, InvalidDomain, Network, Notice, message_hash, print, restart, ros_domain, type_hash,
};
use ros2_client::dds::rustdds::no_key::DataWriter;
use ros2_client::dds::rustdds::{Timestamp, Topic};
use ros2_client::dds::{Context, Node, ServiceMapping};
use ros2_client::qos::{History, QosProfile, Reliability, WhenFull};
use ros2_client::{MessageTypeName, Name, NodeName, NodeOptions};

use crate::arguments::Arguments;
use crate::discovery::Discovery;
use crate::events::{self, EventPublisher, Events};
use crate::filter;
use crate::interfaces::Interfaces;
use crate::parameters::{self, Access, Answers};
use crate::qos::{Incompatible, offered};
use crate::raw::{Raw, Whole};
use crate::readers::Readers;
use crate::sim_time::{self, Stamped};
use crate::user_data;

/// The history depth of the services, in messages.
const SERVICE_DEPTH: usize = 64;
/// The interval at which incompatible peers are searched.
const COMPARE_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after an error of a reader.
pub(crate) const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// A node, which publishes and subscribes to the topics of an app, and serves its parameters.
///
/// The app declares the quality of service of its topics. By default, outgoing ones are reliable,
/// volatile, and keep the last 10 messages, as in rclpy. Incoming ones accept every publisher,
/// reliable and best effort (sensor data, PX4), volatile and transient local. Messages for which
/// rustdds has no room at the time are dropped and counted. Only DDS knows whether a peer has
/// received a sent message: a peer that is further behind than the depth may find a gap, which is
/// not counted.
///
/// When a network interface comes up later, as by DHCP after a boot, the node reconnects in order
/// to use it: it appears to its peers as a new one, and exchanges no messages with them until they
/// have found each other again. Local nodes (`ROS_LOCALHOST_ONLY`) do not reconnect.
pub(crate) struct Ros2 {
    // Dropped first, because they use the node.
    subscribers: Vec<Waiting<Readers>>,
    /// The subscriber of `/clock`, if the node uses simulated time.
    clock: Option<Waiting<Readers>>,
    services: Option<Waiting<Answers>>,
    events: Option<Events>,
    /// For each topic, the writer if the app publishes it.
    writers: Vec<Option<DataWriter<Whole, Raw>>>,
    stamped: Stamped,
    link: Link,
    plan: Plan,
    interfaces: Interfaces,
    incompatible: Incompatible,
    /// The time of the last search for incompatible peers.
    compared: Instant,
    /// The number of threads of rustdds that a node has.
    library_threads: usize,
    /// Another node, while a thread makes it.
    making: Option<Receiver<Result<Made, String>>>,
}

/// Everything that the node announces.
#[derive(Clone)]
struct Plan {
    node: NodeName,
    arguments: Arguments,
    discovery: Discovery,
    topics: Vec<TopicInfo>,
    services: Option<ServiceMapping>,
    access: Access,
}

/// A node as planned.
struct Made {
    link: Link,
    writers: Vec<Option<DataWriter<Whole, Raw>>>,
    /// One for each incoming topic.
    readers: Vec<Readers>,
    answers: Option<Answers>,
    events: Option<EventPublisher>,
}

impl Plan {
    fn make(&self) -> Result<Made, String> {
        let participant = self.discovery.participant().build().map_err(text)?;
        let context = Context::from_domain_participant(participant).map_err(text)?;
        let options = NodeOptions::new().enable_rosout(false).start_parameter_services(false);
        let node = context.new_node(self.node.clone(), options).map_err(|error| format!("{error:?}"))?;
        let mut link = Link { context, node };
        let answers = self
            .services
            .map(|mapping| parameters::services(&mut link.node, &self.arguments, mapping, &self.access))
            .transpose()?;
        let events = self.services.as_ref().map(|_| events::publisher(&mut link.node)).transpose()?;
        let (mut readers, mut writers) = (vec![], vec![]);
        for info in &self.topics {
            let within = |reason| format!("{}: {reason}", info.name);
            match info.direction {
                Direction::Outgoing => writers.push(Some(link.writer(info).map_err(within)?)),
                Direction::Incoming => {
                    writers.push(None);
                    readers.push(link.readers(&info.name, &info.type_name, info.qos).map_err(within)?);
                }
            }
        }
        Ok(Made { link, writers, readers, answers, events })
    }
}

/// The error of a node or of one of its topics.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ros2Error {
    /// The name is invalid.
    #[error(
        "{name:?} is not a valid node name: {reason}; pass a name of letters, digits and `_` as the second argument"
    )]
    Name { name: String, reason: String },
    /// An argument after `--ros-args` does not apply.
    #[error("--ros-args: {0}")]
    Argument(String),
    /// The domain is invalid.
    #[error(transparent)]
    Domain(#[from] InvalidDomain),
    /// The operation failed.
    #[error(
        "the node {name} in domain {domain}: {reason}; has the machine a network interface that is up, and are the ports of the domain free?"
    )]
    Refused { name: String, domain: u16, reason: String },
    /// A variable of the environment requests unsupported discovery.
    #[error("{variable} is {value:?}: {advice}")]
    Environment { variable: &'static str, value: String, advice: &'static str },
    /// The topic with the simulated time cannot be received.
    #[error("cannot subscribe to /clock: {0}; set use_sim_time to false")]
    Clock(String),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// A participant of the domain, and the node visible to others.
struct Link {
    context: Context,
    node: Node,
}

impl Network for Ros2 {
    const NAME: &'static str = "ros2";
    const OPERANDS: &'static str = "[NODE] [--ros-args ARGUMENTS]";
    const HELP: &'static str = "\
Publishes the topics of a running Punctual app as a node of ROS 2, passes messages of other nodes to
the app, and serves the app's parameters. Waits for the app, and ends with it. ROS need not be
installed.

ROS_DOMAIN_ID, ROS_LOCALHOST_ONLY, ROS_AUTOMATIC_DISCOVERY_RANGE and RMW_IMPLEMENTATION apply as for
every node. Unsupported settings, such as discovery by ROS_STATIC_PEERS, are errors.

  NODE              the name of the node, by default that of the app
  --ros-args        as for every node:
    -r FROM:=TO     another name of a topic or service; __node:=NAME, __ns:=/NAMESPACE
    -p NAME:=VALUE  use_sim_time, a parameter of the app, or qos_overrides./TOPIC.publisher.depth";
    type Options = Arguments;
    type Error = Ros2Error;

    fn options(app: &str, operands: &[String]) -> Option<Arguments> {
        match Arguments::new(app, operands) {
            Ok(arguments) => Some(arguments),
            Err(reason) => {
                print(Self::NAME, format_args!("{reason}"));
                None
            }
        }
    }

    fn connect(arguments: Arguments, app: App) -> Result<Self, Ros2Error> {
        let variable = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let name = arguments.name.clone();
        let node = NodeName::new(&arguments.namespace, &name)
            .map_err(|error| Ros2Error::Name { name: name.clone(), reason: error.to_string() })?;
        let discovery = Discovery::new(ros_domain()?, variable)?;
        let services = parameters::mapping(variable("RMW_IMPLEMENTATION").as_deref());
        if services.is_none() {
            print(Self::NAME, format_args!("serves no parameters to nodes of this RMW_IMPLEMENTATION"));
        }
        let access = Access::new(app.process);
        access.set_initial(&arguments.assignments).map_err(Ros2Error::Argument)?;
        let stamped = Stamped::new(app.topics.iter().map(|topic| &topic.info));
        let mut topics: Vec<TopicInfo> = app.topics.iter().map(|topic| topic.info.clone()).collect();
        arguments.apply(&mut topics).map_err(Ros2Error::Argument)?;
        for topic in &topics {
            match type_hash(topic) {
                Ok(hash) => user_data::announce(&topic.type_name, &hash),
                Err(error) => print(Self::NAME, format_args!("{}: no type hash: {error}", topic.name)),
            }
        }
        user_data::announce(Clock::DESCRIPTION.name(), &message_hash(Clock::DESCRIPTION));
        filter::accept_messages_of(topics.iter().map(|topic| topic.max_bytes).max().unwrap_or(0));
        let plan = Plan { node, arguments, discovery, topics, services, access };
        // Before the participant: an interface between the two is new.
        let interfaces = Interfaces::now();
        let refused = |reason| Ros2Error::Refused { name, domain: discovery.domain, reason };
        let Made { link, writers, readers, answers, events } = plan.make().map_err(refused)?;
        let incoming = app.topics.into_iter().filter(|topic| topic.info.direction == Direction::Incoming);
        let subscribe = |(AppTopic { info, publisher, .. }, readers): (AppTopic, Readers)| {
            let mut publisher = publisher;
            // The app checks and counts the messages.
            let publish = move |message: &[u8]| match &mut publisher {
                Some(publisher) => publisher.publish(message).map_err(text),
                None => Ok(()),
            };
            Waiting::start(readers, move |links| block_on(take(links, &info.name, publish)))
        };
        let subscribers = incoming.zip(readers).map(subscribe).collect::<io::Result<_>>()?;
        let serve = |links| block_on(parameters::serve_all(links));
        let services = answers.map(|answers| Waiting::start(answers, serve)).transpose()?;
        let full_name = link.node.fully_qualified_name();
        let events =
            events.map(|publisher| Events::start(publisher, plan.access.clone(), full_name)).transpose()?;
        let mut ros2 = Self {
            subscribers,
            clock: None,
            services,
            events,
            writers,
            stamped,
            link,
            plan,
            interfaces,
            incompatible: Incompatible::default(),
            compared: Instant::now(),
            library_threads: library_threads(),
            making: None,
        };
        ros2.follow_parameters()?;
        Ok(ros2)
    }

    fn publish(&mut self, message: &OutgoingMessage<'_>) -> Result<(), String> {
        let Some(Some(writer)) = self.writers.get(message.topic) else { return Ok(()) };
        let whole = Whole(self.stamped.payload(message, self.plan.access.time.now_ns()));
        writer.write(whole, Some(timestamp(message.time_ns))).map_err(text)
    }

    /// Reports incompatible peers, and joins interfaces that have come up. Restarts if rustdds has
    /// lost a thread: its threads end without a message when the kernel interrupts their wait, as
    /// after SIGSTOP and SIGCONT.
    fn check(&mut self) -> Result<(), Ros2Error> {
        if library_threads() < self.library_threads {
            restart(Self::NAME, format_args!("a thread of rustdds has ended"));
        }
        self.follow_parameters()?;
        if self.compared.elapsed() >= COMPARE_INTERVAL {
            self.compared = Instant::now();
            self.incompatible.report(&self.link.context.domain_participant(), &self.plan.topics);
        }
        let Some(making) = &self.making else { return Ok(self.follow_interfaces()?) };
        let made = match making.try_recv() {
            Ok(made) => made,
            Err(TryRecvError::Empty) => return Ok(()),
            Err(TryRecvError::Disconnected) => Err("its thread has ended".to_owned()),
        };
        self.making = None;
        match made {
            Ok(made) => self.adopt(made)?,
            // The present node remains.
            Err(reason) => print(
                Self::NAME,
                format_args!("cannot reconnect: {reason}; the node does not use the new address"),
            ),
        }
        Ok(())
    }
}

impl Ros2 {
    /// Subscribes to `/clock` exactly while the node uses simulated time.
    fn follow_parameters(&mut self) -> Result<(), Ros2Error> {
        let time = &self.plan.access.time;
        let is_used = time.now_ns().is_some();
        if is_used && self.clock.is_none() {
            let (time, topic) = (time.clone(), self.plan.arguments.topic(sim_time::TOPIC));
            let readers = self.link.readers(&topic, Clock::DESCRIPTION.name(), sim_time::QOS);
            let accept = move |message: &[u8]| time.accept(message);
            let follow = move |links| block_on(take(links, &topic, accept));
            self.clock = Some(Waiting::start(readers.map_err(Ros2Error::Clock)?, follow)?);
        } else if !is_used {
            self.clock = None;
        }
        Ok(())
    }

    /// Begins to create another node if a network interface has come up, on another thread, because
    /// messages cannot wait for so long.
    fn follow_interfaces(&mut self) -> io::Result<()> {
        let appeared = self.interfaces.new_ones();
        if appeared.iter().all(|address| !self.plan.discovery.uses(*address)) {
            return Ok(());
        }
        let addresses: Vec<String> = appeared.iter().map(ToString::to_string).collect();
        let (made, making) = sync_channel(1);
        let plan = self.plan.clone();
        Builder::new().spawn(move || {
            // The app may have ended.
            let _ = made.send(plan.make());
        })?;
        self.making = Some(making);
        print(Self::NAME, format_args!("reconnects, to use the new address {}", addresses.join(", ")));
        Ok(())
    }

    /// Replaces the node.
    fn adopt(&mut self, made: Made) -> io::Result<()> {
        let Made { link, writers, readers, answers, events } = made;
        // It subscribes on the new link.
        self.clock = None;
        for (subscriber, readers) in self.subscribers.iter().zip(readers) {
            subscriber.renew(readers);
        }
        if let (Some(services), Some(answers)) = (&self.services, answers) {
            services.renew(answers);
        }
        if let (Some(present), Some(publisher)) = (&self.events, events) {
            present.renew(publisher);
        }
        let old = (std::mem::replace(&mut self.writers, writers), std::mem::replace(&mut self.link, link));
        // Dropping it takes long, since it notifies its peers.
        Builder::new().spawn(move || drop(old)).map(drop)
    }
}

/// Returns the number of threads of rustdds in this process; 0 if the kernel does not list them.
fn library_threads() -> usize {
    let names = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let names = names.filter_map(|task| fs::read(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with(b"RustDDS")).count()
}

/// The policies of services: reliable, without waiting for peers.
pub(crate) fn service_qos() -> QosProfile {
    QosProfile {
        reliability: Reliability::Reliable { when_full: WhenFull::Fail },
        history: History::KeepLast { depth: SERVICE_DEPTH },
        ..QosProfile::publisher_default()
    }
}

impl Link {
    /// Returns the DDS topic.
    fn topic(&self, name: &str, type_name: &str, qos: Qos) -> Result<Topic, String> {
        let (package, kind) = type_name.split_once("/msg/").ok_or("the message has no package")?;
        let name = Name::parse(name).map_err(text)?;
        let qos = QosProfile::from(&offered(qos));
        self.node.create_topic(&name, MessageTypeName::new(package, kind), &qos).map_err(text)
    }

    fn readers(&self, name: &str, type_name: &str, qos: Qos) -> Result<Readers, String> {
        Readers::new(self.context.domain_participant(), &self.topic(name, type_name, qos)?, qos)
    }

    fn writer(&self, info: &TopicInfo) -> Result<DataWriter<Whole, Raw>, String> {
        let (topic, qos) = (self.topic(&info.name, &info.type_name, info.qos)?, offered(info.qos));
        let all = self.context.domain_participant().create_publisher(&qos).map_err(text)?;
        all.create_datawriter_no_key::<Whole, Raw>(&topic, Some(qos)).map_err(text)
    }
}

pub(crate) fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Converts a time to the format of DDS: seconds since 1970, and a fraction in units of 2⁻³² s.
fn timestamp(time_ns: u64) -> Timestamp {
    const NANOS: u64 = 1_000_000_000;
    Timestamp::from_ticks(((time_ns / NANOS) << 32) | (((time_ns % NANOS) << 32) / NANOS))
}

/// A thread that waits for messages on the newest `L`, and ends when this is dropped.
struct Waiting<L> {
    links: Option<UnboundedSender<L>>,
    thread: Option<JoinHandle<()>>,
}

impl<L: Send + 'static> Waiting<L> {
    /// Starts `wait` on a thread, with `first` in the channel. It must return when the channel is
    /// closed.
    fn start(first: L, wait: impl FnOnce(UnboundedReceiver<L>) + Send + 'static) -> io::Result<Self> {
        let (links, newest) = unbounded();
        let thread = Builder::new().spawn(move || wait(newest))?;
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
            // A panic has ended the process.
            let _ = thread.join();
        }
    }
}

/// Passes messages from the newest readers to `accept` until there are no further readers.
async fn take(
    mut links: UnboundedReceiver<Readers>,
    topic: &str,
    mut accept: impl FnMut(&[u8]) -> Result<(), String>,
) {
    let mut notice = Notice::new(Ros2::NAME);
    let mut newest = links.next().await;
    while let Some(readers) = newest {
        let messages = readers.messages();
        futures::pin_mut!(messages);
        newest = loop {
            match select(links.next(), messages.next()).await {
                Either::Left((newest, _)) => break newest,
                Either::Right((None, links)) => break links.await,
                Either::Right((Some(Ok((sender, message))), _)) => {
                    if let Err(error) = accept(&message.0) {
                        notice.add(format_args!("{topic}: {:?}: {error}", sender.prefix));
                    }
                }
                Either::Right((Some(Err(error)), _)) => {
                    notice.add(format_args!("{topic}: cannot receive: {error}"));
                    thread::sleep(ERROR_PAUSE);
                }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_in_fractions_of_second() {
        assert_eq!(timestamp(3_500_000_000).to_ticks(), (3 << 32) + (1 << 31));
    }
}
