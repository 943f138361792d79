//! Where a number is in a record.

use crate::read::Order;
use crate::read::format::{Field, Shape};

/// How much of a record is looked at: enough for eight bytes at every offset below [`REACH`].
pub(super) const HEAD: usize = 72;
/// Offsets below it need no further check.
pub(super) const REACH: usize = 64;

/// The start of a record, and what follows it where the record is shorter.
pub(super) type Head = [u8; HEAD];

/// A number in the head of a record, loaded without asking how wide it is, or whether it is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    offset: u8,
    /// How many of the 64 bits loaded are not the number's.
    rest: u8,
    /// Those that are, moved to the low end.
    mask: u64,
    /// The highest of them, if it is a sign.
    sign: u64,
}

impl Slot {
    /// Reads as 0.
    pub(super) const NOTHING: Self = Self { offset: 0, rest: 0, mask: 0, sign: 0 };

    /// Where `common_type` has always been.
    pub(super) const ID: Self = Self { offset: 0, rest: 48, mask: 0xffff, sign: 0 };

    /// That field at another offset, which is below [`REACH`]; if it is a number.
    pub(super) fn of(field: &Field, offset: u8) -> Option<Self> {
        debug_assert!(usize::from(offset) < REACH);
        if field.shape != Shape::Plain || ![1, 2, 4, 8].contains(&field.size) {
            return None;
        }
        let rest = 64 - 8 * field.size as u8;
        let mask = u64::MAX >> rest;
        let sign = if field.signed { mask ^ (mask >> 1) } else { 0 };
        Some(Self { offset, rest, mask, sign })
    }

    /// The number, sign-extended if it is signed.
    #[inline(always)]
    pub(super) fn load(&self, order: Order, head: &Head) -> u64 {
        let at = usize::from(self.offset) % REACH;
        let eight = head[at..at + 8].try_into().expect("eight bytes follow every offset within reach");
        let number = match order {
            Order::Little => u64::from_le_bytes(eight),
            Order::Big => u64::from_be_bytes(eight) >> self.rest,
        };
        // Extends the sign, if there is one, without asking.
        ((number & self.mask) ^ self.sign).wrapping_sub(self.sign)
    }
}

/// What there is at `at`, and zeros after it.
pub(super) fn padded<const COUNT: usize>(bytes: &[u8], at: usize) -> [u8; COUNT] {
    let mut whole = [0; COUNT];
    let rest = bytes.get(at..).unwrap_or_default();
    let count = rest.len().min(COUNT);
    whole[..count].copy_from_slice(&rest[..count]);
    whole
}
