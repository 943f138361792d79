//! Standard messages of ROS, with their constants: a module for each package.
//!
//! The definitions of ROS 2 in `msg` determine the types. A field that is a sequence has the
//! capacity `N`, or another parameter of its message; a text has 32 bytes, or as many as its type
//! states. The capacities are private to the program, so type hashes and MD5 sums are those of ROS.
//! `std_msgs/msg/Char` and `std_msgs/msg/Empty` are not supported. In ROS 1 `BatteryState`,
//! `CameraInfo`, `NavSatFix`, `NavSatStatus` and `Range` have other definitions, so its nodes
//! refuse these types.
//!
//! ```
//! use punctual_bridge::Incoming;
//! use punctual_bridge::message::Numbers;
//! use punctual_bridge::messages::sensor_msgs::{BatteryState, LaserScan};
//!
//! static SCAN: Incoming<LaserScan<720>> =
//!     Incoming::new("/scan", LaserScan::default()).numbers(Numbers::Any);
//! static BATTERY: Incoming<BatteryState<8>> = Incoming::new("/battery", BatteryState::default());
//!
//! let is_charging = |battery: &BatteryState<8>| {
//!     battery.power_supply_status == BatteryState::<8>::POWER_SUPPLY_STATUS_CHARGING
//! };
//! assert!(!is_charging(&BATTERY.reader().unwrap().read().message));
//! ```

use crate::Message;
use crate::message::{Decoder, Description, Element, Encoder, Field, Kind, Text, Value};

pub use self::diagnostic_msgs::{DiagnosticArray, DiagnosticStatus, KeyValue};
pub use self::geometry_msgs::Vector3;
pub use self::sensor_msgs::JointState;
pub use self::std_msgs::{Float64MultiArray, MultiArrayDimension, MultiArrayLayout};

include!(concat!(env!("OUT_DIR"), "/messages.rs"));

pub(crate) const TIME: &str = "builtin_interfaces/msg/Time";
pub(crate) const HEADER: &str = "std_msgs/msg/Header";
pub(crate) const DURATION: &str = "builtin_interfaces/msg/Duration";

/// A time since 1970: `builtin_interfaces/msg/Time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// The seconds.
    pub sec: i32,
    /// The additional nanoseconds.
    pub nanosec: u32,
}

impl Time {
    /// Returns [`RELEASE`](Self::RELEASE), also in a `static`.
    #[allow(clippy::should_implement_trait, reason = "the function of the trait is not const")]
    pub const fn default() -> Self {
        Self::RELEASE
    }

    /// The release of the message: the bridge or transport fills it in, so a task need not convert
    /// it.
    pub const RELEASE: Self = Self { sec: i32::MIN, nanosec: u32::MAX };

    /// Returns the time with this number of ns since 1970: before 2038, like the ROS type.
    pub(crate) const fn from_ns(time_ns: u64) -> Self {
        Self { sec: (time_ns / NANOS) as i32, nanosec: (time_ns % NANOS) as u32 }
    }

    /// Returns the ns since 1970; `None` before that, and for [`RELEASE`](Self::RELEASE).
    pub fn to_ns(self) -> Option<u64> {
        let seconds = u64::try_from(self.sec).ok()?;
        Some(seconds * NANOS + u64::from(self.nanosec))
    }
}

/// [`Time::RELEASE`].
impl Default for Time {
    fn default() -> Self {
        Self::RELEASE
    }
}

const NANOS: u64 = 1_000_000_000;

impl Value for Time {
    const KIND: Kind = Kind::Message(<Self as Message>::DESCRIPTION);
    const EMPTY: Self = Self::RELEASE;

    fn encode(&self, to: &mut Encoder) {
        let time = if *self == Self::RELEASE { Self::from_ns(to.time_ns()) } else { *self };
        time.sec.encode(to);
        time.nanosec.encode(to);
    }

    fn decode(from: &mut Decoder<'_>) -> Self {
        Self { sec: Value::decode(from), nanosec: Value::decode(from) }
    }
}

impl Element for Time {}

impl Message for Time {
    const DESCRIPTION: &'static Description = &Description::new(
        TIME,
        &[Field::new("sec", Some("s"), i32::KIND), Field::new("nanosec", Some("ns"), u32::KIND)],
    );
}

/// Time and frame of reference: `std_msgs/msg/Header`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header<const TEXT: usize> {
    /// The time.
    pub stamp: Time,
    /// The frame of reference.
    pub frame_id: Text<TEXT>,
}

impl<const TEXT: usize> Header<TEXT> {
    /// Returns the header of a message at its release, also in a `static`.
    #[allow(clippy::should_implement_trait, reason = "the function of the trait is not const")]
    pub const fn default() -> Self {
        <Self as Value>::EMPTY
    }
}

impl<const TEXT: usize> Value for Header<TEXT> {
    const KIND: Kind = Kind::Message(<Self as Message>::DESCRIPTION);
    const EMPTY: Self = Self { stamp: Time::EMPTY, frame_id: Text::EMPTY };

    fn encode(&self, to: &mut Encoder) {
        self.stamp.encode(to);
        self.frame_id.encode(to);
    }

    fn decode(from: &mut Decoder<'_>) -> Self {
        if from.is_packed() {
            // In ROS 1 it starts with a sequence number, which is ignored.
            from.skip::<4>();
        }
        Self { stamp: Value::decode(from), frame_id: Value::decode(from) }
    }
}

impl<const TEXT: usize> Element for Header<TEXT> {}

