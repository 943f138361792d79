//! Contents of the recording, looked up once.

use crate::recorded::{Recorded, Source};

/// Recorded events, whose absence is significant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Wake-ups, at least the insertion into the run queue.
    pub(super) wakeups: bool,
    /// The ends of wake-ups, the insertion into the run queue.
    pub(super) insertions: bool,
    pub(super) interrupts: bool,
    pub(super) vectors: bool,
    pub(super) softirqs: bool,
    pub(super) timers: bool,
    pub(super) contention: bool,
    pub(super) futexes: bool,
    pub(super) yields: bool,
    /// Only some threads' system calls are recorded.
    pub(super) calls_of_some: bool,
    /// Only some threads' switches are recorded.
    pub(super) switches_of_some: bool,
}

impl Known {
    pub(super) fn of(recorded: &Recorded) -> Self {
        let has = |source| recorded.has(source);
        Self {
            wakeups: has(Source::Wakings) || has(Source::Wakeups),
            insertions: has(Source::Wakeups),
            interrupts: has(Source::Interrupts),
            vectors: has(Source::Vectors),
            softirqs: has(Source::Softirqs),
            timers: has(Source::Timers),
            contention: has(Source::Contention),
            futexes: has(Source::Futexes),
            yields: has(Source::Yields),
            calls_of_some: recorded.calls_of_some(),
            switches_of_some: recorded.switches_of().is_some(),
        }
    }

    /// Returns whether all handlers that can displace a thread are recorded.
    pub(super) fn handlers(self) -> bool {
        self.interrupts && self.vectors && self.softirqs
    }
}

/// Certain facts about a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Certain {
    /// It began and ended there, rather than slept for a lock in between.
    pub(super) whole: bool,
    /// All of its waits for locks.
    pub(super) locks: bool,
    /// All handlers that displaced it.
    pub(super) handlers: bool,
    /// The times at which it became ready after a sleep.
    pub(super) wakeups: bool,
}
