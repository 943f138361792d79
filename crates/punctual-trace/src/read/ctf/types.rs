//! The types that a metadata file declares, and their values in a stream.

use std::rc::Rc;

use crate::format::Order;

/// A type.
#[derive(Debug, Clone)]
pub(super) enum Type {
    Integer(Integer),
    Enumeration(Rc<Enumeration>),
    /// Bits of no interest here, such as floating-point numbers.
    Opaque {
        bits: u64,
        align: u64,
    },
    /// A NUL-terminated string.
    Text,
    Structure(Rc<Structure>),
    Variant(Rc<Variant>),
    Array(Rc<(Type, Length)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Integer {
    /// 1 to 64.
    pub(super) bits: u32,
    pub(super) align: u64,
    pub(super) signed: bool,
    pub(super) order: Order,
    /// True for a character.
    pub(super) text: bool,
    /// True for a timestamp.
    pub(super) clock: bool,
}

#[derive(Debug)]
pub(super) struct Enumeration {
    pub(super) base: Integer,
    /// The labels of values from the first number to the second.
    pub(super) labels: Vec<(String, i128, i128)>,
}

#[derive(Debug, Default)]
pub(super) struct Structure {
    pub(super) fields: Vec<(String, Type)>,
    pub(super) align: u64,
}

#[derive(Debug)]
pub(super) struct Variant {
    /// The field whose label selects the alternative.
    pub(super) tag: String,
    pub(super) options: Vec<(String, Type)>,
}

/// The number of elements of an array.
#[derive(Debug)]
pub(super) enum Length {
    Fixed(u64),
    /// As many as the value of this field.
    Field(String),
}

impl Integer {
    /// The type of a system call's result.
    pub(super) const LONG: Self =
        Self { bits: 64, align: 8, signed: true, order: Order::NATIVE, text: false, clock: false };
}

impl Type {
    /// Returns its alignment in bits.
    pub(super) fn align(&self) -> u64 {
        match self {
            Self::Integer(integer) => integer.align,
            Self::Enumeration(enumeration) => enumeration.base.align,
            Self::Opaque { align, .. } => *align,
            Self::Text => 8,
            Self::Structure(structure) => structure.align,
            // Its alternatives align themselves.
            Self::Variant(_) => 1,
            Self::Array(array) => array.0.align(),
        }
    }
}

/// A value that has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A number, sign-extended if it is signed.
    Number(u64),
    Text(&'a [u8]),
    /// Anything else.
    Other,
}

/// A field that has been read, in the order of the stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf<'a, 'm> {
    pub(super) name: &'m str,
    pub(super) value: Value<'a>,
    of: Option<&'m Enumeration>,
    /// The number of timestamp bits that it contains, if it is one.
    pub(super) clock: Option<u32>,
}

impl<'m> Leaf<'_, 'm> {
    /// A number.
    pub(super) fn number(name: &'m str, value: u64) -> Self {
        Self { name, value: Value::Number(value), of: None, clock: None }
    }
}

/// The content ends within a value, or a value is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// More fields than any event has; bounds the work that a few bytes of metadata can cause.
const MAX_FIELDS: usize = 1 << 16;

/// Reads values from a sequence of bits.
#[derive(Debug, Clone)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// In bits.
    pub(super) at: u64,
    end: u64,
}

impl<'a> Bits<'a> {
    /// Creates a reader of the first `end` bits of these bytes.
    pub(super) fn new(bytes: &'a [u8], end: u64) -> Self {
        Self { bytes, at: 0, end: end.min(8 * bytes.len() as u64) }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.end
    }

    pub(super) fn align(&mut self, align: u64) {
        self.at = self.at.checked_next_multiple_of(align.max(1)).unwrap_or(u64::MAX);
    }

    fn skip(&mut self, bits: u64) -> Result<(), Malformed> {
        let to = self.at.checked_add(bits).filter(|&to| to <= self.end).ok_or(Malformed)?;
        self.at = to;
        Ok(())
    }

    fn number(&mut self, integer: &Integer) -> Result<u64, Malformed> {
        self.align(integer.align);
        let (from, bits) = (self.at, u64::from(integer.bits));
        self.skip(bits)?;
        let bytes = &self.bytes[(from / 8) as usize..self.at.div_ceil(8) as usize];
        // Its bits span up to nine bytes.
        let mut whole: u128 = 0;
        let value = match integer.order {
            Order::Little => {
                bytes.iter().rev().for_each(|&byte| whole = whole << 8 | u128::from(byte));
                whole >> (from % 8)
            }
            Order::Big => {
                bytes.iter().for_each(|&byte| whole = whole << 8 | u128::from(byte));
                whole >> (8 * bytes.len() as u64 - from % 8 - bits)
            }
        };
        let unused = 64 - integer.bits;
        let value = (value as u64) << unused;
        Ok(if integer.signed { ((value as i64) >> unused) as u64 } else { value >> unused })
    }

