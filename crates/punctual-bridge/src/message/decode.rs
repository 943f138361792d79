//! Decoding of incoming messages, from untrusted bytes.

use super::cdr::Number;
use super::show::columns;
use super::{Description, Message};

/// The layout of the bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// CDR with its header, as in ROS 2: in either byte order, each number aligned to its size.
    Cdr,
    /// As in ROS 1: numbers without padding, little-endian.
    Packed,
}

/// The floating-point numbers that a message may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbers {
    /// Finite ones: for setpoints and everything that is computed with.
    #[default]
    Finite,
    /// All, since sensors report missing values as NaN and readings out of range as infinite
    /// (REP-117).
    Any,
}

/// A decoding error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The number of bytes is not that of the message.
    #[error("{found} bytes, but {name} has {expected}")]
    Length {
        /// The name of the message.
        name: &'static str,
        /// The expected number of bytes.
        expected: usize,
        /// The actual number.
        found: usize,
    },
    /// The header is not that of CDR.
    #[error("no header of plain CDR, which is 0 1 0 0 if little-endian")]
    Header,
    /// A number is infinite or NaN.
    #[error("{0} is not a finite number")]
    NotFinite(String),
    /// A `bool` is neither 0 nor 1.
    #[error("{0} is neither true nor false")]
    NotBool(String),
    /// A text is invalid: not UTF-8, or with a zero before its end.
    #[error("{0} is not a valid text")]
    NotText(String),
    /// A sequence or a text exceeds its capacity.
    #[error("{name} is longer than its capacity of {room}")]
    TooLong {
        /// The name of the field.
        name: String,
        /// Its capacity.
        room: usize,
    },
}

/// The kind of invalid value.
#[derive(Debug, Clone, Copy)]
enum Wrong {
    NotFinite,
    NotBool,
    NotText,
    TooLong(usize),
}

/// The bytes to decode.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    layout: Layout,
    big_endian: bool,
    /// The number of table columns read.
    columns: usize,
    /// The first invalid value.
    wrong: Option<(usize, Wrong)>,
    numbers: Numbers,
}

impl<'a> Decoder<'a> {
    /// Returns the bytes of the next number in little-endian order; zeros if they are missing.
    pub(super) fn take<const SIZE: usize>(&mut self) -> [u8; SIZE] {
        let from = match self.layout {
            Layout::Cdr => self.at.next_multiple_of(SIZE),
            Layout::Packed => self.at,
        };
        self.at = from + SIZE;
        let bytes = self.bytes.get(from..self.at).and_then(|bytes| bytes.try_into().ok());
        let mut bytes: [u8; SIZE] = bytes.unwrap_or([0; SIZE]);
        if self.big_endian {
            bytes.reverse();
        }
        bytes
    }

    /// Checks that a number is finite, if it must be.
    pub(super) fn check_number(&mut self, number: Number) {
        let is_finite = match number {
            Number::Single(value) => value.is_finite(),
            Number::Double(value) => value.is_finite(),
            _ => true,
        };
        self.judge(is_finite || self.numbers == Numbers::Any, Wrong::NotFinite);
    }

    /// Returns `true` for the layout of ROS 1.
    pub(crate) fn is_packed(&self) -> bool {
        self.layout == Layout::Packed
    }

    /// Skips this many bytes.
    pub(crate) fn skip<const SIZE: usize>(&mut self) {
        let _: [u8; SIZE] = self.take();
    }

    /// Reads the length of a sequence, and its values by `each`. If the length exceeds the
    /// capacity, no values are read.
    pub(super) fn sequence(&mut self, room: usize, width: usize, mut each: impl FnMut(&mut Self)) {
        let length = u32::from_le_bytes(self.take()) as usize;
        self.judge(length <= room, Wrong::TooLong(room));
        let length = if length <= room { length } else { 0 };
        (0..length).for_each(|_| each(self));
        self.columns += (room - length) * width;
    }

