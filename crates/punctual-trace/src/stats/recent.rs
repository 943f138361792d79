//! The most recent events, so that a job can be captured in full when its end shows that it is
//! remarkable.

use crate::event::{Event, Kind};
use crate::jobs::Job;

/// Number of events remembered, of all CPUs together. Limited so that they stay in the cache: at
/// 200 000 events per second they are the last 40 ms.
pub const MAX_EVENTS: usize = 1 << 13;

/// Maximum number of events captured with the worst jobs of all tasks together.
const MAX_RECENT: usize = 1 << 18;

/// A job with its events of all CPUs, from its release to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapturedJob {
    /// The job.
    pub job: Job,
    /// The events.
    pub events: Vec<Event>,
    /// True if events are missing: the job began before the oldest remembered event, or it has more
    /// events than there is room for.
    pub truncated: bool,
}

#[derive(Debug)]
pub(super) struct EventRing {
    events: Box<[Event]>,
    /// Total number of events pushed; the newest is at `(pushed - 1) & mask`.
    pushed: usize,
    /// Number of events that may still be captured with jobs.
    room: usize,
}

impl EventRing {
    /// Creates a buffer for at least `capacity` events.
    pub(super) fn new(capacity: usize) -> Self {
        let none = Event { time: 0, cpu: 0, by: 0, kind: Kind::ScheduleExit };
        let events = vec![none; capacity.next_power_of_two()].into_boxed_slice();
        Self { events, pushed: 0, room: MAX_RECENT }
    }

    #[inline]
    pub(super) fn push(&mut self, event: &Event) {
        let mask = self.events.len() - 1;
        self.events[self.pushed & mask] = *event;
        self.pushed += 1;
    }

    pub(super) fn capture(&self, job: &Job) -> CapturedJob {
        let mask = self.events.len() - 1;
        let oldest = self.pushed.saturating_sub(self.events.len());
        let at = |index: usize| &self.events[index & mask];
        // A nominal release precedes the wake-up that reveals it, and no event of the job precedes
        // that wake-up. A marked job needs no wake-up: everything that ran since its release
        // delayed it.
        let released = || job.released.map_or(job.start, |released| released.0);
        let from = job.woken.unwrap_or_else(released).min(job.start);
        let (mut first, mut end) = (oldest, self.pushed);
        while first < end {
            let middle = first.midpoint(end);
            if at(middle).time < from { first = middle + 1 } else { end = middle }
        }
        let events =
            (first..self.pushed).map(at).take_while(|event| event.time <= job.end).copied().collect();
        CapturedJob { job: job.clone(), events, truncated: first == oldest && oldest > 0 }
    }

    /// Captures a job for the worst list. If there is no room for its events, it is stored without
    /// them.
    pub(super) fn capture_for_keeping(&mut self, job: &Job) -> CapturedJob {
        self.capture_within(job, self.room)
    }

    /// Captures an ordinary job: half of the room is reserved for the worst ones.
    pub(super) fn capture_ordinary(&mut self, job: &Job) -> CapturedJob {
        self.capture_within(job, self.room.saturating_sub(MAX_RECENT / 2))
    }

    fn capture_within(&mut self, job: &Job, room: usize) -> CapturedJob {
        let mut captured = self.capture(job);
        if captured.events.len() > room {
            (captured.events, captured.truncated) = (Vec::new(), true);
        }
        self.room -= captured.events.len();
        captured
    }

    /// Returns the room of a captured job that another one replaced.
    pub(super) fn forget(&mut self, captured: &CapturedJob) {
        self.room += captured.events.len();
    }
}
