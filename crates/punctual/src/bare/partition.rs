//! The state of a partition in an app: that of the executor, and how long its jobs have run.

use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use punctual_core::{CurrentWorker, Level, Partition, Worker};

use super::port::AppPort;
use super::runtime::Runtime;

/// Which threads run the jobs of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadModel {
    /// Levels that preempt each other.
    Levels,
}

/// The configuration of a partition in the program.
#[derive(Debug, Clone, Copy)]
pub struct PartitionConfig {
    /// The name.
    pub name: &'static str,
    /// The threads that run its jobs.
    pub model: ThreadModel,
    /// The CPU, if one is given, which there is no choice of.
    pub cpu: Option<usize>,
    /// The stack of each thread in bytes, if it is given; here the linker is told.
    pub stack: Option<usize>,
}

/// No handler runs, or one that serves jobs.
const OUTSIDE: u8 = 0;
/// A handler runs.
const INSIDE: u8 = 1;
/// A handler runs, in which something was armed: the clock has to be looked at again.
const AGAIN: u8 = 2;

/// System calls that a partition submits, of which there are none here.
#[derive(Debug)]
pub enum Calls {}

/// A partition of an app, in a static of the generated code.
pub struct PartitionState {
    pub(crate) core: Partition<AppPort>,
    /// The thread that runs everything.
    idle: &'static Worker,
    pub(crate) runtime: &'static Runtime,
    /// Total execution time of all jobs that have ended, in ns; see [`executed`](Self::executed).
    executed: AtomicU64,
    /// Whether a handler runs on the core that has not come to serving jobs: [`OUTSIDE`], [`INSIDE`] or [`AGAIN`].
    handler: AtomicU8,
    name: &'static str,
}

impl fmt::Debug for PartitionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionState").finish_non_exhaustive()
    }
}

impl PartitionState {
    /// A partition of `runtime`.
    ///
    /// # Safety
    /// As for [`Partition::new`]; `idle` is the first of the workers.
    pub const unsafe fn new(
        config: PartitionConfig,
        runtime: &'static Runtime,
        levels: &'static [&'static Level],
        workers: &'static [&'static Worker],
        idle: &'static Worker,
        _: Option<&'static Calls>,
    ) -> Self {
        // SAFETY: the levels and workers belong to this partition alone, by this function's contract. Of the workers, `idle` alone is
        // ever made a `CurrentWorker`, by the core of the partition; `hold` makes it alone before a level is occupied.
        let core = unsafe { Partition::new(AppPort::new(), levels, workers) };
        let (executed, handler) = (AtomicU64::new(0), AtomicU8::new(OUTSIDE));
        Self { core, idle, runtime, executed, handler, name: config.name }
    }

    /// The name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The name for users, if the app has several named partitions.
    pub(crate) fn public_name(&self) -> Option<&'static str> {
        (self.runtime.partitions.len() > 1).then_some(self.name)
    }

    /// The core that it runs on, by its place among the app's.
    pub(crate) fn number(&'static self) -> u32 {
        let mut partitions = self.runtime.partitions.iter();
        partitions.position(|partition| core::ptr::eq(*partition, self)).unwrap_or(0) as u32
    }

    /// Whether a handler runs on the core that has not come to serving jobs. For the core's own code.
    #[inline]
    pub(crate) fn is_in_handler(&self) -> bool {
        self.handler.load(Ordering::Relaxed) != OUTSIDE
    }

    /// Says that a handler begins, which releases jobs. With interrupts masked, until it [ends](Self::end_handler).
    #[inline]
    pub(crate) fn begin_handler(&self) {
        self.handler.store(INSIDE, Ordering::Relaxed);
    }

    /// Says that it has released them; returns whether something was released or armed besides.
    #[inline]
    pub(crate) fn end_handler(&self) -> bool {
        let again = self.handler.load(Ordering::Relaxed) == AGAIN;
        self.handler.store(OUTSIDE, Ordering::Relaxed);
        again
    }

    /// Says, in a handler, that something has been released or armed besides.
    pub(crate) fn look_again(&self) {
        self.handler.store(AGAIN, Ordering::Relaxed);
    }

    /// The core as the worker that runs everything.
    ///
    /// # Safety
    /// As for [`CurrentWorker::new`].
    #[inline]
    pub(crate) unsafe fn enter_idle(&self) -> CurrentWorker {
        // SAFETY: no other use of the worker overlaps with the caller's, by this function's contract, and it is this partition's.
        unsafe { CurrentWorker::new(self.idle) }
    }

    /// The level of the innermost job on the core, 0 if none runs.
    pub(crate) fn running(&self) -> u8 {
        self.idle.running()
    }

    /// The executor's state.
    #[inline]
    pub fn core(&'static self) -> &'static Partition<AppPort> {
        &self.core
    }

    /// Removes all state, for a run.
    ///
    /// # Safety
    /// As for [`Partition::reset`].
    pub(crate) unsafe fn reset(&'static self) {
        // SAFETY: no thread takes part in the partition or spawns into it, by this function's contract.
        unsafe { self.core.reset() };
        self.core.port().set_core(self.number());
        self.executed.store(0, Ordering::Relaxed);
    }

    /// Execution time of all ended jobs. Its increase during a job is the execution time of the jobs that preempted it.
    #[inline]
    pub(crate) fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }

    /// Adds the execution time of a job. Atomic, since a job may preempt the end of another.
    #[inline]
    pub(crate) fn add_executed(&self, execution: u64) {
        self.executed.fetch_add(execution, Ordering::Relaxed);
    }
}
