//! Simulated time, as in rclcpp: if the parameter `use_sim_time` is true, the newest message on
//! `/clock` is the time of the node.
//!
//! | event | behavior |
//! |---|---|
//! | no message yet | the time is 0, as in rclcpp |
//! | a message with an earlier time, as after a reset of the simulator | it becomes the time, and is reported |
//! | the parameter is reset | the time is that of the system |
//!
//! Messages of the app have the time of their release, which the transport replaces. Times that the
//! app has set remain. An app that receives `/clock` itself is expected to set all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_bridge::message::{Description, Kind, Layout, decode, parse, replace_times};
use punctual_bridge::messages::Time;
use punctual_bridge::messages::rosgraph_msgs::Clock;
use punctual_bridge::transport::{Direction, OutgoingMessage, TopicInfo};
use punctual_bridge::{Message, Parameters, Qos};

/// The topic of simulators.
pub(crate) const TOPIC: &str = "/clock";
/// `ClockQoS` of rclcpp.
pub(crate) const QOS: Qos = Qos::SENSOR_DATA.depth(1);

/// The parameters of every node of ROS.
#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct NodeParameters {
    #[parameter(default = false)]
    pub(crate) use_sim_time: bool,
}

/// Returns `true` for the name of a parameter of every node.
pub(crate) fn is_parameter(name: &str) -> bool {
    name == "use_sim_time"
}

/// The time of the node.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimTime(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_used: AtomicBool,
    /// The simulated time in ns.
    newest_ns: AtomicU64,
}

impl SimTime {
    pub(crate) fn parameters(&self) -> NodeParameters {
        NodeParameters { use_sim_time: self.0.is_used.load(Ordering::Relaxed) }
    }

    pub(crate) fn set(&self, parameters: NodeParameters) {
        // Between two uses, messages may still arrive.
        if !self.parameters().use_sim_time {
            self.0.newest_ns.store(0, Ordering::Relaxed);
        }
        self.0.is_used.store(parameters.use_sim_time, Ordering::Relaxed);
    }

    /// Returns the simulated time in ns; `None` if the time is that of the system.
    pub(crate) fn now_ns(&self) -> Option<u64> {
        self.parameters().use_sim_time.then(|| self.0.newest_ns.load(Ordering::Relaxed))
    }

    /// Accepts a message on `/clock`.
    ///
    /// # Errors
    /// The message is malformed, or its time is earlier than the previous one.
    pub(crate) fn accept(&self, payload: &[u8]) -> Result<(), String> {
        let message: Clock = decode(payload, Layout::Cdr).map_err(|error| error.to_string())?;
        let newest_ns = message.clock.to_ns().ok_or("the time is negative")?;
        let before_ns = self.0.newest_ns.swap(newest_ns, Ordering::Relaxed);
        if newest_ns < before_ns {
            let seconds = |ns: u64| ns as f64 / 1e9;
            let (before, newest) = (seconds(before_ns), seconds(newest_ns));
            return Err(format!("the simulated time was reset from {before:.3} s to {newest:.3} s"));
        }
        Ok(())
    }
}

/// The outgoing topics with times, each with the type of its messages.
#[derive(Debug, Default)]
pub(crate) struct Stamped(Vec<Option<&'static Description>>);

impl Stamped {
    /// Finds the topics whose messages are to have simulated time.
    pub(crate) fn new<'a>(topics: impl Iterator<Item = &'a TopicInfo> + Clone) -> Self {
        let is_clock = |topic: &TopicInfo| topic.name == TOPIC && topic.direction == Direction::Incoming;
        if topics.clone().any(is_clock) {
            return Self::default();
        }
        // Without a valid definition a topic has no type hash either, which is reported.
        let description = |topic: &TopicInfo| parse(&topic.type_name, &topic.definition).ok();
        Self(topics.map(|topic| description(topic).filter(|message| has_time(message))).collect())
    }

    /// Returns the bytes of a message at this simulated time.
    pub(crate) fn payload(&self, message: &OutgoingMessage<'_>, now_ns: Option<u64>) -> Vec<u8> {
        let mut payload = message.payload.to_vec();
        if let (Some(now_ns), Some(Some(description))) = (now_ns, self.0.get(message.topic)) {
            replace_times(description, &mut payload, message.time_ns, now_ns);
        }
        payload
    }
}

/// Returns `true` for a message that contains a time, at any depth.
fn has_time(message: &'static Description) -> bool {
    fn is_in(kind: Kind) -> bool {
        match kind {
            Kind::Message(inner) => {
                inner.name() == Time::DESCRIPTION.name()
                    || inner.fields().iter().any(|field| is_in(field.kind()))
            }
            Kind::Array(element, _) | Kind::Sequence(element, _) => is_in(*element),
            _ => false,
        }
    }
    is_in(Kind::Message(message))
}

#[cfg(test)]
mod tests {
    use punctual_bridge::message::Dialect;
    use punctual_bridge::messages::geometry_msgs::Vector3;
    use punctual_bridge::messages::tf2_msgs::TFMessage;

    use super::*;

    fn clock(sec: i32, nanosec: u32) -> Vec<u8> {
        [&[0, 1, 0, 0][..], &sec.to_le_bytes(), &nanosec.to_le_bytes()].concat()
    }

    #[test]
    fn newest_message_is_the_time() {
        let time = SimTime::default();
        assert_eq!(time.now_ns(), None);
        time.set(NodeParameters { use_sim_time: true });
        assert_eq!(time.now_ns(), Some(0), "as in rclcpp before the first message");
        time.accept(&clock(3, 5)).unwrap();
        assert_eq!(time.now_ns(), Some(3_000_000_005));
        time.accept(&[0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 6]).unwrap();
        assert_eq!(time.now_ns(), Some(4_000_000_006), "big-endian");
        let reset = time.accept(&clock(1, 0)).unwrap_err();
        assert_eq!(reset, "the simulated time was reset from 4.000 s to 1.000 s");
        assert_eq!(time.now_ns(), Some(1_000_000_000));
        for invalid in [clock(-1, 0), clock(1, 0)[..11].to_vec(), vec![]] {
            assert!(time.accept(&invalid).is_err(), "{invalid:?}");
            assert_eq!(time.now_ns(), Some(1_000_000_000));
        }
        time.set(NodeParameters { use_sim_time: false });
        assert_eq!(time.now_ns(), None);
        time.accept(&clock(9, 0)).unwrap();
        time.set(NodeParameters { use_sim_time: true });
        assert_eq!(time.now_ns(), Some(0), "the time of the last use is outdated");
    }

    #[test]
    fn finds_times_at_any_depth() {
        assert!(has_time(TFMessage::<1>::DESCRIPTION) && has_time(Clock::DESCRIPTION));
        assert!(!has_time(Vector3::DESCRIPTION));
        let parsed = parse("tf2_msgs/msg/TFMessage", &Dialect::Ros2.definition(TFMessage::<1>::DESCRIPTION));
        assert!(has_time(parsed.unwrap()));
    }
}
