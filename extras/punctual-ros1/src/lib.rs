//! A ROS 1 node for the topics of a [`punctual_bridge::Bridge`], based on rosrust.
//!
//! ROS 1 has reached its end of life; this crate is for machines that still run it. See [`Ros1`]
//! for an example.

mod description;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use punctual_bridge::message::{Layout, pack};
use punctual_bridge::transport::within;
use punctual_bridge::{Channel, Clock, Message, Sample, Sink, Subscription};
use rosrust::api::Ros;
use rosrust::{RawMessage, RawMessageDescription, RosMsg};

/// The name of the thread whose settings the threads of rosrust inherit.
const THREAD: &str = "punctual-ros1";
/// The time limit for the master's answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of queued messages per topic.
const QUEUE: usize = 64;

/// A ROS 1 node, which publishes the topics of a [`Bridge`](punctual_bridge::Bridge) as its
/// [`Sink`], and subscribes to topics of other nodes.
///
/// As for every node, `ROS_MASTER_URI` is the address of the master, and `ROS_IP` or `ROS_HOSTNAME`
/// is the address announced to others.
///
/// ```no_run
/// use punctual_bridge::messages::Vector3;
/// use punctual_bridge::{Bridge, Incoming, Topic};
/// use punctual_ros1::Ros1;
///
/// static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);
/// static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
///
/// let node = Ros1::connect("gimbal")?.subscribe(SETPOINT.subscribe().expect("the subscription is free"))?;
/// let bridge = Bridge::new().topic(&ANGLES).sink(node).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```text
/// rostopic pub -1 /setpoint geometry_msgs/Vector3 -- 0.5 -0.2 0
/// rostopic echo -p /angles
/// ```
///
/// If peers do not receive messages in time, the oldest ones beyond 64 per topic are lost; rosrust
/// counts neither these nor messages that arrive while 8 are already queued. A blocked peer delays
/// the other peers of its topic. If the master is restarted, the node must be restarted, too.
///
/// `rosnode kill`, or another node that registers with the same name, shuts the node down. Within
/// half a second the bridge logs this as the error of the sink, and the node unregisters its topics;
/// the report counts later messages as missed. The node does not register again, since two nodes of
/// one name would shut each other down again and again.
pub struct Ros1 {
    name: String,
    /// `None` after the end.
    link: Option<Link>,
}

/// A registered node.
struct Link {
    subscribers: Vec<rosrust::Subscriber>,
    /// One for each topic of the bridge.
    publishers: Vec<rosrust::Publisher<RawMessage>>,
    ros: Arc<Ros>,
}

/// The error of a node or of one of its topics.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ros1Error {
    /// There is no master, or it rejects the request.
    #[error("ROS 1: {what}: {reason}; is a master at {master} (`roscore`, ROS_MASTER_URI)?")]
    Refused {
        /// The operation.
        what: String,
        /// The reason.
        reason: String,
        /// The expected address of the master.
        master: String,
    },
    /// The master does not answer.
    #[error("ROS 1: {what}: the master at {master} does not answer")]
    Silent {
        /// The operation.
        what: String,
        /// The address of the master.
        master: String,
    },
    /// A thread cannot be started.
    #[error("ROS 1: a thread cannot be started: {0}")]
    Thread(#[from] io::Error),
}

impl Ros1 {
    /// Registers with the master as a node with this name.
    ///
    /// Waits for the master for at most 5 s. All threads of rosrust are ordinary ones off the CPUs
    /// of the partitions if the machine has others and the app has been started. Therefore call it
    /// in `init`.
    ///
    /// # Errors
    /// [`Ros1Error`].
    pub fn connect(name: &str) -> Result<Self, Ros1Error> {
        let own = name.to_owned();
        let ros = ask(format!("the node {name}"), move || Ros::new(&own))?;
        let link = Link { subscribers: vec![], publishers: vec![], ros: Arc::new(ros) };
        Ok(Self { name: name.to_owned(), link: Some(link) })
    }

    /// Receives the messages of this topic from any node.
    ///
    /// # Errors
    /// [`Ros1Error`].
    pub fn subscribe<T: Message>(mut self, subscription: Subscription<T>) -> Result<Self, Ros1Error> {
        let link = self.link()?;
        let (ros, topic) = (Arc::clone(&link.ros), subscription.topic());
        let handler = Taking(subscription);
        let subscribe = move || ros.subscribe_with::<Bytes<T>, _>(topic, QUEUE, handler);
        link.subscribers.push(ask(format!("the subscription to {topic}"), subscribe)?);
        Ok(self)
    }

