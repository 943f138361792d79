//! State of a partition in an app: the executor's, and the execution time of its jobs.

use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use punctual_core::{CurrentWorker, Level, Partition, Worker};

use super::{Calls, HostPartition};
use crate::port::AppPort;
use crate::state::runtime::Runtime;

/// Which threads run the jobs of a partition. A board has `Levels` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadModel {
    /// A thread for each level, all on one CPU; on a board one thread.
    Levels,
    /// A single thread for all levels, which never sleeps, on a dedicated CPU.
    Polling,
    /// A thread for each level, if there are any, on any free CPU.
    Anywhere,
}

/// The configuration of a partition in the program.
#[derive(Debug, Clone, Copy)]
pub struct PartitionConfig {
    /// The name.
    pub name: &'static str,
    /// The threads that run its jobs.
    pub model: ThreadModel,
    /// The CPU, if one is given; not used on boards.
    pub cpu: Option<usize>,
    /// The stack of each thread in bytes, if it is given; on boards, the linker script sets it.
    pub stack: Option<usize>,
}

/// A partition of an app, in a static of the generated code.
pub struct PartitionState {
    pub(crate) name: &'static str,
    pub(crate) model: ThreadModel,
    pub(crate) core: Partition<AppPort>,
    /// The thread below all levels: that of `init`, and in the app's home partition that of `idle`.
    pub(crate) idle: &'static Worker,
    pub(crate) runtime: &'static Runtime,
    /// Total execution time of all jobs that have ended, in ns; see [`executed`](Self::executed).
    pub(crate) executed: AtomicU64,
    /// The part that the platform adds.
    #[cfg_attr(not(feature = "std"), allow(dead_code, reason = "a board adds nothing"))]
    pub(crate) host: HostPartition,
}

impl fmt::Debug for PartitionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionState").field("name", &self.name).finish_non_exhaustive()
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
        calls: Option<&'static Calls>,
    ) -> Self {
        // SAFETY: the levels and workers belong only to this partition, by this function's
        // contract.
        let core = unsafe { Partition::new(AppPort::new(runtime), levels, workers) };
        Self {
            name: config.name,
            model: config.model,
            core,
            idle,
            runtime,
            executed: AtomicU64::new(0),
            host: HostPartition::new(config, calls),
        }
    }

    /// Returns the name to show, if the app has several partitions.
    pub(crate) fn public_name(&self) -> Option<&'static str> {
        let partitions = self.runtime.partitions.iter();
        let placed = partitions.filter(|partition| partition.model != ThreadModel::Anywhere).count();
        (placed > 1 && self.model != ThreadModel::Anywhere).then_some(self.name)
    }

    /// Returns its index among the app's partitions.
    pub(crate) fn index(&self) -> usize {
        let place = self.runtime.partitions.iter().position(|partition| ptr::eq(*partition, self));
        place.expect("a partition is one of its app's")
    }

    /// Makes the running code the worker below all levels.
    ///
    /// # Safety
    /// No other use of this worker overlaps with the caller's.
    #[inline]
    pub(crate) unsafe fn enter_idle(&self) -> CurrentWorker {
        // SAFETY: no other use of the worker overlaps, by this function's contract, and it belongs
        // to this partition.
        unsafe { CurrentWorker::new(self.idle) }
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
    pub(crate) unsafe fn reset(&'static self, virtual_time: bool) {
        // SAFETY: no thread takes part in the partition or spawns into it, by this function's
        // contract.
        unsafe {
            self.core.reset();
            self.prepare_port(virtual_time);
        }
        self.executed.store(0, Ordering::Relaxed);
    }

    /// Returns the execution time of all ended jobs. Its increase during a job is the execution
    /// time of the jobs that preempted it.
    #[inline]
    pub(crate) fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }

    /// Returns whether [`executed`](Self::executed) is `time`.
    // On x86-64 in memory: the compiler would load an atomic into a register first.
    #[inline(always)]
    pub(crate) fn has_executed(&self, time: u64) -> bool {
        // SAFETY: an atomic is loaded as a whole. The stack is not used.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        unsafe {
            core::arch::asm!(
                "cmp qword ptr [{partition} + {executed}], {time}",
                "jne {other}",
                partition = in(reg) self,
                executed = const core::mem::offset_of!(Self, executed),
                time = in(reg) time,
                other = label { return false },
                options(nostack, readonly),
            );
            true
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        {
            self.executed() == time
        }
    }
}
