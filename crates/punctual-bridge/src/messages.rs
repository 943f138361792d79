//! Standard messages, under their ROS names.
//!
//! For sequences and texts, which are unbounded in ROS, `N` and similar parameters set the
//! capacity.

use crate::Message;
use crate::message::{Byte, Decoder, Description, Element, Encoder, Field, Kind, Sequence, Text, Value};

pub(crate) const TIME: &str = "builtin_interfaces/msg/Time";
pub(crate) const HEADER: &str = "std_msgs/msg/Header";
/// A header with any frame of reference.
pub(crate) const HEADER_KIND: Kind = Header::<32>::KIND;

/// Three numbers: `geometry_msgs/msg/Vector3`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Message)]
#[message(name = "geometry_msgs/msg/Vector3")]
pub struct Vector3 {
    /// The first.
    pub x: f64,
    /// The second.
    pub y: f64,
    /// The third.
    pub z: f64,
}

/// A time since 1970: `builtin_interfaces/msg/Time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// The seconds.
    pub sec: i32,
    /// The additional nanoseconds.
    pub nanosec: u32,
}

impl Time {
    /// The release of the message: the bridge or transport fills it in, so a task need not convert
    /// it.
    pub const RELEASE: Self = Self { sec: i32::MIN, nanosec: u32::MAX };
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
        let time = match *self {
            // Valid until 2038, like the ROS type.
            Self::RELEASE => {
                Self { sec: (to.time_ns() / NANOS) as i32, nanosec: (to.time_ns() % NANOS) as u32 }
            }
            time => time,
        };
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

/// Up to `N` joints of a machine, with names of up to 32 bytes: `sensor_msgs/msg/JointState`.
///
/// Each sequence has a value for each joint, or is empty.
#[derive(Debug, Clone, Copy, PartialEq, Default, Message)]
#[message(name = "sensor_msgs/msg/JointState")]
pub struct JointState<const N: usize> {
    /// The time.
    pub header: Header<32>,
    /// The names.
    pub name: Sequence<Text<32>, N>,
    /// The positions, in rad or m.
    pub position: Sequence<f64, N>,
    /// The velocities, in rad/s or m/s.
    pub velocity: Sequence<f64, N>,
    /// The torques or forces, in N m or N.
    pub effort: Sequence<f64, N>,
}

/// One dimension of an array: `std_msgs/msg/MultiArrayDimension`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Message)]
#[message(name = "std_msgs/msg/MultiArrayDimension")]
pub struct MultiArrayDimension {
    /// The name.
    pub label: Text<32>,
    /// The size.
    pub size: u32,
    /// The number of elements in all dimensions from this one on.
    pub stride: u32,
}

/// The layout of an array of up to four dimensions: `std_msgs/msg/MultiArrayLayout`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Message)]
#[message(name = "std_msgs/msg/MultiArrayLayout")]
pub struct MultiArrayLayout {
    /// The dimensions, outermost first.
    pub dim: Sequence<MultiArrayDimension, 4>,
    /// The number of preceding elements.
    pub data_offset: u32,
}

/// Up to `N` numbers: `std_msgs/msg/Float64MultiArray`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Message)]
#[message(name = "std_msgs/msg/Float64MultiArray")]
pub struct Float64MultiArray<const N: usize> {
    /// The layout; without dimensions, one after the other.
    pub layout: MultiArrayLayout,
    /// The numbers.
    pub data: Sequence<f64, N>,
}

/// A key and its value, as texts: `diagnostic_msgs/msg/KeyValue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Message)]
#[message(name = "diagnostic_msgs/msg/KeyValue")]
pub struct KeyValue {
    /// The key.
    pub key: Text<64>,
    /// The value.
    pub value: Text<64>,
}

pub(crate) const DIAGNOSTIC_LEVELS: &[&str] = &["byte OK=0", "byte WARN=1", "byte ERROR=2", "byte STALE=3"];

/// The status of a machine part, with up to `V` values: `diagnostic_msgs/msg/DiagnosticStatus`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DiagnosticStatus<const V: usize> {
    /// [`OK`](Self::OK), [`WARN`](Self::WARN), [`ERROR`](Self::ERROR) or [`STALE`](Self::STALE).
    pub level: Byte,
    /// The part.
    pub name: Text<64>,
    /// A description of the status.
    pub message: Text<128>,
    /// The hardware's identifier.
    pub hardware_id: Text<64>,
    /// Details.
    pub values: Sequence<KeyValue, V>,
}