impl<const TEXT: usize> Message for Header<TEXT> {
    const DESCRIPTION: &'static Description = &Description::new(
        HEADER,
        &[Field::new("stamp", None, Time::KIND), Field::new("frame_id", None, Text::<TEXT>::KIND)],
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Incoming;
    use crate::message::{Byte, Layout, Sequence, decode};

    #[test]
    fn stamps_messages_with_the_release_by_default() {
        let mut joints = JointState::<2> { position: [0.5, -0.25].into(), ..JointState::default() };
        let mut encoder = Encoder::default();
        let stamp = |bytes: &[u8]| decode::<JointState<2>>(bytes, Layout::Cdr).unwrap().header.stamp;
        let released = stamp(encoder.encode(1_700_000_000_000_000_007, &joints));
        assert_eq!(released, Time { sec: 1_700_000_000, nanosec: 7 });
        joints.header.stamp = Time { sec: 3, nanosec: 4 };
        assert_eq!(stamp(encoder.encode(7, &joints)), joints.header.stamp);
    }

    #[test]
    fn static_topics_start_with_default_message() {
        static JOINTS: Incoming<JointState<4>> = Incoming::new("/joints", JointState::default());
        static STATUS: Incoming<DiagnosticArray<2, 3>> =
            Incoming::new("/diagnostics", DiagnosticArray::default());
        static NUMBERS: Incoming<Float64MultiArray<8>> =
            Incoming::new("/numbers", Float64MultiArray { data: Sequence::new(), ..Value::EMPTY });
        assert_eq!(JOINTS.reader().unwrap().read().message, Default::default());
        assert_eq!(STATUS.reader().unwrap().read().message, Default::default());
        assert_eq!(NUMBERS.reader().unwrap().read().message, Default::default());
        let default = <Header<8> as Default>::default();
        assert_eq!((Header::<8>::default(), Time::default()), (default, Time::RELEASE));
        assert_eq!(<Vector3 as Default>::default(), Vector3::EMPTY);
        assert_eq!(<DiagnosticStatus<3> as Default>::default(), DiagnosticStatus::EMPTY);
        assert_eq!(<MultiArrayLayout as Default>::default(), MultiArrayLayout::EMPTY);
        assert_eq!(<KeyValue as Default>::default(), KeyValue::EMPTY);
        assert_eq!(<MultiArrayDimension as Default>::default(), MultiArrayDimension::EMPTY);
    }

    #[test]
    fn messages_have_constants_and_initial_values() {
        assert_eq!(sensor_msgs::BatteryState::<1>::POWER_SUPPLY_TECHNOLOGY_LIFE, 4);
        assert_eq!(sensor_msgs::NavSatStatus::STATUS_NO_FIX, -1);
        assert_eq!(DiagnosticStatus::<1>::STALE, Byte(3));
        assert_eq!(geometry_msgs::Quaternion::default().w, 1.0);
        assert_eq!(geometry_msgs::PoseStamped::EMPTY.pose.orientation.w, 1.0);
        assert_eq!(sensor_msgs::NavSatStatus::default().status, -2);
    }

    #[test]
    fn nested_sequences_have_capacities_of_their_own() {
        let point = trajectory_msgs::JointTrajectoryPoint::<2> {
            positions: [0.5, 0.25].into(),
            time_from_start: builtin_interfaces::Duration { sec: 1, nanosec: 5 },
            ..Value::EMPTY
        };
        let sent = trajectory_msgs::JointTrajectory::<2, 3> {
            joint_names: ["pan", "tilt"].map(|name| Text::new(name).unwrap()).into(),
            points: [point, point, point].into(),
            ..Value::EMPTY
        };
        let mut encoder = Encoder::default();
        let bytes = encoder.encode(1_000_000_007, &sent);
        let received: trajectory_msgs::JointTrajectory<2, 3> = decode(bytes, Layout::Cdr).unwrap();
        assert_eq!((received.points, received.header.stamp), (sent.points, Time { sec: 1, nanosec: 7 }));
        let fewer = decode::<trajectory_msgs::JointTrajectory<2, 2>>(bytes, Layout::Cdr);
        assert_eq!(fewer.unwrap_err().to_string(), "points is longer than its capacity of 2");
    }

    #[test]
    fn ros1_header_has_sequence_number() {
        let stamp = Time { sec: 1, nanosec: 2 };
        let header = Header::<8> { stamp, frame_id: Text::new("base").unwrap() };
        let mut encoder = Encoder::default();
        let packed = crate::message::cdr::pack(Header::<8>::DESCRIPTION, encoder.encode(0, &header), 9);
        assert_eq!(packed, [9, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, b'b', b'a', b's', b'e']);
        assert_eq!(decode(&packed, Layout::Packed), Ok(header));
    }

    #[cfg(feature = "mcap")]
    #[test]
    fn are_defined_as_ros_2_does() {
        let definition =
            crate::message::ros2msg::Dialect::Ros2.definition(DiagnosticArray::<1, 1>::DESCRIPTION);
        let messages: Vec<&str> = definition.split(&format!("{}\n", "=".repeat(80))).collect();
        let expected = [
            "std_msgs/Header header\ndiagnostic_msgs/DiagnosticStatus[] status\n",
            "MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n",
            "MSG: diagnostic_msgs/DiagnosticStatus\nbyte OK=0\nbyte WARN=1\nbyte ERROR=2\nbyte STALE=3\nbyte level\n\
             string name\nstring message\nstring hardware_id\ndiagnostic_msgs/KeyValue[] values\n",
            "MSG: builtin_interfaces/Time\nint32 sec  # s\nuint32 nanosec  # ns\n",
            "MSG: diagnostic_msgs/KeyValue\nstring key\nstring value\n",
        ];
        assert_eq!(messages, expected);
    }
}