    fn link(&mut self) -> io::Result<&mut Link> {
        self.link.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Unregisters everything. Waits for the master for at most 5 s.
    fn leave(&mut self) -> io::Result<()> {
        let Some(link) = self.link.take() else { return Ok(()) };
        // Publishers, subscribers and the node unregister with the master when they are dropped.
        match within(THREAD, PATIENCE, move || drop(link))? {
            Some(()) => Ok(()),
            None => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the master does not confirm the end of the node",
            )),
        }
    }
}

/// A bridge does not call [`Sink::end`] after an error.
impl Drop for Ros1 {
    fn drop(&mut self) {
        // The node ends with the process at the latest.
        let _ = self.leave();
    }
}

/// Runs a request to the master on an ordinary thread, whose settings the threads of rosrust
/// inherit.
fn ask<R: Send + 'static>(
    what: String,
    f: impl FnOnce() -> rosrust::error::Result<R> + Send + 'static,
) -> Result<R, Ros1Error> {
    let master = rosrust::api::resolve::master();
    match within(THREAD, PATIENCE, f)? {
        Some(Ok(result)) => Ok(result),
        Some(Err(error)) => {
            let reasons: Vec<String> = error.iter().map(ToString::to_string).collect();
            Err(Ros1Error::Refused { what, reason: reasons.join(": "), master })
        }
        None => Err(Ros1Error::Silent { what, master }),
    }
}

impl Sink for Ros1 {
    fn name(&self) -> String {
        format!("ROS 1 node {}", self.name)
    }

    fn begin(&mut self, channels: &[Channel], _: Clock) -> io::Result<()> {
        let link = self.link()?;
        for channel in channels {
            let (ros, topic) = (Arc::clone(&link.ros), channel.topic);
            let description = RawMessageDescription {
                msg_definition: description::definition(channel.description),
                md5sum: description::md5sum(channel.description),
                msg_type: description::type_name(channel.description),
            };
            let publish = move || ros.publish_with_description::<RawMessage>(topic, QUEUE, description);
            let publisher = ask(format!("the publication of {topic}"), publish).map_err(io::Error::other)?;
            link.publishers.push(publisher);
        }
        Ok(())
    }

    fn write(&mut self, channel: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        let publisher = &self.link()?.publishers[sample.channel];
        if publisher.subscriber_count() == 0 {
            return Ok(());
        }
        let packed = pack(channel.description, sample.payload, sample.sequence);
        publisher.send(RawMessage(packed)).map_err(|error| io::Error::other(error.to_string()))
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(ended) = self.link.take_if(|link| !link.ros.is_ok()) else { return Ok(()) };
        // Unregisters the rest, without waiting for the master.
        within(THREAD, Duration::ZERO, move || drop(ended))?;
        Err(io::Error::other(
            "the node was shut down, by `rosnode kill` or by another node of the same name; it neither \
             publishes nor receives; restart the program",
        ))
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        // A node that was shut down since the last call is an error, too.
        self.flush().and(self.leave())
    }
}

impl fmt::Debug for Ros1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ros1").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The bytes of a message. rosrust treats them as a `T`, whose type and sum they have.
struct Bytes<T>(Vec<u8>, PhantomData<fn() -> T>);

impl<T: Message> RosMsg for Bytes<T> {
    fn encode<W: io::Write>(&self, mut to: W) -> io::Result<()> {
        to.write_all(&self.0)
    }

    fn decode<R: io::Read>(mut from: R) -> io::Result<Self> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        Ok(Self(bytes, PhantomData))
    }
}

impl<T: Message> rosrust::Message for Bytes<T> {
    fn msg_definition() -> String {
        description::definition(T::DESCRIPTION)
    }

    fn md5sum() -> String {
        description::md5sum(T::DESCRIPTION)
    }

    fn msg_type() -> String {
        description::type_name(T::DESCRIPTION)
    }
}

impl<T> Clone for Bytes<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<T> Default for Bytes<T> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<T> PartialEq for Bytes<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> fmt::Debug for Bytes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bytes").field(&self.0).finish()
    }
}

/// The handler to which rosrust passes messages.
struct Taking<T: Message>(Subscription<T>);

impl<T: Message> rosrust::SubscriptionHandler<Bytes<T>> for Taking<T> {
    fn connection(&mut self, _: HashMap<String, String>) {}

    fn message(&mut self, message: Bytes<T>, sender: &str) {
        // The subscription counts rejected messages.
        let _ = self.0.take(&message.0, Layout::Packed, &sender);
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
