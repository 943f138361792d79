//! The encoding of messages: CDR as in ROS 2, little-endian, each number aligned to its size.

use std::fmt;

use super::decode::Decoder;
use super::{Description, Element, Kind, Scalar, Value};
use crate::messages::Time;

/// The encapsulation header before a message: plain CDR, little-endian, no options. Alignment is
/// relative to its end.
const HEADER: [u8; 4] = [0, 1, 0, 0];
/// The size of a time in a message.
const TIME_BYTES: usize = 8;

/// The bytes of a message while it is encoded.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    /// The release of the message, in ns since 1970.
    time_ns: u64,
}

impl Encoder {
    /// Encodes `value`, released at `time_ns` since 1970. The bytes are valid until the next call.
    pub(crate) fn encode(&mut self, time_ns: u64, value: &impl Value) -> &[u8] {
        self.encode_with(time_ns, |to| value.encode(to))
    }

    /// Encodes the message that `append` appends, released at `time_ns` since 1970. The bytes are
    /// valid until the next call.
    pub(crate) fn encode_with(&mut self, time_ns: u64, append: impl FnOnce(&mut Self)) -> &[u8] {
        self.time_ns = time_ns;
        self.bytes.clear();
        self.bytes.extend(HEADER);
        append(self);
        &self.bytes
    }

    /// Returns the release of the message, in ns since 1970.
    pub(crate) const fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// Appends the number of the following values.
    pub(crate) fn length(&mut self, length: usize) {
        // The capacity fits in memory, so the length is far below 2³².
        self.put((length as u32).to_le_bytes());
    }

    /// Appends a text, with a zero at its end.
    pub(crate) fn text(&mut self, text: &str) {
        self.length(text.len() + 1);
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    pub(super) fn put<const SIZE: usize>(&mut self, bytes: [u8; SIZE]) {
        let length = self.bytes.len() - HEADER.len();
        self.bytes.resize(HEADER.len() + length.next_multiple_of(SIZE), 0);
        self.bytes.extend(bytes);
    }
}

/// The content of a table column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'a> {
    Number(Number),
    Text(&'a str),
    /// A missing element of a sequence that is shorter than its capacity.
    Nothing,
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "\"{}\"", text.replace('"', "\"\"")),
            Self::Nothing => Ok(()),
        }
    }
}

/// A decoded number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Single(f32),
    Double(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Single(value) => value.fmt(f),
            Self::Double(value) => value.fmt(f),
        }
    }
}

macro_rules! scalars {
    ($($name:ident: $type:ty => $number:ident,)*) => {
        $(
            impl Value for $type {
                const KIND: Kind = Kind::Scalar(Scalar::$name);
                const EMPTY: Self = 0 as Self;

                fn encode(&self, to: &mut Encoder) {
                    to.put(self.to_le_bytes());
                }

                fn decode(from: &mut Decoder<'_>) -> Self {
                    let value = Self::from_le_bytes(from.take());
                    from.check_number(Number::$number(value.into()));
                    value
                }
            }

            impl Element for $type {}
        )*

        impl Scalar {
            pub(super) fn read(self, bytes: &mut Bytes<'_>) -> Option<Number> {
                Some(match self {
                    Self::Bool => Number::Bool(bytes.take::<1>()? != [0]),
                    Self::Byte => Number::Unsigned(bytes.take::<1>()?[0].into()),
                    $(Self::$name => Number::$number(<$type>::from_le_bytes(bytes.take()?).into()),)*
                })
            }
        }
    };
}

scalars! {
    I8: i8 => Signed,
    I16: i16 => Signed,
    I32: i32 => Signed,
    I64: i64 => Signed,
    U8: u8 => Unsigned,
    U16: u16 => Unsigned,
    U32: u32 => Unsigned,
    U64: u64 => Unsigned,
    F32: f32 => Single,
    F64: f64 => Double,
}

impl Value for bool {
    const KIND: Kind = Kind::Scalar(Scalar::Bool);
    const EMPTY: Self = false;

