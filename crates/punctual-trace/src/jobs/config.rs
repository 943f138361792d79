//! Selection of threads, and the definition of a job.

use std::ops::RangeInclusive;

use crate::event::Tid;
use crate::recorded::Recorded;

/// Selects threads whose jobs are decomposed: those to which any of these criteria applies, except
/// the last, which restricts the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Select {
    /// Thread IDs.
    pub tids: Vec<Tid>,
    /// Thread names, set by [`Decomposer::name`](super::Decomposer::name). A trailing `*` matches
    /// any suffix.
    pub names: Vec<String>,
    /// Threads woken with a priority in this range, as the kernel counts: 0 to 98 are all real-time
    /// ones.
    pub priorities: Option<RangeInclusive<i32>>,
    /// Threads that mark their jobs, as Punctual apps do, regardless of priority.
    pub marked: bool,
    /// Restricts the selection to these threads and their descendants; empty for no restriction.
    pub among: Vec<Tid>,
}

impl Select {
    /// Selects all real-time threads.
    #[must_use]
    pub fn real_time() -> Self {
        Self { priorities: Some(-1..=98), ..Self::default() }
    }

    /// Selects one thread.
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

/// Meaning of sleeps that are not waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sleeps {
    /// They end the job. A job marked by its app nevertheless ends with the mark.
    #[default]
    EndJob,
    /// They are part of the job, and of C: the only safe choice for analyses without
    /// self-suspension. [`Job::suspended`](super::Job::suspended) is the time spent in such sleeps.
    /// Only marks and the end of the thread end these jobs.
    BelongToJob,
}

/// Selects the futex waits that count as waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FutexWaits {
    /// Waits on locks, judging by the call and the use of its word: see
    /// [`FutexRole`](super::FutexRole). Other waits are suspensions.
    #[default]
    Judged,
    /// All waits.
    Block,
    /// Waits with priority inheritance, and waits while the word is 2, which marks contention in
    /// the mutexes of glibc, musl and Rust. Waits on condition variables and semaphores are
    /// suspensions, which is correct for threads that wait for their next job on one of those.
    MutexesBlock,
    /// None: all waits are suspensions, so it does not matter whether futex calls are recorded.
    Suspend,
}

/// Instant from which R and J are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Release {
    /// The nominal release, if a timer or a mark gives it; otherwise the wake-up.
    #[default]
    Nominal,
    /// The wake-up.
    Wake,
}

/// Parameters of a decomposition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Selected threads.
    pub select: Select,
    /// If true, runs of interrupt handlers and softirqs are jobs too.
    pub handlers: bool,
    /// Meaning of other sleeps.
    pub sleeps: Sleeps,
    /// Futex waits that count as blocking.
    pub futex: FutexWaits,
    /// Start of R and J.
    pub release: Release,
    /// True if the trace's clock is `CLOCK_MONOTONIC` (`mono`). Only then can the times in timers
    /// and marks be compared with the trace; the lateness of timers is known within bounds in
    /// either case.
    pub monotonic: bool,
    /// Events that the recording would contain if they happened. By default all, which is right for
    /// generated events; for a file, use [`Trace::recorded`](crate::read::Trace::recorded).
    pub recorded: Recorded,
    /// Assumed maximum duration of a single scheduler entry or exit, in ns. If no event shows
    /// these, this assumption bounds SS and C of threads that make no system calls; `None` assumes
    /// nothing.
    pub longest_schedule: Option<u64>,
    /// If true, jobs list their segments.
    pub segments: bool,
    /// Number of remembered changes of each CPU's occupant, to attribute the waiting time of
    /// threads.
    pub history: usize,
    /// Maximum number of remembered threads, at about 1 kB each; the least recently seen ones are
    /// dropped.
    pub threads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            select: Select::real_time(),
            handlers: false,
            sleeps: Sleeps::default(),
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