    fn bytes(&mut self, count: u64) -> Result<&'a [u8], Malformed> {
        self.align(8);
        let from = (self.at / 8) as usize;
        self.skip(count.checked_mul(8).ok_or(Malformed)?)?;
        Ok(&self.bytes[from..(self.at / 8) as usize])
    }

    fn text(&mut self) -> Result<&'a [u8], Malformed> {
        self.align(8);
        let rest = self.bytes.get((self.at / 8) as usize..(self.end / 8) as usize).ok_or(Malformed)?;
        let length = rest.iter().position(|&byte| byte == 0).ok_or(Malformed)?;
        self.at += 8 * (length as u64 + 1);
        Ok(&rest[..length])
    }

    /// Reads a value of that type and appends its fields to the earlier ones, to which its lengths
    /// and tags refer.
    pub(super) fn read<'m>(
        &mut self,
        name: &'m str,
        of: &'m Type,
        leaves: &mut Vec<Leaf<'a, 'm>>,
    ) -> Result<(), Malformed> {
        if leaves.len() >= MAX_FIELDS {
            return Err(Malformed);
        }
        let mut add = |value, of, clock| leaves.push(Leaf { name, value, of, clock });
        match of {
            Type::Integer(integer) => {
                let value = Value::Number(self.number(integer)?);
                add(value, None, integer.clock.then_some(integer.bits));
            }
            Type::Enumeration(enumeration) => {
                let value = Value::Number(self.number(&enumeration.base)?);
                add(value, Some(enumeration), None);
            }
            Type::Opaque { bits, align } => {
                self.align(*align);
                self.skip(*bits)?;
                add(Value::Other, None, None);
            }
            Type::Text => add(Value::Text(self.text()?), None, None),
            Type::Structure(structure) => {
                self.align(structure.align);
                for (name, field) in &structure.fields {
                    self.read(name, field, leaves)?;
                }
            }
            Type::Variant(variant) => {
                let option = variant.choose(leaves).ok_or(Malformed)?;
                self.read(name, option, leaves)?;
            }
            Type::Array(array) => {
                let (element, length) = &**array;
                let length = match length {
                    Length::Fixed(length) => *length,
                    Length::Field(field) => number(leaves, field).ok_or(Malformed)?,
                };
                self.align(element.align());
                match element {
                    Type::Integer(Integer { bits: 8, align: 1 | 2 | 4 | 8, text, .. }) => {
                        let bytes = self.bytes(length)?;
                        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                        let value = if *text { Value::Text(&bytes[..end]) } else { Value::Other };
                        leaves.push(Leaf { name, value, of: None, clock: None });
                    }
                    _ => {
                        // Nothing later refers to an element, so none is kept.
                        let before = leaves.len();
                        for index in 0..length {
                            if index >= MAX_FIELDS as u64 {
                                return Err(Malformed);
                            }
                            self.read(name, element, leaves)?;
                            leaves.truncate(before);
                        }
                        leaves.push(Leaf { name, value: Value::Other, of: None, clock: None });
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the number in the most recent field of that name, which may be a path such as
/// `stream.event.header.id`.
pub(super) fn number(leaves: &[Leaf<'_, '_>], path: &str) -> Option<u64> {
    leaf(leaves, path).and_then(|leaf| match leaf.value {
        Value::Number(number) => Some(number),
        _ => None,
    })
}

fn leaf<'l, 'a, 'm>(leaves: &'l [Leaf<'a, 'm>], path: &str) -> Option<&'l Leaf<'a, 'm>> {
    let name = path.rsplit('.').next().unwrap_or(path);
    leaves.iter().rev().find(|leaf| leaf.name == name)
}

impl Variant {
    fn choose(&self, leaves: &[Leaf<'_, '_>]) -> Option<&Type> {
        let leaf = leaf(leaves, &self.tag)?;
        let (Value::Number(number), Some(of)) = (leaf.value, leaf.of) else { return None };
        let number = if of.base.signed { i128::from(number as i64) } else { i128::from(number) };
        let is_it = |(_, first, last): &&(String, i128, i128)| (*first..=*last).contains(&number);
        let (label, ..) = of.labels.iter().find(is_it)?;
        let option = |(name, _): &&(String, Type)| name == label || name.strip_prefix('_') == Some(label);
        self.options.iter().find(option).map(|(_, option)| option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(bits: u32, align: u64, order: Order, signed: bool) -> Integer {
        Integer { bits, align, signed, order, text: false, clock: false }
    }

    #[test]
    fn reads_bits_in_either_order() {
        // 5 bits of 0b10110 and 27 of the rest.
        let mut little = Bits::new(&[0b1011_0110, 0x34, 0x12, 0x80], 32);
        assert_eq!(little.number(&integer(5, 1, Order::Little, false)), Ok(0b10110));
        assert_eq!(little.number(&integer(27, 1, Order::Little, false)), Ok(0x8012_34a0 >> 5 & 0x7ff_ffff));
        let mut big = Bits::new(&[0b1011_0101, 0x34, 0x12, 0x80], 32);
        assert_eq!(big.number(&integer(5, 1, Order::Big, false)), Ok(0b10110));
        assert_eq!(big.number(&integer(27, 1, Order::Big, false)), Ok(0x534_1280));
        assert_eq!(big.number(&integer(1, 1, Order::Big, false)), Err(Malformed));
    }

    #[test]
    fn extends_signs_and_keeps_alignment() {
        let bytes = [0xff, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0x80];
        let mut bits = Bits::new(&bytes, 128);
        assert_eq!(bits.number(&integer(8, 8, Order::Little, true)), Ok(u64::MAX));
        assert_eq!(bits.number(&integer(32, 32, Order::Little, true)), Ok(-2_i64 as u64));
        assert_eq!(bits.number(&integer(64, 8, Order::Little, false)), Ok(0x8000_0000_0000_0001));
        assert!(bits.is_at_end());
    }

    #[test]
    fn bounds_arrays_of_empty_elements() {
        let nothing = Type::Structure(Rc::default());
        let array = Type::Array(Rc::new((nothing, Length::Fixed(u64::MAX))));
        assert_eq!(Bits::new(&[], 0).read("a", &array, &mut Vec::new()), Err(Malformed));
    }
}