    fn encode(&self, to: &mut Encoder) {
        to.put([u8::from(*self)]);
    }

    fn decode(from: &mut Decoder<'_>) -> Self {
        from.flag()
    }
}

impl Element for bool {}

/// The bytes to decode.
pub(super) struct Bytes<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    /// Returns the bytes of a message after its header; `None` if it has none.
    pub(super) fn of(payload: &'a [u8]) -> Option<Self> {
        Some(Self { all: payload.get(HEADER.len()..)?, at: 0 })
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.take()?)).ok()
    }

    /// Reads a text, without the zero at its end.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        let length = self.length()?;
        let text = self.all.get(self.at..self.at.checked_add(length)?)?.strip_suffix(&[0])?;
        self.at += length;
        std::str::from_utf8(text).ok()
    }

    /// Calls `each` for each of `count` elements, or only for the first one if it has no bytes:
    /// then all are alike, and the bytes do not limit their number.
    pub(super) fn repeat(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        for _ in 0..count {
            let start = self.at;
            each(self)?;
            if self.at == start {
                break;
            }
        }
        Some(())
    }

    fn take<const SIZE: usize>(&mut self) -> Option<[u8; SIZE]> {
        let from = self.at.next_multiple_of(SIZE);
        let bytes = self.all.get(from..from + SIZE)?;
        self.at = from + SIZE;
        bytes.try_into().ok()
    }
}

/// Calls `each` for every column of a message, in order; ends early if the bytes are too few.
pub(crate) fn cells(description: &Description, payload: &[u8], each: &mut impl FnMut(Cell<'_>)) {
    if let Some(mut bytes) = Bytes::of(payload) {
        // Missing values are omitted.
        let _ = fields(description, &mut bytes, each);
    }
}

fn fields(description: &Description, bytes: &mut Bytes<'_>, each: &mut impl FnMut(Cell<'_>)) -> Option<()> {
    description.fields().iter().try_for_each(|field| value(field.kind(), bytes, each))
}

fn value(kind: Kind, bytes: &mut Bytes<'_>, each: &mut impl FnMut(Cell<'_>)) -> Option<()> {
    match kind {
        Kind::Scalar(scalar) => scalar.read(bytes).map(|number| each(Cell::Number(number))),
        Kind::Array(element, length) => bytes.repeat(length, |bytes| value(*element, bytes, each)),
        Kind::Message(description) => fields(description, bytes, each),
        Kind::Text(_) => bytes.text().map(|text| each(Cell::Text(text))),
        Kind::Sequence(element, room) => {
            let length = bytes.length()?;
            each(Cell::Number(Number::Unsigned(length as u64)));
            bytes.repeat(length, |bytes| value(*element, bytes, each))?;
            let missing = room.saturating_sub(length) * width(*element);
            (0..missing).for_each(|_| each(Cell::Nothing));
            Some(())
        }
    }
}

/// Returns the number of columns of a value.
pub(super) fn width(kind: Kind) -> usize {
    match kind {
        Kind::Scalar(_) | Kind::Text(_) => 1,
        Kind::Array(element, length) => width(*element) * length,
        Kind::Sequence(element, room) => 1 + width(*element) * room,
        Kind::Message(description) => description.fields().iter().map(|field| width(field.kind())).sum(),
    }
}

