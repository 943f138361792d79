//! The timeline of a job: its phases in order.

use crate::jobs::MAX_SEGMENTS;
use crate::jobs::job::{Phase, Segment};

/// Records the segments of a job, if enabled.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentTrack {
    wanted: bool,
    start: u64,
}

impl SegmentTrack {
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, start: 0 }
    }

    pub(super) fn begin(&mut self, time: u64) {
        self.start = time;
    }

    /// Attributes the time since the last call to this phase.
    #[inline]
    pub(super) fn until(&mut self, segments: &mut Vec<Segment>, phase: Phase, end: u64, cpu: u16) {
        if !self.wanted {
            return;
        }
        let start = std::mem::replace(&mut self.start, end);
        let room = segments.len() < MAX_SEGMENTS;
        match segments.last_mut() {
            Some(last) if last.phase == phase && last.end == start && last.cpu == cpu => last.end = end,
            _ if start < end && room => segments.push(Segment { start, end, cpu, phase }),
            _ => {}
        }
    }

    /// Moves the release after it becomes known more precisely.
    pub(super) fn released(&self, segments: &mut [Segment], time: u64) {
        if let Some(first) = segments.first_mut().filter(|first| first.phase == Phase::Jitter) {
            first.start = time.min(first.end);
        }
    }

    /// Discards everything since `time`, to be recorded again.
    pub(super) fn undo(&mut self, segments: &mut Vec<Segment>, time: u64) {
        if !self.wanted {
            return;
        }
        segments.retain(|segment| segment.start < time);
        if let Some(last) = segments.last_mut() {
            last.end = last.end.min(time);
        }
        self.start = time;
    }

    /// Reclassifies the last `ns` of possible entry overhead as overhead. Handlers may interrupt
    /// them.
    pub(super) fn entry_was_overhead(&self, segments: &mut [Segment], mut ns: u64) {
        for segment in segments.iter_mut().rev() {
            if ns == 0 {
                return;
            }
            if segment.phase == Phase::ExecutionOrOverhead {
                segment.phase = Phase::Overhead;
                ns = ns.saturating_sub(segment.end - segment.start);
            }
        }
    }

    /// Reclassifies the last `ns` of execution as possible exit overhead. Handlers and waits for
    /// locks may interrupt them.
    pub(super) fn exit_may_be_overhead(&self, segments: &mut Vec<Segment>, mut ns: u64) {
        for index in (0..segments.len()).rev() {
            let Segment { start, end, cpu, phase } = segments[index];
            match phase {
                _ if ns == 0 => return,
                Phase::Execution => {}
                Phase::Blocking | Phase::Interference => continue,
                _ => return,
            }
            let split = end.saturating_sub(ns).max(start);
            ns -= end - split;
            let doubtful = Segment { start: split, end, cpu, phase: Phase::ExecutionOrOverhead };
            if split == start {
                segments[index] = doubtful;
            } else {
                segments[index].end = split;
                if segments.len() < MAX_SEGMENTS {
                    segments.insert(index + 1, doubtful);
                }
            }
        }
    }
}
