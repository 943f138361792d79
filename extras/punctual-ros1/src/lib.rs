//! A node of ROS 1 for the topics of a [`punctual_bridge::Bridge`], by rosrust.
//!
//! ROS 1 has reached its end of life; this crate serves machines that still run it. See [`Ros1`]
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

/// Whose settings the threads of rosrust inherit.
const THREAD: &str = "punctual-ros1";
/// How long the master may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many messages of a topic may wait for peers.
const QUEUE: usize = 64;

/// A node of ROS 1, which publishes the topics of a [`Bridge`](punctual_bridge::Bridge) as its
/// [`Sink`], and to which others publish.
///
/// The master is that of `ROS_MASTER_URI`, the address that others are told is `ROS_IP` or `ROS_HOSTNAME`, as with every node.
///
/// ```no_run
/// use punctual_bridge::messages::Vector3;
/// use punctual_bridge::{Bridge, Incoming, Topic};
/// use punctual_ros1::Ros1;
///
/// static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);
/// static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
///
/// let node = Ros1::connect("gimbal")?.subscribe(SETPOINT.subscribe().expect("nobody else takes it"))?;
/// let bridge = Bridge::new().topic(&ANGLES).sink(node).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```text
/// rostopic pub -1 /setpoint geometry_msgs/Vector3 -- 0.5 -0.2 0
/// rostopic echo -p /angles
/// ```
///
/// What peers do not take in time is lost, the oldest first, beyond 64 messages a topic; rosrust counts neither these nor
/// messages that come while 8 wait already. A peer that stands still delays the others of its topic. After the master has been started anew, the node
/// has to be, too.
pub struct Ros1 {
    ros: Arc<Ros>,
    name: String,
    subscribers: Vec<rosrust::Subscriber>,
    /// One for each topic of the bridge.
    publishers: Vec<rosrust::Publisher<RawMessage>>,
}

/// Why there is no node, or no topic of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ros1Error {
    /// There is no master, or it wants nothing of it.
    #[error("ROS 1: {what}: {reason}; is a master at {master} (`roscore`, ROS_MASTER_URI)?")]
    Refused {
        /// What was to be done.
        what: String,
        /// Why it was not.
        reason: String,
        /// Where the master should be.
        master: String,
    },
    /// The master does not answer.
    #[error("ROS 1: {what}: the master at {master} does not answer")]
    Silent {
        /// What was to be done.
        what: String,
        /// Where the master is.
        master: String,
    },
    /// No thread can be started.
    #[error("ROS 1: a thread cannot be started: {0}")]
    Thread(#[from] io::Error),
}

impl Ros1 {
    /// Connects with the master as a node of this name.
    ///
    /// Waits for the master, for 5 s at most. All threads of rosrust are ordinary ones off the CPUs of the partitions if the machine has others and the
    /// app has been started. So the place to call it is `init`.
    ///
    /// # Errors
    /// [`Ros1Error`].
    pub fn connect(name: &str) -> Result<Self, Ros1Error> {
        let own = name.to_owned();
        let ros = ask(format!("the node {name}"), move || Ros::new(&own))?;
        Ok(Self { ros: Arc::new(ros), name: name.to_owned(), subscribers: vec![], publishers: vec![] })
    }

    /// Takes the messages of this topic, of whatever node publishes it.
    ///
    /// # Errors
    /// [`Ros1Error`].
    pub fn subscribe<T: Message>(mut self, subscription: Subscription<T>) -> Result<Self, Ros1Error> {
        let (ros, topic) = (Arc::clone(&self.ros), subscription.topic());
        let handler = Taking(subscription);
        let subscribe = move || ros.subscribe_with::<Bytes<T>, _>(topic, QUEUE, handler);
        self.subscribers.push(ask(format!("the subscription to {topic}"), subscribe)?);
        Ok(self)
    }
}

/// Has the master do something, on an ordinary thread, from which those of rosrust inherit their settings.
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
        for channel in channels {
            let (ros, topic) = (Arc::clone(&self.ros), channel.topic);
            let description = RawMessageDescription {
                msg_definition: description::definition(channel.description),
                md5sum: description::md5sum(channel.description),
                msg_type: description::type_name(channel.description),
            };
            let publish = move || ros.publish_with_description::<RawMessage>(topic, QUEUE, description);
            let publisher = ask(format!("the publication of {topic}"), publish).map_err(io::Error::other)?;
            self.publishers.push(publisher);
        }
        Ok(())
    }

    fn write(&mut self, channel: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        let publisher = &self.publishers[sample.channel];
        if publisher.subscriber_count() == 0 {
            return Ok(());
        }
        let packed = pack(channel.description, sample.payload, sample.sequence);
        publisher.send(RawMessage(packed)).map_err(|error| io::Error::other(error.to_string()))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        // They tell the master when they are dropped.
        let ends = (std::mem::take(&mut self.publishers), std::mem::take(&mut self.subscribers));
        match within(THREAD, PATIENCE, move || drop(ends))? {
            Some(()) => Ok(()),
            None => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the master does not take leave of the node"))
            }
        }
    }
}

impl fmt::Debug for Ros1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ros1").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The bytes of a message that rosrust takes for `T`, since its type and its sum are those of `T`.
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

/// What rosrust hands messages to.
struct Taking<T: Message>(Subscription<T>);

impl<T: Message> rosrust::SubscriptionHandler<Bytes<T>> for Taking<T> {
    fn connection(&mut self, _: HashMap<String, String>) {}

    fn message(&mut self, message: Bytes<T>, sender: &str) {
        // What is not taken is counted there.
        let _ = self.0.take(&message.0, Layout::Packed, &sender);
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