/// Replaces every time in the CDR bytes of a message that is `from_ns` since 1970 by `to_ns`: those
/// that the app has left at the [release](crate::messages::Time::RELEASE) of the message.
///
/// If `payload` belongs to another message, the remainder is unchanged.
pub fn replace_times(description: &'static Description, payload: &mut [u8], from_ns: u64, to_ns: u64) {
    fn find(kind: Kind, bytes: &mut Bytes<'_>, from: [u8; TIME_BYTES], found: &mut Vec<usize>) -> Option<()> {
        match kind {
            Kind::Scalar(scalar) => scalar.read(bytes).map(drop),
            Kind::Text(_) => bytes.text().map(drop),
            Kind::Array(element, length) => bytes.repeat(length, |bytes| find(*element, bytes, from, found)),
            Kind::Sequence(element, _) => {
                let length = bytes.length()?;
                bytes.repeat(length, |bytes| find(*element, bytes, from, found))
            }
            Kind::Message(inner) if inner.name() == crate::messages::TIME => {
                let time = [bytes.take::<4>()?, bytes.take::<4>()?];
                if time.as_flattened() == from {
                    found.push(HEADER.len() + bytes.at - TIME_BYTES);
                }
                Some(())
            }
            Kind::Message(inner) => {
                inner.fields().iter().try_for_each(|field| find(field.kind(), bytes, from, found))
            }
        }
    }

    let bytes_of = |time_ns| {
        let Time { sec, nanosec } = Time::from_ns(time_ns);
        let mut bytes = [0; TIME_BYTES];
        bytes[..4].copy_from_slice(&sec.to_le_bytes());
        bytes[4..].copy_from_slice(&nanosec.to_le_bytes());
        bytes
    };
    let mut found = vec![];
    if let Some(mut bytes) = Bytes::of(payload) {
        // An encoder created them, so no bytes are missing.
        let _ = find(Kind::Message(description), &mut bytes, bytes_of(from_ns), &mut found);
    }
    let to = bytes_of(to_ns);
    found.into_iter().for_each(|at| payload[at..at + TIME_BYTES].copy_from_slice(&to));
}