impl<const V: usize> DiagnosticStatus<V> {
    /// The part works.
    pub const OK: Byte = Byte(0);
    /// The part needs attention.
    pub const WARN: Byte = Byte(1);
    /// The part does not work.
    pub const ERROR: Byte = Byte(2);
    /// The part sends no data.
    pub const STALE: Byte = Byte(3);
}

impl<const V: usize> Value for DiagnosticStatus<V> {
    const KIND: Kind = Kind::Message(<Self as Message>::DESCRIPTION);
    const EMPTY: Self = Self {
        level: Byte::EMPTY,
        name: Text::EMPTY,
        message: Text::EMPTY,
        hardware_id: Text::EMPTY,
        values: Sequence::EMPTY,
    };

    fn encode(&self, to: &mut Encoder) {
        self.level.encode(to);
        self.name.encode(to);
        self.message.encode(to);
        self.hardware_id.encode(to);
        self.values.encode(to);
    }

    fn decode(from: &mut Decoder<'_>) -> Self {
        Self {
            level: Value::decode(from),
            name: Value::decode(from),
            message: Value::decode(from),
            hardware_id: Value::decode(from),
            values: Value::decode(from),
        }
    }
}

impl<const V: usize> Element for DiagnosticStatus<V> {}

impl<const V: usize> Message for DiagnosticStatus<V> {
    const DESCRIPTION: &'static Description = &Description::new(
        "diagnostic_msgs/msg/DiagnosticStatus",
        &[
            Field::new("level", None, Byte::KIND),
            Field::new("name", None, Text::<64>::KIND),
            Field::new("message", None, Text::<128>::KIND),
            Field::new("hardware_id", None, Text::<64>::KIND),
            Field::new("values", None, Sequence::<KeyValue, V>::KIND),
        ],
    )
    .constants(DIAGNOSTIC_LEVELS);
}

/// The status of up to `S` machine parts, each with up to `V` values:
/// `diagnostic_msgs/msg/DiagnosticArray`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Message)]
#[message(name = "diagnostic_msgs/msg/DiagnosticArray")]
pub struct DiagnosticArray<const S: usize, const V: usize> {
    /// The time.
    pub header: Header<32>,
    /// The statuses.
    pub status: Sequence<DiagnosticStatus<V>, S>,
}

/// Adds a constant function `default`, for statics, to messages whose [`Default`] is their
/// [`EMPTY`](Value::EMPTY).
macro_rules! const_default {
    ($([$($generics:tt)*] $message:ty;)*) => {
        $(
            impl<$($generics)*> $message {
                /// Returns the empty message, as its [`Default`] does, also in a `static`.
                #[allow(
                    clippy::should_implement_trait,
                    reason = "it does, but the function of the trait is not const"
                )]
                pub const fn default() -> Self {
                    <Self as Value>::EMPTY
                }
            }
        )*
    };
}

const_default! {
    [] Vector3;
    [] Time;
    [const TEXT: usize] Header<TEXT>;
    [const N: usize] JointState<N>;
    [] MultiArrayDimension;
    [] MultiArrayLayout;
    [const N: usize] Float64MultiArray<N>;
    [] KeyValue;
    [const V: usize] DiagnosticStatus<V>;
    [const S: usize, const V: usize] DiagnosticArray<S, V>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Incoming;
    use crate::message::{Layout, decode};

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
