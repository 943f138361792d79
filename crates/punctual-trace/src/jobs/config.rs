//! Which threads' jobs to decompose, and what counts as a job.

use std::ops::RangeInclusive;

use crate::event::Tid;
use crate::recorded::Recorded;

/// Which threads' jobs are wanted: those to which any of these applies, except the last, which
/// restricts the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Select {
    /// These threads.
    pub tids: Vec<Tid>,
    /// Threads of these names, told by [`Decomposer::name`](super::Decomposer::name). One that ends in `*` stands for all
    /// that begin so.
    pub names: Vec<String>,
    /// Threads that are woken with a priority in this range, as the kernel counts: 0 to 98 are all real-time ones.
    pub priorities: Option<RangeInclusive<i32>>,
    /// Threads that mark their jobs, as those of Punctual apps do, whatever their priority.
    pub marked: bool,
    /// Only these threads and their descendants; no restriction if the list is empty.
    pub among: Vec<Tid>,
}

impl Select {
    /// All real-time threads.
    #[must_use]
    pub fn real_time() -> Self {
        Self { priorities: Some(-1..=98), ..Self::default() }
    }

    /// One thread.
    #[must_use]
    pub fn thread(tid: Tid) -> Self {
        Self { tids: vec![tid], ..Self::default() }
    }

    pub(crate) fn by_name(&self, name: &str) -> bool {
        self.names.iter().any(|wanted| match wanted.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => wanted == name,
        })
    }
}

/// What a sleep means that is not a wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Suspension {
    /// It ends the job. A job that its app has marked ends with the mark all the same.
    #[default]
    EndsJob,
    /// It is part of the job, and of C: the only safe choice for analyses without suspension.
    /// [`Job::suspended`](super::Job::suspended) says how much it was. Only marks and the thread's end end such jobs.
    IsCounted,
}

/// Which waits on futexes are waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FutexWaits {
    /// Those on locks, judging by the call and how its word is used: see [`FutexRole`](super::FutexRole). Waits
    /// for anything else are suspensions.
    #[default]
    Judged,
    /// All of them.
    Block,
    /// Those with priority inheritance, and those that wait while the word is 2, which is how the mutexes of glibc, musl
    /// and Rust say "contended". Waits on condition variables and semaphores are suspensions: right for threads that
    /// wait for their next job on one of those.
    MutexesBlock,
    /// None: all of them are suspensions. So it does not matter either whether calls are recorded.
    Suspend,
}

/// Where R and J begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Release {
    /// Where the release was due, if a timer or a mark says so; else at the wake-up.
    #[default]
    Nominal,
    /// At the wake-up.
    Wake,
}

/// What to decompose, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Whose jobs.
    pub select: Select,
    /// Whether runs of interrupt handlers and softirqs are jobs too.
    pub handlers: bool,
    /// What other sleeps mean.
    pub suspension: Suspension,
    /// Which futex waits block.
    pub futex: FutexWaits,
    /// Where jobs begin.
    pub release: Release,
    /// Whether the trace's clock is `CLOCK_MONOTONIC` (`mono`). Only then do instants that timers and marks name mean
    /// something in the trace; of timers, lateness is known all the same, within bounds.
    pub monotonic: bool,
    /// Which events the recording has if they happened. Everything, if nothing else is said, which is right for events
    /// that are made; for those of a file it is [`Trace::recorded`](crate::read::Trace::recorded).
    pub recorded: Recorded,
    /// If set, it is assumed that no single entry or exit of the scheduler takes longer than this, in ns. Where no event
    /// shows them, that is what bounds SS and C of threads that make no system calls; without it nothing is assumed.
    pub longest_schedule: Option<u64>,
    /// Whether jobs list their segments.
    pub segments: bool,
    /// How many changes of each CPU's occupant are remembered, to say who ran while a thread waited.
    pub history: usize,
    /// How many threads are remembered, at about 1 kB each. Beyond that, those not seen for longest are forgotten.
    pub threads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            select: Select::real_time(),
            handlers: false,
            suspension: Suspension::default(),
            futex: FutexWaits::default(),
            release: Release::default(),
            monotonic: false,
            recorded: Recorded::all(),
            longest_schedule: None,
            segments: false,
            history: 1024,
            threads: 16_384,
        }
    }
}
