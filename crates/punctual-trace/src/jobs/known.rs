//! What the recording contains, looked up once.

use crate::recorded::{Recorded, Source};

/// Which events are recorded, so that their absence means something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Wake-ups, at least when the thread enters a run queue.
    pub(super) wakeups: bool,
    /// The beginnings of wake-ups.
    pub(super) wakings: bool,
    pub(super) interrupts: bool,
    pub(super) vectors: bool,
    pub(super) softirqs: bool,
    pub(super) timers: bool,
    pub(super) contention: bool,
    pub(super) futexes: bool,
    pub(super) yields: bool,
    /// Whether only some threads' system calls are recorded.
    pub(super) calls_of_some: bool,
    /// Whether only some threads' switches are recorded.
    pub(super) switches_of_some: bool,
}

impl Known {
    pub(super) fn of(recorded: &Recorded) -> Self {
        let has = |source| recorded.has(source);
        Self {
            wakeups: has(Source::Wakings) || has(Source::Wakeups),
            wakings: has(Source::Wakings),
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

    /// All handlers that can displace a thread.
    pub(super) fn handlers(self) -> bool {
        self.interrupts && self.vectors && self.softirqs
    }
}

/// What is certain of a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Certain {
    /// That it began and ended there, rather than slept for a lock in between.
    pub(super) whole: bool,
    /// All of its waits for locks.
    pub(super) locks: bool,
    /// All handlers that displaced it.
    pub(super) handlers: bool,
    /// When it was ready to run after a sleep.
    pub(super) wakeups: bool,
}
