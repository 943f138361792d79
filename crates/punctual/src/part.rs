//! What an app has for each of its partitions: the executor's state, and where that is to run.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::{Level, Partition, Worker};

use crate::port::AppPort;
use crate::runtime::Runtime;

/// How the jobs of a partition come to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A thread for each level, all on one CPU.
    Levels,
    /// One thread for all levels, which never sleeps, on a CPU of its own.
    Polling,
    /// A thread for each level, on whichever CPU is free; or none, if there are no levels.
    Anywhere,
}

/// A partition of an app, in a static of the generated code.
pub struct Part {
    pub(crate) name: &'static str,
    pub(crate) style: Style,
    /// The CPU, if one is given.
    pub(crate) cpu: Option<usize>,
    pub(crate) partition: Partition<AppPort>,
    /// The thread below all levels: that of `init`, and in the app's home that of `idle`.
    pub(crate) idle: &'static Worker,
    pub(crate) runtime: &'static Runtime,
    /// Total execution time of all jobs that have ended, in ns; see [`executed`](Self::executed).
    executed: AtomicU64,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Part").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Part {
    /// A partition of `runtime`; `idle` is among the `workers`.
    pub const fn new(
        name: &'static str,
        runtime: &'static Runtime,
        style: Style,
        cpu: Option<usize>,
        levels: &'static [&'static Level],
        workers: &'static [&'static Worker],
        idle: &'static Worker,
    ) -> Self {
        let partition = Partition::new(AppPort::new(), levels, workers);
        Self { name, style, cpu, partition, idle, runtime, executed: AtomicU64::new(0) }
    }

    /// The executor's state, for resources.
    #[inline]
    pub fn partition(&'static self) -> &'static Partition<AppPort> {
        &self.partition
    }

    /// Makes it as new for a run.
    ///
    /// # Safety
    /// As for [`Partition::reset`].
    pub(crate) unsafe fn reset(&self, virtual_time: bool) {
        // SAFETY: by this function's contract.
        unsafe { self.partition.reset() };
        self.partition.port().choose(virtual_time);
        self.executed.store(0, Ordering::Relaxed);
    }

    /// Execution time of all ended jobs. What it grows by during a job is what preempted that job.
    #[inline]
    pub(crate) fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_executed(&self, executed: u64) {
        self.executed.store(executed, Ordering::Relaxed);
    }
}