    /// Reads a text of at most `room` bytes.
    pub(super) fn text(&mut self, room: usize) -> &'a str {
        let length = u32::from_le_bytes(self.take()) as usize;
        let end = self.at.saturating_add(length);
        let found = self.bytes.get(self.at..end);
        // In CDR it ends with a zero, but some senders omit that for an empty text.
        let text = match (self.layout, found) {
            (Layout::Cdr, Some([text @ .., 0])) => Some(text),
            (Layout::Cdr, Some([_, ..])) => None,
            (_, found) => Some(found.unwrap_or_default()),
        };
        let text = text.filter(|text| !text.contains(&0)).and_then(|text| std::str::from_utf8(text).ok());
        self.at = end;
        match text {
            None => self.judge(false, Wrong::NotText),
            Some(text) => self.judge(text.len() <= room, Wrong::TooLong(room)),
        }
        text.filter(|text| text.len() <= room).unwrap_or_default()
    }

    pub(super) fn flag(&mut self) -> bool {
        let [byte] = self.take();
        self.judge(byte <= 1, Wrong::NotBool);
        byte != 0
    }

    fn judge(&mut self, is_right: bool, wrong: Wrong) {
        if !is_right {
            self.wrong.get_or_insert((self.columns, wrong));
        }
        self.columns += 1;
    }
}

/// Decodes a message, if the bytes are valid: with the exact length and finite numbers.
///
/// ```
/// use punctual_bridge::message::{DecodeError, Layout, decode};
/// use punctual_bridge::messages::Vector3;
///
/// let mut bytes = vec![0, 1, 0, 0];
/// bytes.extend([0.5, -0.25, 0.0].map(f64::to_le_bytes).as_flattened());
/// assert_eq!(decode(&bytes, Layout::Cdr), Ok(Vector3 { x: 0.5, y: -0.25, z: 0.0 }));
/// let short = decode::<Vector3>(&bytes[..20], Layout::Cdr).unwrap_err();
/// assert_eq!(short.to_string(), "20 bytes, but geometry_msgs/msg/Vector3 has 28");
/// ```
///
/// # Errors
/// [`DecodeError`] otherwise.
pub fn decode<T: Message>(bytes: &[u8], layout: Layout) -> Result<T, DecodeError> {
    decode_with(bytes, layout, Numbers::Finite)
}

/// Decodes a message as [`decode`] does, with the floating-point numbers that it may contain.
///
/// # Errors
/// [`DecodeError`].
pub fn decode_with<T: Message>(bytes: &[u8], layout: Layout, numbers: Numbers) -> Result<T, DecodeError> {
    let (header, big_endian) = match (layout, bytes) {
        (Layout::Packed, _) => (0, false),
        // The last two bytes are options, of which padding at the end is the only one defined.
        (Layout::Cdr, [0, order @ 0..=1, _, _, ..]) => (4, *order == 0),
        (Layout::Cdr, _) => return Err(DecodeError::Header),
    };
    let body = &bytes[header..];
    let mut from = Decoder { bytes: body, at: 0, layout, big_endian, columns: 0, wrong: None, numbers };
    let message = T::decode(&mut from);
    // In that case the end of the values is unknown.
    if let Some((index, Wrong::TooLong(room))) = from.wrong {
        return Err(DecodeError::TooLong { name: name_of(T::DESCRIPTION, index), room });
    }
    // CDR senders may pad to whole words.
    let is_filled = layout == Layout::Cdr && body.len() == from.at.next_multiple_of(4);
    if body.len() != from.at && !is_filled {
        let expected = header + from.at;
        return Err(DecodeError::Length { name: T::DESCRIPTION.name(), expected, found: bytes.len() });
    }
    match from.wrong {
        None => Ok(message),
        Some((index, wrong)) => {
            let name = name_of(T::DESCRIPTION, index);
            Err(match wrong {
                Wrong::NotFinite => DecodeError::NotFinite(name),
                Wrong::NotBool => DecodeError::NotBool(name),
                Wrong::NotText => DecodeError::NotText(name),
                Wrong::TooLong(room) => DecodeError::TooLong { name, room },
            })
        }
    }
}

