//! Where the fields of an event are.

use super::recipe::Code;
use super::slot::{HEAD, Head, REACH, Slot, padded};
use crate::read::format::EventFormat;

/// Most fields an event here is made of.
const SLOTS: usize = 5;

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) code: Code,
    /// Some field is so far back that its bytes are [gathered](Self::gather) first.
    pub(super) far: bool,
    /// The shortest record that has all the fields.
    pub(super) needs: u16,
    pub(super) by: Slot,
    pub(super) slots: [Slot; SLOTS],
    /// Where the fields are in the record, `by` last.
    pub(super) offsets: [u16; SLOTS + 1],
}

pub(super) const NOTHING: Entry = Entry {
    code: Code::Unknown,
    far: false,
    needs: 0,
    by: Slot::NOTHING,
    slots: [Slot::NOTHING; SLOTS],
    offsets: [0; SLOTS + 1],
};

impl Entry {
    /// What the slots are loaded from, for a record that has its fields far back.
    #[cold]
    pub(super) fn gather(&self, window: &[u8]) -> Head {
        let mut head = [0; HEAD];
        for (into, &offset) in head.chunks_exact_mut(8).zip(&self.offsets) {
            into.copy_from_slice(&padded::<8>(window, usize::from(offset)));
        }
        head
    }
}

/// Where the fields of an event are; `Err` says why it has to be left out.
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
    Ok(entry)
}
