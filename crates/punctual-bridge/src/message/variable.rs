//! Values of variable length, as plain data: they always occupy the memory of their capacity.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::cdr::{Number, width};
use super::{Decoder, Element, Encoder, Kind, Scalar, Value};

/// The capacity is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the capacity is {room}")]
pub struct NoRoom {
    /// The capacity.
    pub room: usize,
}

/// Up to `N` values: `T[]` in ROS. The capacity is private to this program; others read an
/// unbounded sequence.
///
/// ```
/// use punctual_bridge::message::Sequence;
///
/// let mut positions = Sequence::<f64, 4>::from([0.5, 0.25]);
/// positions.push(1.0)?;
/// assert_eq!(*positions, [0.5, 0.25, 1.0]);
/// # Ok::<(), punctual_bridge::message::NoRoom>(())
/// ```
#[derive(Clone, Copy)]
pub struct Sequence<T, const N: usize> {
    values: [T; N],
    /// At most `N`.
    length: usize,
}

impl<T: Element + Copy, const N: usize> Sequence<T, N> {
    /// Creates an empty sequence.
    pub const fn new() -> Self {
        Self::EMPTY
    }

    /// Creates a sequence with these values.
    ///
    /// # Errors
    /// [`NoRoom`] if there are too many.
    pub fn from_slice(values: &[T]) -> Result<Self, NoRoom> {
        let mut sequence = Self::new();
        sequence.values.get_mut(..values.len()).ok_or(NoRoom { room: N })?.copy_from_slice(values);
        sequence.length = values.len();
        Ok(sequence)
    }
}

impl<T, const N: usize> Sequence<T, N> {
    /// Appends a value.
    ///
    /// # Errors
    /// [`NoRoom`] if the sequence is full.
    pub fn push(&mut self, value: T) -> Result<(), NoRoom> {
        *self.values.get_mut(self.length).ok_or(NoRoom { room: N })? = value;
        self.length += 1;
        Ok(())
    }

    /// Removes all values.
    pub const fn clear(&mut self) {
        self.length = 0;
    }
}

impl<T: Element + Copy, const N: usize> Default for Sequence<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Element + Copy, const M: usize, const N: usize> From<[T; M]> for Sequence<T, N> {
    /// Too many values are a compilation error.
    fn from(values: [T; M]) -> Self {
        const { assert!(M <= N, "too many values for the capacity") };
        let mut sequence = Self::new();
        sequence.values[..M].copy_from_slice(&values);
        sequence.length = M;
        sequence
    }
}

impl<T, const N: usize> Deref for Sequence<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values[..self.length]
    }
}

impl<T, const N: usize> DerefMut for Sequence<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[..self.length]
    }
}

impl<T: PartialEq, const N: usize> PartialEq for Sequence<T, N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for Sequence<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Element + Copy, const N: usize> Value for Sequence<T, N> {
    const KIND: Kind = Kind::Sequence(&T::KIND, N);
    const EMPTY: Self = Self { values: [T::EMPTY; N], length: 0 };

    fn encode(&self, to: &mut Encoder) {
        to.length(self.length);
        self.iter().for_each(|value| value.encode(to));
    }

    fn decode(from: &mut Decoder<'_>) -> Self {
        let mut sequence = Self::new();
        // At most as many as fit.
        from.sequence(N, width(T::KIND), |from| _ = sequence.push(T::decode(from)));
        sequence
    }
}

