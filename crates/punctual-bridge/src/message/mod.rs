//! Messages: plain data with a description of its encoding.

pub(crate) mod cdr;
mod decode;
mod parse;
pub(crate) mod ros2msg;
pub(crate) mod show;
mod variable;

pub use self::cdr::{Encoder, pack, replace_times};
pub use self::decode::{DecodeError, Decoder, Layout, Numbers, decode, decode_with};
pub use self::parse::{ParseError, parse};
pub use self::ros2msg::Dialect;
pub use self::show::show;
pub use self::variable::{Byte, NoRoom, Sequence, Text};

/// Plain data that can be published and subscribed to: implemented by
/// [`derive(Message)`](punctual_macros::Message).
///
/// ```
/// use punctual_bridge::Message;
/// use punctual_bridge::message::{Sequence, Text};
///
/// /// Named `my_crate/msg/Angles`, after the crate.
/// #[derive(Clone, Copy, Message)]
/// struct Angles {
///     #[message(unit = "rad")]
///     pan: f64,
///     #[message(unit = "rad")]
///     tilt: f64,
/// }
///
/// /// Has the same encoding as the standard message of this name.
/// #[derive(Clone, Copy, Message)]
/// #[message(name = "geometry_msgs/msg/Vector3")]
/// struct Vector3 {
///     x: f64,
///     y: f64,
///     z: f64,
/// }
///
/// /// Fields are numbers, `bool`, messages, and arrays of them; sequences and texts have a capacity.
/// #[derive(Clone, Copy, Message)]
/// struct Batch {
///     axes: [Angles; 10],
///     valid: [bool; 10],
///     alarms: Sequence<u16, 8>,
///     operator: Text<32>,
/// }
/// assert_eq!(Vector3::DESCRIPTION.name(), "geometry_msgs/msg/Vector3");
/// ```
pub trait Message: Value + Copy + Send + 'static {
    /// The name and the fields.
    const DESCRIPTION: &'static Description;
}

/// The types of message fields: numbers, `bool`, messages, arrays of them, [`Sequence`]s and
/// [`Text`]s.
pub trait Value: Sized {
    /// The encoding.
    const KIND: Kind;

    /// Zeros, `false`, empty texts and sequences, the time [of the release], and the initial values
    /// of a standard message: for a `static`, or some of its fields.
    ///
    /// ```
    /// use punctual_bridge::message::{Sequence, Text, Value};
    /// use punctual_bridge::messages::Header;
    /// use punctual_bridge::{Incoming, Message};
    ///
    /// #[derive(Clone, Copy, Message)]
    /// struct Battery {
    ///     header: Header<32>,
    ///     percentage: f32,
    ///     cell_voltage: Sequence<f32, 8>,
    ///     location: Text<32>,
    /// }
    ///
    /// static BATTERY: Incoming<Battery> =
    ///     Incoming::new("/battery", Battery { percentage: 1.0, ..Battery::EMPTY });
    /// ```
    ///
    /// [of the release]: crate::messages::Time::RELEASE
    const EMPTY: Self;

    /// Appends the bytes.
    fn encode(&self, to: &mut Encoder);

    /// Reads the bytes. The decoder records errors.
    fn decode(from: &mut Decoder<'_>) -> Self;
}

/// The types of array and sequence elements: all except arrays and sequences, since the interface
/// language of ROS has only one dimension.
pub trait Element: Value {}

impl<T: Element, const N: usize> Value for [T; N] {
    const KIND: Kind = Kind::Array(&T::KIND, N);
    const EMPTY: Self = [T::EMPTY; N];

    fn encode(&self, to: &mut Encoder) {
        self.iter().for_each(|value| value.encode(to));
    }

    fn decode(from: &mut Decoder<'_>) -> Self {
        std::array::from_fn(|_| T::decode(from))
    }
}

/// The name and the fields of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    name: &'static str,
    fields: &'static [Field],
    constants: &'static [&'static str],
}

impl Description {
    /// Creates the description of a message with a name such as `package/msg/Type`, and these
    /// fields.
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, constants: &[] }
    }

    /// Adds constants that belong to its definition, in the interface language of ROS: `byte OK=0`.
    pub const fn constants(self, constants: &'static [&'static str]) -> Self {
        Self { constants, ..self }
    }

    /// Returns the constants that belong to its definition.
    pub(crate) const fn declared_constants(&self) -> &'static [&'static str] {
        self.constants
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the fields, in the order of their bytes.
    pub const fn fields(&self) -> &'static [Field] {
        self.fields
    }
}

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    name: &'static str,
    unit: Option<&'static str>,
    kind: Kind,
}

impl Field {
    /// Creates a field, in `unit` if it has one.
    pub const fn new(name: &'static str, unit: Option<&'static str>, kind: Kind) -> Self {
        Self { name, unit, kind }
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the unit, if any.
    pub const fn unit(&self) -> Option<&'static str> {
        self.unit
    }

    /// Returns the kind of its value.
    pub const fn kind(&self) -> Kind {
        self.kind
    }
}

/// The encoding of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A number or a `bool`.
    Scalar(Scalar),
    /// A fixed number of values, one after the other.
    Array(&'static Kind, usize),
    /// The fields of a message, one after the other.
    Message(&'static Description),
    /// The number of values, and the values; limited by the capacity.
    Sequence(&'static Kind, usize),
    /// A text in UTF-8 with at most this many bytes.
    Text(usize),
}

/// A number or a `bool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are the types of these names")]
pub enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    /// 8 bits that are not a number.
    Byte,
}

/// Messages used by the tests of this module.
#[cfg(test)]
mod example {
    #[derive(Clone, Copy, punctual_macros::Message)]
    #[message(name = "geometry_msgs/msg/Vector3")]
    pub(crate) struct Vector3 {
        x: f64,
        #[message(unit = "rad")]
        y: f64,
    }

    #[derive(Clone, Copy, punctual_macros::Message)]
    pub(crate) struct State {
        position: Vector3,
        last: [Vector3; 2],
        #[message(unit = "A")]
        currents: [f32; 2],
    }
}