/// Converts the CDR bytes of message number `sequence` to the ROS 1 layout: values without padding,
/// and headers with a sequence number.
///
/// If `payload` belongs to another message, the conversion ends early.
pub fn pack(description: &Description, payload: &[u8], sequence: u32) -> Vec<u8> {
    fn add(kind: Kind, from: &mut Bytes<'_>, sequence: u32, to: &mut Vec<u8>) -> Option<()> {
        match kind {
            Kind::Scalar(Scalar::Bool | Scalar::I8 | Scalar::U8 | Scalar::Byte) => {
                to.extend(from.take::<1>()?);
            }
            Kind::Scalar(Scalar::I16 | Scalar::U16) => to.extend(from.take::<2>()?),
            Kind::Scalar(Scalar::I32 | Scalar::U32 | Scalar::F32) => to.extend(from.take::<4>()?),
            Kind::Scalar(Scalar::I64 | Scalar::U64 | Scalar::F64) => to.extend(from.take::<8>()?),
            Kind::Array(element, length) => {
                from.repeat(length, |from| add(*element, from, sequence, to))?;
            }
            Kind::Sequence(element, _) => {
                let length = from.length()?;
                to.extend((length as u32).to_le_bytes());
                from.repeat(length, |from| add(*element, from, sequence, to))?;
            }
            Kind::Text(_) => {
                let text = from.text()?;
                to.extend((text.len() as u32).to_le_bytes());
                to.extend(text.as_bytes());
            }
            Kind::Message(inner) => return add_fields(inner, from, sequence, to),
        }
        Some(())
    }

    fn add_fields(
        description: &Description,
        from: &mut Bytes<'_>,
        sequence: u32,
        to: &mut Vec<u8>,
    ) -> Option<()> {
        // In ROS 1 it starts with a sequence number.
        if description.name() == crate::messages::HEADER {
            to.extend(sequence.to_le_bytes());
        }
        description.fields().iter().try_for_each(|field| add(field.kind(), from, sequence, to))
    }

    let mut packed = Vec::with_capacity(payload.len());
    if let Some(mut bytes) = Bytes::of(payload) {
        // An encoder created them, so no bytes are missing.
        let _ = add_fields(description, &mut bytes, sequence, &mut packed);
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, Message, Text, decode};
    use super::*;
    use crate::messages::geometry_msgs::TransformStamped;
    use crate::messages::tf2_msgs::TFMessage;

    fn text<const N: usize>(text: &str) -> Text<N> {
        Text::new(text).expect("there is room")
    }

    #[derive(Clone, Copy, punctual_macros::Message)]
    struct Inner {
        flag: bool,
        number: i16,
    }

    #[derive(Clone, Copy, punctual_macros::Message)]
    struct Outer {
        small: u8,
        wide: f64,
        inner: [Inner; 2],
        bytes: [u8; 3],
        single: f32,
        last: u64,
    }

    fn outer() -> Outer {
        let inner = [Inner { flag: true, number: -2 }, Inner { flag: false, number: 513 }];
        Outer { small: 7, wide: 1.5, inner, bytes: [1, 2, 3], single: 0.25, last: u64::MAX }
    }

    #[test]
    fn aligns_numbers_relative_to_header_end() {
        let mut encoder = Encoder::default();
        let bytes = encoder.encode(0, &outer()).to_vec();
        let mut expected = vec![0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        expected.extend(1.5_f64.to_le_bytes());
        expected.extend([1, 0, 0xfe, 0xff, 0, 0, 1, 2, 1, 2, 3, 0]);
        expected.extend(0.25_f32.to_le_bytes());
        expected.extend([0xff; 8]);
        assert_eq!(bytes, expected);
        assert_eq!(encoder.encode(0, &outer()), expected, "nothing is left of the one before");
    }

    #[test]
    fn replaces_only_times_of_the_release() {
        let transform = TransformStamped { child_frame_id: text("pan"), ..Value::EMPTY };
        let mut other = transform;
        other.header.stamp = Time { sec: 3, nanosec: 4 };
        let sent = TFMessage::<2> { transforms: [transform, other].into() };
        let mut encoder = Encoder::default();
        let mut bytes = encoder.encode(1_000_000_007, &sent).to_vec();
        replace_times(TFMessage::<2>::DESCRIPTION, &mut bytes, 1_000_000_007, 5_000_000_006);
        let received: TFMessage<2> = decode(&bytes, Layout::Cdr).expect("it is valid");
        let stamps: Vec<Time> = received.transforms.iter().map(|one| one.header.stamp).collect();
        assert_eq!(stamps, [Time { sec: 5, nanosec: 6 }, Time { sec: 3, nanosec: 4 }]);
        assert_eq!(received.transforms[1].child_frame_id, text("pan"));
        let mut bytes = encoder.encode(1_000_000_007, &Time::RELEASE).to_vec();
        replace_times(Time::DESCRIPTION, &mut bytes, 1_000_000_007, 5_000_000_006);
        assert_eq!(decode::<Time>(&bytes, Layout::Cdr).expect("it is valid"), Time { sec: 5, nanosec: 6 });
        let mut bytes = encoder.encode(0, &sent).to_vec();
        for length in 0..bytes.len() {
            // Incomplete messages, which no encoder creates.
            replace_times(TFMessage::<2>::DESCRIPTION, &mut bytes[..length], 1, 2);
        }
    }

    #[test]
    fn doubles_quotes_in_text() {
        assert_eq!(Cell::Text("a \"b\"").to_string(), "\"a \"\"b\"\"\"");
    }

    #[test]
    fn round_trips_text() {
        let mut encoder = Encoder::default();
        let bytes = encoder.encode(0, &outer()).to_vec();
        let read = |bytes: &[u8]| {
            let mut read = Vec::new();
            cells(Outer::DESCRIPTION, bytes, &mut |cell| read.push(cell.to_string()));
            read
        };
        let expected =
            ["7", "1.5", "true", "-2", "false", "513", "1", "2", "3", "0.25", "18446744073709551615"];
        assert_eq!(read(&bytes), expected);
        for length in 0..bytes.len() {
            let read = read(&bytes[..length]);
            assert!(
                read.len() < expected.len()
                    && expected.starts_with(&read.iter().map(|s| s.as_str()).collect::<Vec<_>>())
            );
        }
    }
}
