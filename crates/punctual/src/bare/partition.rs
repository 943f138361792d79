//! State of a partition in an app: the executor's, and the execution time of its jobs.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use punctual_core::{CurrentWorker, Level, Partition, Worker};

use super::runtime::Runtime;
use crate::port::AppPort;

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
    /// The CPU, if given; not used on boards.
    pub cpu: Option<usize>,
    /// The stack size of each thread in bytes, if given; on boards, the linker script sets it.
    pub stack: Option<usize>,
}

/// System calls submitted by a partition: none on boards.
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
    name: &'static str,
}

impl fmt::Debug for PartitionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionState").finish_non_exhaustive()
    }
}

impl PartitionState {
    /// Creates a partition of `runtime`.
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
        // SAFETY: the levels and workers belong only to this partition, by this function's
        // contract. Of the workers, only `idle` is ever turned into a `CurrentWorker`, by the core
        // of the partition; `hold` makes it the only one before a level is occupied.
        let core = unsafe { Partition::new(AppPort::new(), levels, workers) };
        let executed = AtomicU64::new(0);
        Self { core, idle, runtime, executed, name: config.name }
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name for users, if the app has several named partitions.
    pub(crate) fn public_name(&self) -> Option<&'static str> {
        (self.runtime.partitions.len() > 1).then_some(self.name)
    }

    /// Returns the number of its core, which is the index of the partition in the app.
    pub(crate) fn number(&'static self) -> u32 {
        let mut partitions = self.runtime.partitions.iter();
        partitions.position(|partition| core::ptr::eq(*partition, self)).unwrap_or(0) as u32
    }

    /// Returns the core as the worker that runs everything.
    ///
    /// # Safety
    /// As for [`CurrentWorker::new`].
    #[inline]
    pub(crate) unsafe fn enter_idle(&self) -> CurrentWorker {
        // SAFETY: no other use of the worker overlaps with the caller's, by this function's
        // contract, and it belongs to this partition.
        unsafe { CurrentWorker::new(self.idle) }
    }

    /// Returns the level of the innermost job on the core, 0 if none runs.
    pub(crate) fn running(&self) -> u8 {
        self.idle.running()
    }

    /// Returns the executor's state.
    #[inline]
    pub fn core(&'static self) -> &'static Partition<AppPort> {
        &self.core
    }

    /// Clears all state before a run.
    ///
    /// # Safety
    /// As for [`Partition::reset`].
    pub(crate) unsafe fn reset(&'static self) {
        // SAFETY: no thread takes part in the partition or spawns into it, by this function's contract.
        unsafe { self.core.reset() };
        self.core.port().set_core(self.number(), core::ptr::from_ref(self).cast());
        self.executed.store(0, Ordering::Relaxed);
    }

    /// Returns the execution time of all ended jobs. Its increase during a job is the execution
    /// time of the jobs that preempted it.
    #[inline]
    pub(crate) fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }

    /// Adds the execution time of a job. Atomic, because a job may preempt the end of another.
    #[inline]
    pub(crate) fn add_executed(&self, execution: u64) {
        self.executed.fetch_add(execution, Ordering::Relaxed);
    }
}
