//! The part of a partition's state that a process adds: the location of its threads.

use std::sync::atomic::Ordering;

use punctual_core::{CurrentWorker, Level};

use crate::background::calls::Calls;
use crate::cells::{Recent, Used};
use crate::port::Kind;
use crate::port::linux::tsc::Tsc;
use crate::port::linux::word;
use crate::state::partition::{PartitionConfig, PartitionState, ThreadModel};

/// The part of a partition's state that a process adds.
pub(crate) struct HostPartition {
    /// The CPU, if one is given.
    pub(crate) cpu: Option<usize>,
    pub(crate) stack: Option<usize>,
    /// Its submitted system calls, if it polls.
    pub(crate) calls: Option<&'static Calls>,
    /// CPU time used by profiled jobs.
    pub(crate) used: Used,
    /// Recently ended profiled jobs.
    pub(crate) recent: Recent,
}

impl HostPartition {
    pub(crate) const fn new(config: PartitionConfig, calls: Option<&'static Calls>) -> Self {
        let PartitionConfig { cpu, stack, .. } = config;
        Self { cpu, stack, calls, used: Used::new(0), recent: Recent::new() }
    }
}

impl PartitionState {
    /// Returns whether it is the partition of `idle`.
    pub(crate) fn is_home(&self) -> bool {
        std::ptr::eq(self, self.runtime.home)
    }

    /// Returns the number of its highest level; 0, the level of `idle`, if it has none.
    pub(crate) fn highest_level(&self) -> u8 {
        self.core.levels().iter().map(|level| level.number()).max().unwrap_or(0)
    }

    /// Names the tasks of `level` in a message. Neither allocates nor takes a lock.
    pub(crate) fn names_at(&'static self, level: u8) -> Names {
        Names { partition: self, level }
    }

    /// Returns whether threads on its CPU may change the word without locked instructions.
    ///
    /// Not in an app of several partitions: a thread that changes a biased word from another CPU
    /// may have to wait in the kernel, and jobs of other partitions, which must not wait there, do
    /// change it.
    pub(crate) fn may_be_biased(&self) -> bool {
        self.model == ThreadModel::Levels && self.runtime.partitions.len() == 1
    }

    /// Selects the port of a run.
    ///
    /// # Safety
    /// As for [`reset`](Self::reset).
    pub(crate) unsafe fn prepare_port(&self, virtual_time: bool) {
        let kind = match self.model {
            _ if virtual_time => Kind::Virtual,
            ThreadModel::Polling if Tsc::is_there() => Kind::Polling,
            ThreadModel::Polling => Kind::PollingVdso,
            ThreadModel::Levels | ThreadModel::Anywhere => Kind::Threads,
        };
        self.core.port().choose(kind);
        if self.may_be_biased() && !virtual_time {
            // SAFETY: no thread takes part in the partition or spawns into it, by this function's
            // contract.
            unsafe { word::allow(self.core.word_cell()) };
        }
        #[cfg(punctual_counted)]
        if self.may_be_biased() && virtual_time {
            // SAFETY: no thread takes part in the partition or spawns into it, by this function's
            // contract. In virtual time only the calling thread runs an app of one partition.
            unsafe { word::bias_for_counting(self.core.word_cell()) };
        }
    }

    /// Drops the values that tasks of a local `level` have on the calling thread, which is about to
    /// end. Destructors may lock the resources that their tasks may lock.
    ///
    /// # Safety
    /// As for [`Registered::retire`](crate::state::runtime::Registered::retire), and the level
    /// belongs to this partition.
    pub(crate) unsafe fn retire(&'static self, me: CurrentWorker, level: &'static Level) {
        if level.is_local() {
            // SAFETY: only this thread runs jobs of the level, and runs none now, by this
            // function's contract.
            let retire = || self.runtime.tasks.iter().for_each(|task| unsafe { task.retire(level) });
            // SAFETY: this thread runs the level's jobs, and the level belongs to the partition, by
            // this function's contract.
            unsafe { self.core.run_last(me, level, retire) };
        }
    }

    #[inline]
    pub(crate) fn set_executed(&self, executed: u64) {
        self.executed.store(executed, Ordering::Relaxed);
    }
}

/// See [`PartitionState::names_at`].
pub(crate) struct Names {
    partition: &'static PartitionState,
    level: u8,
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let marked = self.partition.runtime.tasks.iter().filter_map(|task| task.info());
        let here =
            marked.filter(|task| task.level == self.level && std::ptr::eq(task.partition, self.partition));
        for (number, task) in here.enumerate() {
            write!(f, "{}`{}`", if number == 0 { "" } else { " or " }, task.name)?;
        }
        Ok(())
    }
}
