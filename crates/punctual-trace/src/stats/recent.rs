//! The latest events, so that a job found remarkable at its end can be kept whole.

use std::collections::VecDeque;

use crate::event::Event;
use crate::jobs::Job;

/// How many events are remembered, of all CPUs together.
pub const MAX_EVENTS: usize = 1 << 15;

/// A job with the events that made it, of all CPUs, from its release to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// The job.
    pub job: Job,
    /// The events.
    pub events: Vec<Event>,
    /// The job began before the oldest event that was still remembered.
    pub truncated: bool,
}

#[derive(Debug)]
pub(super) struct Recent {
    events: VecDeque<Event>,
    capacity: usize,
    dropped: bool,
}

impl Recent {
    pub(super) fn new(capacity: usize) -> Self {
        Self { events: VecDeque::with_capacity(capacity), capacity, dropped: false }
    }

    #[inline]
    pub(super) fn push(&mut self, event: &Event) {
        if self.events.len() >= self.capacity {
            self.events.pop_front();
            self.dropped = true;
        }
        self.events.push_back(*event);
    }

    pub(super) fn whole(&self, job: &Job) -> Whole {
        // A nominal release lies before the wake-up that shows it, and no event of the job before that.
        let from = job.woken.unwrap_or(job.start).min(job.start);
        let first = self.events.partition_point(|event| event.time < from);
        let events = self.events.range(first..).take_while(|event| event.time <= job.end).copied().collect();
        Whole { job: job.clone(), events, truncated: first == 0 && self.dropped }
    }
}