fn name_of(description: &'static Description, column: usize) -> String {
    let name = columns(description).into_iter().nth(column).unwrap_or_default();
    // Without the unit, and without the suffix for a length.
    let name = name.split(' ').next().unwrap_or_default();
    name.strip_suffix(".length").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::cdr::Encoder;
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, punctual_macros::Message)]
    struct Inner {
        flag: bool,
        number: i16,
    }

    #[derive(Debug, Clone, Copy, PartialEq, punctual_macros::Message)]
    struct Outer {
        small: u8,
        wide: f64,
        inner: [Inner; 2],
        #[message(unit = "A")]
        single: f32,
        last: u8,
    }

    fn outer() -> Outer {
        let inner = [Inner { flag: true, number: -2 }, Inner { flag: false, number: 513 }];
        Outer { small: 7, wide: 1.5, inner, single: 0.25, last: 255 }
    }

    /// Returns its bytes in CDR.
    fn bytes(message: &Outer) -> Vec<u8> {
        Encoder::default().encode(0, message).to_vec()
    }

    #[test]
    fn round_trips_text() {
        let whole = bytes(&outer());
        assert_eq!(decode(&whole, Layout::Cdr), Ok(outer()));
        // With padding, as some senders add.
        let filled = [&*whole, &[0; 3]].concat();
        assert_eq!(filled.len() % 4, 0);
        assert_eq!(decode(&filled, Layout::Cdr), Ok(outer()));
    }

    #[test]
    fn reads_either_byte_order_and_packed_numbers() {
        let mut big = vec![0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        big.extend(1.5_f64.to_be_bytes());
        big.extend([1, 0, 0xff, 0xfe, 0, 0, 2, 1]);
        big.extend(0.25_f32.to_be_bytes());
        big.push(255);
        assert_eq!(decode(&big, Layout::Cdr), Ok(outer()));
        let mut packed = vec![7];
        packed.extend(1.5_f64.to_le_bytes());
        packed.extend([1, 0xfe, 0xff, 0, 1, 2]);
        packed.extend(0.25_f32.to_le_bytes());
        packed.push(255);
        assert_eq!(decode(&packed, Layout::Packed), Ok(outer()));
        assert_eq!(super::super::cdr::pack(Outer::DESCRIPTION, &bytes(&outer()), 0), packed);
        packed.push(0);
        let error = decode::<Outer>(&packed, Layout::Packed).unwrap_err();
        assert_eq!(error.to_string(), "21 bytes, but punctual_bridge/msg/Outer has 20");
    }

    #[test]
    fn rejects_other_lengths() {
        let whole = bytes(&outer());
        let long = [&*whole, &[0; 64]].concat();
        for length in (0..long.len()).filter(|length| ![whole.len(), whole.len() + 3].contains(length)) {
            let error = decode::<Outer>(&long[..length], Layout::Cdr).unwrap_err();
            let expected = match length {
                0..4 => DecodeError::Header,
                found => {
                    DecodeError::Length { name: "punctual_bridge/msg/Outer", expected: whole.len(), found }
                }
            };
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn accepts_nan_and_infinity_on_request() {
        let sent = Outer { wide: f64::NAN, single: f32::INFINITY, ..outer() };
        let received: Outer = decode_with(&bytes(&sent), Layout::Cdr, Numbers::Any).unwrap();
        assert!(received.wide.is_nan() && received.single == f32::INFINITY);
        assert_eq!((received.inner, received.last), (sent.inner, sent.last));
        // Every other check remains.
        let mut flag = bytes(&sent);
        flag[24] = 2;
        let error = decode_with::<Outer>(&flag, Layout::Cdr, Numbers::Any);
        assert_eq!(error, Err(DecodeError::NotBool("inner[1].flag".into())));
    }

    #[test]
    fn error_names_invalid_number() {
        for wide in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = decode::<Outer>(&bytes(&Outer { wide, ..outer() }), Layout::Cdr);
            assert_eq!(error, Err(DecodeError::NotFinite("wide".into())));
        }
        let error = decode::<Outer>(&bytes(&Outer { single: f32::NAN, ..outer() }), Layout::Cdr).unwrap_err();
        assert_eq!(error.to_string(), "single is not a finite number");
        let both = Outer { wide: f64::NAN, single: f32::NAN, ..outer() };
        let error = decode::<Outer>(&bytes(&both), Layout::Cdr).unwrap_err();
        assert_eq!(error.to_string(), "wide is not a finite number", "the first is named");
        let mut flag = bytes(&outer());
        flag[24] = 2;
        let error = decode::<Outer>(&flag, Layout::Cdr).unwrap_err();
        assert_eq!(error.to_string(), "inner[1].flag is neither true nor false");
        for header in [[0, 2, 0, 0], [0, 7, 0, 0], [1, 1, 0, 0]] {
            let bytes = [&header[..], &flag[4..]].concat();
            assert_eq!(decode::<Outer>(&bytes, Layout::Cdr), Err(DecodeError::Header));
        }
    }

    proptest! {
        #[test]
        fn accepts_only_messages(bytes: Vec<u8>) {
            for layout in [Layout::Cdr, Layout::Packed] {
                if let Ok(message) = decode::<Outer>(&bytes, layout) {
                    prop_assert!(message.wide.is_finite() && message.single.is_finite());
                }
            }
        }
    }
}
