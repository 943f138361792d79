//! Samples: their fields and the order of these.

use crate::format::Order;

/// The bits of `sample_type`.
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// The bits of `read_format`.
const TIME_ENABLED: u64 = 1;
const TIME_RUNNING: u64 = 2;
const READ_ID: u64 = 4;
const GROUP: u64 = 8;
const READ_LOST: u64 = 16;

/// The fields of an event's samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
}

/// A tracepoint's sample.
pub(super) struct Sample<'a> {
    pub(super) time: u64,
    pub(super) cpu: u32,
    /// The record as in the ring buffer.
    pub(super) raw: &'a [u8],
}

impl Fields {
    /// Returns the position of the event's ID in a sample.
    pub(super) fn id_at(&self) -> Option<usize> {
        let has = |&bit: &u64| self.sample_type & bit != 0;
        match (has(&IDENTIFIER), has(&ID)) {
            (true, _) => Some(0),
            (false, true) => Some(8 * [IP, TID, TIME, ADDR].iter().filter(|bit| has(bit)).count()),
            (false, false) => None,
        }
    }

    /// Parses a sample; `None` if it lacks a time, CPU or record, or is shorter than it claims.
    pub(super) fn sample<'a>(&self, order: Order, body: &'a [u8]) -> Option<Sample<'a>> {
        let Self { sample_type, .. } = *self;
        let has = |bit| sample_type & bit != 0;
        let mut at = 8 * [IDENTIFIER, IP, TID].into_iter().filter(|&bit| has(bit)).count();
        let time = has(TIME).then(|| order.u64(body, at))??;
        at += 8 * [TIME, ADDR, ID, STREAM_ID].into_iter().filter(|&bit| has(bit)).count();
        let cpu = has(CPU).then(|| order.u32(body, at))??;
        at += 8 * [CPU, PERIOD].into_iter().filter(|&bit| has(bit)).count();
        if has(READ) {
            at = at.checked_add(self.read_length(order, body, at)?)?;
        }
        if has(CALLCHAIN) {
            let addresses = usize::try_from(order.u64(body, at)?).ok()?;
            at = at.checked_add(8)?.checked_add(addresses.checked_mul(8)?)?;
        }
        let length = has(RAW).then(|| order.u32(body, at))?? as usize;
        let raw = body.get(at.checked_add(4)?..)?.get(..length)?;
        Some(Sample { time, cpu, raw })
    }

    /// Returns the length of the counter values.
    fn read_length(&self, order: Order, body: &[u8], at: usize) -> Option<usize> {
        let has = |bit| usize::from(self.read_format & bit != 0);
        let each = 1 + has(READ_ID) + has(READ_LOST);
        let times = has(TIME_ENABLED) + has(TIME_RUNNING);
        let values = match has(GROUP) {
            0 => each + times,
            _ => usize::try_from(order.u64(body, at)?).ok()?.checked_mul(each)?.checked_add(1 + times)?,
        };
        values.checked_mul(8)
    }

    /// Returns the time and CPU of a record other than a sample: it ends with the first fields of a
    /// sample.
    pub(super) fn place(&self, order: Order, body: &[u8]) -> (u64, Option<u32>) {
        let has = |bit| self.sample_type & bit != 0;
        let after = |bits: &[u64]| 8 * bits.iter().filter(|&&bit| has(bit)).count();
        let from_end = |length: usize| body.len().checked_sub(length);
        let time =
            has(TIME).then(|| order.u64(body, from_end(after(&[TIME, ID, STREAM_ID, CPU, IDENTIFIER]))?));
        let cpu = has(CPU).then(|| order.u32(body, from_end(after(&[CPU, IDENTIFIER]))?));
        (time.flatten().unwrap_or(0), cpu.flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locates_event_id_in_samples() {
        let id_at = |sample_type| Fields { sample_type, read_format: 0 }.id_at();
        assert_eq!(id_at(IDENTIFIER | IP | TID | TIME | ID), Some(0));
        assert_eq!(id_at(IP | TID | TIME | ID | CPU | PERIOD | RAW), Some(24));
        assert_eq!(id_at(TID | TIME | ADDR | ID | STREAM_ID), Some(24));
        assert_eq!(id_at(IP | TID | TIME | CPU | RAW), None);
    }
}
