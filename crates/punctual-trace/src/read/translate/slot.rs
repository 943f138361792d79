//! Where a number is in a record.

use crate::read::Order;
use crate::read::format::{Field, Shape};

/// A number in a record, loaded without asking how wide it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    offset: u16,
    /// How many of the 64 bits loaded are not the number's.
    rest: u8,
    signed: bool,
}

impl Slot {
    /// Reads as whatever is at the start.
    pub(super) const NOTHING: Self = Self { offset: 0, rest: 0, signed: false };

    /// Where `common_type` has always been.
    pub(super) const ID: Self = Self { offset: 0, rest: 48, signed: false };

    /// Where that field is, if it is a number.
    pub(super) fn of(field: &Field) -> Option<Self> {
        let plain = field.shape == Shape::Plain && [1, 2, 4, 8].contains(&field.size);
        plain.then(|| Self { offset: field.offset, rest: 64 - 8 * field.size as u8, signed: field.signed })
    }

    /// The number, sign-extended if it is signed. `bytes` begins with the record, which has the number.
    #[inline(always)]
    pub(super) fn load(self, order: Order, bytes: &[u8]) -> u64 {
        let at = usize::from(self.offset);
        let eight = match bytes.get(at..).and_then(|bytes| bytes.first_chunk::<8>()) {
            Some(&eight) => eight,
            None => short(bytes, at),
        };
        let top = match order {
            Order::Little => u64::from_le_bytes(eight) << self.rest,
            Order::Big => u64::from_be_bytes(eight),
        };
        // Extends the sign, if there is one, without asking.
        let sign = u64::from(self.signed) << (63 - self.rest);
        ((top >> self.rest) ^ sign).wrapping_sub(sign)
    }
}

/// What there is, where fewer than eight bytes are left.
#[cold]
fn short(bytes: &[u8], at: usize) -> [u8; 8] {
    let mut eight = [0; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    let count = rest.len().min(8);
    eight[..count].copy_from_slice(&rest[..count]);
    eight
}
