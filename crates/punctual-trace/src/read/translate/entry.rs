//! The locations of an event's fields.

use crate::format::Order;
use crate::format::fields::{EventFormat, Field, Shape};
use crate::format::recipe::Code;

/// The examined size of a record: enough for eight bytes at every offset below [`REACH`].
pub(super) const HEAD: usize = 72;
/// Offsets below this need no further check.
pub(super) const REACH: usize = 64;

/// The start of a record, and the bytes after it if the record is shorter.
pub(super) type Head = [u8; HEAD];

/// A number in the head of a record, loaded without branching on its width or existence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    offset: u8,
    /// The number of the 64 loaded bits that do not belong to the number.
    rest: u8,
    /// The mask of those that do, shifted to the low end.
    mask: u64,
    /// The sign bit among them, if there is one.
    sign: u64,
}

impl Slot {
    /// Reads as 0.
    pub(super) const NOTHING: Self = Self { offset: 0, rest: 0, mask: 0, sign: 0 };

    /// The position that `common_type` has always had.
    pub(super) const ID: Self = Self { offset: 0, rest: 48, mask: 0xffff, sign: 0 };

    /// Returns the slot of that field at another offset, which is below [`REACH`], if it is a
    /// number.
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

    /// Returns the number, sign-extended if it is signed.
    #[inline(always)]
    pub(super) fn load(&self, order: Order, head: &Head) -> u64 {
        let at = usize::from(self.offset) % REACH;
        let eight = head[at..at + 8].try_into().expect("eight bytes follow every offset within reach");
        let number = match order {
            Order::Little => u64::from_le_bytes(eight),
            Order::Big => u64::from_be_bytes(eight) >> self.rest,
        };
        // Extends the sign, if there is one, without branching.
        ((number & self.mask) ^ self.sign).wrapping_sub(self.sign)
    }
}

/// Returns the bytes at `at`, padded with zeros.
pub(super) fn padded<const COUNT: usize>(bytes: &[u8], at: usize) -> [u8; COUNT] {
    let mut whole = [0; COUNT];
    let rest = bytes.get(at..).unwrap_or_default();
    let count = rest.len().min(COUNT);
    whole[..count].copy_from_slice(&rest[..count]);
    whole
}

/// The maximum number of fields that an event uses.
const SLOTS: usize = 5;

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) code: Code,
    /// True if the offset of a field is so large that its bytes must first be
    /// [gathered](Self::gather).
    pub(super) far: bool,
    /// The shortest record that has all the fields.
    pub(super) needs: u16,
    pub(super) by: Slot,
    pub(super) slots: [Slot; SLOTS],
    /// The offsets of the fields in the record, `by` last.
    pub(super) offsets: [u16; SLOTS + 1],
    /// Offsets of thread names: of the woken thread, or of the previous and the next one; 0 if the
    /// event has no names.
    pub(super) comms: [u16; 2],
}

pub(super) const NOTHING: Entry = Entry {
    code: Code::Unknown,
    far: false,
    needs: 0,
    by: Slot::NOTHING,
    slots: [Slot::NOTHING; SLOTS],
    offsets: [0; SLOTS + 1],
    comms: [0; 2],
};

impl Entry {
    /// Collects the bytes from which the slots are loaded, for a record with fields at large
    /// offsets.
    #[cold]
    pub(super) fn gather(&self, window: &[u8]) -> Head {
        let mut head = [0; HEAD];
        for (into, &offset) in head.chunks_exact_mut(8).zip(&self.offsets) {
            into.copy_from_slice(&padded::<8>(window, usize::from(offset)));
        }
        head
    }
}

/// Locates the fields of an event; the error is the reason for skipping it.
pub(super) fn resolve(format: &EventFormat, code: Code, names: &[&str]) -> Result<Entry, String> {
    let EventFormat { system, name, .. } = format;
    let find = |names: &str| {
        names
            .split('|')
            .find_map(|name| format.field(name))
            .ok_or_else(|| format!("{system}:{name} has no field `{names}`, so its records are left out"))
    };
    let by = find("common_pid")?;
    let fields = names.iter().map(|names| find(names)).collect::<Result<Vec<_>, _>>()?;
    let all = || fields.iter().copied().chain([by]);
    let mut entry = Entry { code, ..NOTHING };
    entry.needs = all().map(|field| field.offset + field.size).max().unwrap_or(0);
    entry.far = all().any(|field| usize::from(field.offset) >= REACH);
    for (field, place) in fields.iter().zip(0..).chain([(&by, SLOTS)]) {
        let offset = if entry.far { 8 * place as u8 } else { field.offset as u8 };
        let slot = Slot::of(field, offset).ok_or_else(|| {
            format!("{system}:{name}: `{}` has {} bytes, so its records are left out", field.name, field.size)
        })?;
        entry.offsets[place] = field.offset;
        *entry.slots.get_mut(place).unwrap_or(&mut entry.by) = slot;
    }
    let end = entry.needs;
    let comm = |name: &str| {
        let field = format.field(name).filter(|field| field.shape == Shape::Array(16) && field.size == 16);
        field.map(|field| field.offset).filter(|offset| offset + 16 <= end)
    };
    let comms = match code {
        Code::Switch => comm("prev_comm").zip(comm("next_comm")).map(|(out, coming)| [out, coming]),
        Code::Waking | Code::Wakeup | Code::WakeupNew => comm("comm").map(|woken| [woken, 0]),
        _ => None,
    };
    entry.comms = comms.unwrap_or_default();
    Ok(entry)
}
