//! What messages are: plain data with a description that says how to read them.

pub(crate) mod cdr;
pub(crate) mod columns;
mod decode;
pub(crate) mod ros2msg;
mod variable;

pub use self::cdr::{Encoder, pack};
pub use self::decode::{DecodeError, Decoder, Layout, decode};
pub use self::ros2msg::Dialect;
pub use self::variable::{Byte, NoRoom, Sequence, Text};

/// Plain data that can be published and subscribed to: by [`derive(Message)`](punctual_macros::Message).
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
/// /// Its bytes are those of the message that the rest of the world knows by this name.
/// #[derive(Clone, Copy, Message)]
/// #[message(name = "geometry_msgs/msg/Vector3")]
/// struct Vector3 {
///     x: f64,
///     y: f64,
///     z: f64,
/// }
///
/// /// Fields are numbers, `bool`, messages, and arrays of them; sequences and texts have room for so many.
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
    /// Its name and its fields.
    const DESCRIPTION: &'static Description;
}

/// What a field of a message can be: numbers, `bool`, messages, arrays of them, [`Sequence`]s and [`Text`]s.
pub trait Value: Sized {
    /// How its bytes are read.
    const KIND: Kind;

    /// Appends its bytes.
    fn encode(&self, to: &mut Encoder);

    /// Reads its bytes. What is wrong with them is kept by the decoder.
    fn decode(from: &mut Decoder<'_>) -> Self;
}

/// What arrays and sequences can be of: everything but these, of which the interface language of ROS has one dimension only.
pub trait Element: Value {}

impl<T: Element, const N: usize> Value for [T; N] {
    const KIND: Kind = Kind::Array(&T::KIND, N);

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
    /// A message with such a name, as in `package/msg/Type`, and these fields.
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, constants: &[] }
    }

    /// With constants that belong to its definition, each as the interface language of ROS has it: `byte OK=0`.
    pub const fn constants(self, constants: &'static [&'static str]) -> Self {
        Self { constants, ..self }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its fields, in the order of their bytes.
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
    /// A field, in `unit` if it has one.
    pub const fn new(name: &'static str, unit: Option<&'static str>, kind: Kind) -> Self {
        Self { name, unit, kind }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its unit, if it has one.
    pub const fn unit(&self) -> Option<&'static str> {
        self.unit
    }

    /// What it is.
    pub const fn kind(&self) -> Kind {
        self.kind
    }
}

/// How a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A number or a `bool`.
    Scalar(Scalar),
    /// So many values, one after the other.
    Array(&'static Kind, usize),
    /// The fields of a message, one after the other.
    Message(&'static Description),
    /// The number of values, and these; no more than there is room for.
    Sequence(&'static Kind, usize),
    /// A text in UTF-8 of so many bytes at most.
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
    /// 8 bits that are no number.
    Byte,
}

/// Messages that the tests here describe.
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
