//! Decoding of the records that the BPF programs write.

use crate::event::{Event, Kind, Tid};

/// The number of bits of a record that count the records before it.
const COUNT_BITS: u32 = 30;

/// An entry to the scheduler, or the return from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::record) struct Record {
    /// The time, in ns of `CLOCK_MONOTONIC`.
    pub(in crate::record) time: u64,
    /// The thread that called, or to which the scheduler returns.
    pub(in crate::record) thread: Tid,
    /// True for a return.
    pub(in crate::record) leaves: bool,
    /// On entry, whether a thread is preempted; on return, whether there was a switch.
    pub(in crate::record) argument: bool,
    /// The number of records of this CPU that are missing directly before it.
    pub(in crate::record) lost: u64,
    /// The time of the last record before the missing ones.
    pub(in crate::record) after: u64,
}

impl Record {
    /// Returns the events of the record: the missing ones before it, if any, and the record itself.
    ///
    /// Both ends of a gap are marked. Other events of the CPU lie between them, and the jobs in
    /// progress at either end are unreliable.
    pub(in crate::record) fn events(&self, cpu: u16) -> impl Iterator<Item = Event> + use<> {
        let Self { time, thread, leaves, lost, after, .. } = *self;
        let gap = |time, count| (lost > 0).then_some(Event { time, cpu, by: 0, kind: Kind::Lost { count } });
        let kind = if leaves { Kind::ScheduleExit } else { Kind::ScheduleEnter };
        gap(after, lost).into_iter().chain(gap(time, 0)).chain([Event { time, cpu, by: thread, kind }])
    }
}

/// Decodes the records of a CPU, in their order.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The expected number of records so far.
    next: u64,
    /// The time of the last record.
    last: u64,
}

impl Decoder {
    /// Returns the next record; `None` if it is too short.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> Option<Record> {
        let (time, rest) = bytes.split_first_chunk()?;
        let (thread, rest) = rest.split_first_chunk()?;
        let what = u32::from_ne_bytes(*rest.first_chunk()?);
        // The count is truncated, so it detects gaps of up to 2^30 records, which take minutes.
        let lost = u64::from((what >> 2).wrapping_sub(self.next as u32) & ((1 << COUNT_BITS) - 1));
        self.next += lost + 1;
        let time = u64::from_ne_bytes(*time);
        let after = std::mem::replace(&mut self.last, time);
        Some(Record {
            time,
            thread: u32::from_ne_bytes(*thread),
            leaves: what & 1 != 0,
            argument: what & 2 != 0,
            lost,
            after,
        })
    }

    /// Returns how many records are missing after the last one, if `made` records were written.
    pub(super) fn missing(&self, made: u64) -> u64 {
        made.saturating_sub(self.next)
    }

    /// Returns the time of the last record.
    pub(super) fn last(&self) -> u64 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(time: u64, thread: u32, what: u32) -> Vec<u8> {
        [&time.to_ne_bytes()[..], &thread.to_ne_bytes(), &what.to_ne_bytes()].concat()
    }

    #[test]
    fn reports_records_missing_before_each_record() {
        let lost = |decoder: &mut Decoder, count: u32, flags| {
            decoder.decode(&bytes(u64::from(count), 411, count << 2 | flags)).map(|record| record.lost)
        };
        let mut decoder = Decoder::default();
        assert_eq!(
            [(0, 0), (1, 3), (4, 1), (5, 0)].map(|(n, f)| lost(&mut decoder, n, f)),
            [0, 0, 2, 0].map(Some)
        );
        assert_eq!((decoder.missing(6), decoder.missing(9), decoder.last()), (0, 3, 5));
        // The count wraps around.
        let highest = (1 << COUNT_BITS) - 1;
        let mut decoder = Decoder { next: u64::from(highest), last: 0 };
        assert_eq!([highest, 0, 2].map(|n| lost(&mut decoder, n, 0)), [0, 0, 1].map(Some));
        assert_eq!(decoder.missing((1 << COUNT_BITS) + 4), 1);
    }

    #[test]
    fn translates_records_to_events() {
        let mut decoder = Decoder { next: 0, last: 5 };
        let record = decoder.decode(&bytes(7, 411, 2 << 2 | 1)).unwrap();
        assert_eq!(record, Record { time: 7, thread: 411, leaves: true, argument: false, lost: 2, after: 5 });
        let events: Vec<_> = record.events(1).collect();
        let event = |time, by, kind| Event { time, cpu: 1, by, kind };
        let gap = [event(5, 0, Kind::Lost { count: 2 }), event(7, 0, Kind::Lost { count: 0 })];
        assert_eq!(events, [gap[0], gap[1], event(7, 411, Kind::ScheduleExit)]);
        let entry = decoder.decode(&bytes(9, 17, 3 << 2 | 2)).unwrap();
        assert!(entry.argument && entry.lost == 0);
        assert_eq!(entry.events(0).map(|event| event.kind).collect::<Vec<_>>(), [Kind::ScheduleEnter]);
        assert_eq!(decoder.decode(&[0; 15]), None);
    }
}