/// A text of up to `N` bytes: `string` in ROS.
///
/// ```
/// use punctual_bridge::message::Text;
///
/// let joint = Text::<16>::new("pan")?;
/// assert_eq!(&*joint, "pan");
/// # Ok::<(), punctual_bridge::message::NoRoom>(())
/// ```
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    /// UTF-8 up to `length`.
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    /// Creates a text, up to the first zero byte if there is any, since receivers stop there.
    ///
    /// # Errors
    /// [`NoRoom`] if it is too long.
    pub fn new(text: &str) -> Result<Self, NoRoom> {
        let text = text.split('\0').next().unwrap_or_default();
        let mut bytes = [0; N];
        bytes.get_mut(..text.len()).ok_or(NoRoom { room: N })?.copy_from_slice(text.as_bytes());
        Ok(Self { bytes, length: text.len() })
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> Deref for Text<N> {
    type Target = str;

    fn deref(&self) -> &str {
        // The bytes were copied from a complete text.
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl<const N: usize> PartialEq for Text<N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<const N: usize> Eq for Text<N> {}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<const N: usize> Value for Text<N> {
    const KIND: Kind = Kind::Text(N);
    const EMPTY: Self = Self { bytes: [0; N], length: 0 };

    fn encode(&self, to: &mut Encoder) {
        to.text(self);
    }

    fn decode(from: &mut Decoder<'_>) -> Self {
        // A longer text was rejected.
        Self::new(from.text(N)).unwrap_or_default()
    }
}

impl<const N: usize> Element for Text<N> {}

/// 8 bits that are not a number: `byte` in ROS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Byte(pub u8);

impl Value for Byte {
    const KIND: Kind = Kind::Scalar(Scalar::Byte);
    const EMPTY: Self = Self(0);

    fn encode(&self, to: &mut Encoder) {
        self.0.encode(to);
    }

    fn decode(from: &mut Decoder<'_>) -> Self {
        let [byte] = from.take();
        from.check_number(Number::Unsigned(byte.into()));
        Self(byte)
    }
}

impl Element for Byte {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::cdr::cells;
    use super::super::show::columns;
    use super::super::{DecodeError, Layout, Message, decode};
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Default, punctual_macros::Message)]
    struct Part<const N: usize> {
        name: Text<N>,
        last: f32,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Default, punctual_macros::Message)]
    struct Whole {
        level: Byte,
        parts: Sequence<Part<4>, 2>,
        wide: Sequence<f64, 3>,
        flag: bool,
    }

    fn whole() -> Whole {
        let part = Part { name: Text::new("ab").unwrap(), last: 0.25 };
        Whole { level: Byte(1), parts: [part].into(), wide: [1.5, -2.0].into(), flag: true }
    }

    fn bytes(whole: &Whole) -> Vec<u8> {
        Encoder::default().encode(0, whole).to_vec()
    }

    #[test]
    fn lie_in_cdr_behind_their_lengths() {
        let mut expected = vec![0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, b'a', b'b', 0, 0];
        expected.extend(0.25_f32.to_le_bytes());
        expected.extend([2, 0, 0, 0]);
        expected.extend([1.5, -2.0].map(f64::to_le_bytes).as_flattened());
        expected.push(1);
        assert_eq!(bytes(&whole()), expected);
        assert_eq!(decode(&expected, Layout::Cdr), Ok(whole()));
        for length in 4..expected.len() {
            let error = decode::<Whole>(&expected[..length], Layout::Cdr).unwrap_err();
            assert!(
                matches!(error, DecodeError::Length { .. } | DecodeError::NotText(_)),
                "{length}: {error}"
            );
        }
    }

    #[test]
    fn profiles_have_columns_for_all_slots() {
        let names = columns(Whole::DESCRIPTION);
        let expected = [
            "level",
            "parts.length",
            "parts[0].name",
            "parts[0].last",
            "parts[1].name",
            "parts[1].last",
            "wide.length",
            "wide[0]",
            "wide[1]",
            "wide[2]",
            "flag",
        ];
        assert_eq!(names, expected);
        let mut read = Vec::new();
        cells(Whole::DESCRIPTION, &bytes(&whole()), &mut |cell| read.push(cell.to_string()));
        assert_eq!(read, ["1", "1", "\"ab\"", "0.25", "", "", "2", "1.5", "-2", "", "true"]);
    }

    #[test]
    fn rejects_excess_parameters_by_name() {
        let mut many = bytes(&whole());
        many[24] = 4;
        let error = decode::<Whole>(&many, Layout::Cdr).unwrap_err();
        assert_eq!(error.to_string(), "wide is longer than its capacity of 3");
        // The decoder does not read four billion elements one by one.
        many[24..28].fill(0xff);
        assert!(matches!(decode::<Whole>(&many, Layout::Cdr), Err(DecodeError::TooLong { .. })));
        let mut last = bytes(&whole());
        last[20..24].copy_from_slice(&f32::NAN.to_le_bytes());
        assert_eq!(decode::<Whole>(&last, Layout::Cdr), Err(DecodeError::NotFinite("parts[0].last".into())));
        let mut flag = bytes(&whole());
        *flag.last_mut().unwrap() = 2;
        // After sequences that are shorter than their capacity.
        assert_eq!(decode::<Whole>(&flag, Layout::Cdr), Err(DecodeError::NotBool("flag".into())));
        for (at, byte) in [(16, 0xff), (17, 0), (18, b'c')] {
            let mut name = bytes(&whole());
            name[at] = byte;
            let error = decode::<Whole>(&name, Layout::Cdr).unwrap_err();
            assert_eq!(error.to_string(), "parts[0].name is not a valid text", "{at}");
        }
    }

    #[test]
    fn parameters_respect_capacity() {
        let mut sequence = Sequence::<u8, 2>::from_slice(&[1, 2]).unwrap();
        assert_eq!(sequence.push(3), Err(NoRoom { room: 2 }));
        sequence.clear();
        assert_eq!((sequence.len(), sequence.push(4), sequence[0]), (0, Ok(()), 4));
        assert!(Sequence::<u8, 2>::from_slice(&[1, 2, 3]).is_err());
        assert_eq!(*Sequence::<u8, 3>::from_slice(&[1, 2]).unwrap(), [1, 2]);
        assert_eq!(Text::<4>::new("äöü"), Err(NoRoom { room: 4 }));
        assert_eq!(&*Text::<4>::new("äö").unwrap(), "äö");
        assert_eq!(&*Text::<4>::new("a\0b").unwrap(), "a");
    }

    proptest! {
        #[test]
        fn read_as_they_were_written(name in "[a-zä]{0,2}", wide in prop::collection::vec(-1e300..1e300, 0..=3)) {
            let part = Part { name: Text::new(&name).unwrap(), last: 1.0 };
            let written = Whole {
                level: Byte(255),
                parts: [part, part].into(),
                wide: Sequence::from_slice(&wide).unwrap(),
                flag: false,
            };
            prop_assert_eq!(decode(&bytes(&written), Layout::Cdr), Ok(written));
            {
                let packed = super::super::cdr::pack(Whole::DESCRIPTION, &bytes(&written), 0);
                prop_assert_eq!(decode(&packed, Layout::Packed), Ok(written));
            }
        }

        #[test]
        fn topics_accept_only_messages(mut bytes: Vec<u8>, at: u8, length: u8) {
            bytes.splice(0..0, [0, 1, 0, 0]);
            if let Some(byte) = bytes.get_mut(usize::from(at)) {
                *byte = length;
            }
            for layout in [Layout::Cdr, Layout::Packed] {
                if let Ok(message) = decode::<Whole>(&bytes, layout) {
                    prop_assert!(message.wide.iter().all(|number| number.is_finite()));
                }
            }
        }
    }
}
