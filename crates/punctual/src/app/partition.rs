//! State of a partition in an app: the executor's, and the location of its threads.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::{CurrentWorker, Level, Partition, Worker};

use crate::app::profile::{Recent, Used};
use crate::app::runtime::Runtime;
use crate::background::calls::Calls;
use crate::port::linux::tsc::Tsc;
use crate::port::linux::word;
use crate::port::{AppPort, Kind};

/// Which threads run the jobs of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadModel {
    /// A thread for each level, all on one CPU.
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
    /// The CPU, if one is given.
    pub cpu: Option<usize>,
    /// The stack of each thread in bytes, if it is given.
    pub stack: Option<usize>,
}

/// A partition of an app, in a static of the generated code.
pub struct PartitionState {
    pub(crate) name: &'static str,
    pub(crate) model: ThreadModel,
    /// The CPU, if one is given.
    pub(crate) cpu: Option<usize>,
    pub(crate) stack: Option<usize>,
    pub(crate) core: Partition<AppPort>,
    /// The thread below all levels: that of `init`, and in the app's home partition that of `idle`.
    pub(crate) idle: &'static Worker,
    pub(crate) runtime: &'static Runtime,
    /// Its submitted system calls, if it polls.
    pub(crate) calls: Option<&'static Calls>,
    /// Total execution time of all jobs that have ended, in ns; see [`executed`](Self::executed).
    executed: AtomicU64,
    /// CPU time used by profiled jobs.
    pub(crate) used: Used,
    /// Recently ended profiled jobs.
    pub(crate) recent: Recent,
}

impl std::fmt::Debug for PartitionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartitionState").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartitionState {
    /// Creates a partition of `runtime`.
    ///
    /// # Safety
    /// As for [`Partition::new`]; `idle` is among the workers.
    pub const unsafe fn new(
        config: PartitionConfig,
        runtime: &'static Runtime,
        levels: &'static [&'static Level],
        workers: &'static [&'static Worker],
        idle: &'static Worker,
        calls: Option<&'static Calls>,
    ) -> Self {
        let PartitionConfig { name, model, cpu, stack } = config;
        // SAFETY: the levels and workers belong only to this partition, by this function's
        // contract.
        let core = unsafe { Partition::new(AppPort::new(runtime), levels, workers) };
        Self {
            name,
            model,
            cpu,
            stack,
            core,
            idle,
            runtime,
            calls,
            executed: AtomicU64::new(0),
            used: Used::new(0),
            recent: Recent::new(),
        }
    }

    /// Returns the name to show, if the app has several partitions.
    pub(crate) fn public_name(&self) -> Option<&'static str> {
        let placed = self
            .runtime
            .partitions
            .iter()
            .filter(|partition| partition.model != ThreadModel::Anywhere)
            .count();
        (placed > 1 && self.model != ThreadModel::Anywhere).then_some(self.name)
    }

    /// Returns its index among the app's partitions.
    pub(crate) fn index(&self) -> usize {
        let place = self.runtime.partitions.iter().position(|partition| std::ptr::eq(*partition, self));
        place.expect("a partition is one of its app's")
    }

    /// Returns the number of its highest level; 0, the level of `idle`, if it has none.
    pub(crate) fn highest_level(&self) -> u8 {
        self.core.levels().iter().map(|level| level.number()).max().unwrap_or(0)
    }

    /// Names the tasks of `level` in a message. Neither allocates nor takes a lock.
    pub(crate) fn names_at(&'static self, level: u8) -> Names {
        Names { partition: self, level }
    }

    /// Returns whether it is the partition of `idle`.
    pub(crate) fn is_home(&self) -> bool {
        std::ptr::eq(self, self.runtime.home)
    }

    /// Returns whether threads on its CPU may change the word without locked instructions.
    ///
    /// Not in an app of several partitions: a thread that changes a biased word from another CPU
    /// may have to wait in the kernel, and jobs of other partitions, which must not wait there, do
    /// change it.
    pub(crate) fn may_be_biased(&self) -> bool {
        self.model == ThreadModel::Levels && self.runtime.partitions.len() == 1
    }

    /// Makes the calling thread the worker below all levels.
    ///
    /// # Safety
    /// No other thread uses this worker at the same time.
    pub(crate) unsafe fn enter_idle(&self) -> CurrentWorker {
        // SAFETY: no other thread uses the worker at the same time, by this function's contract,
        // and it belongs to this partition.
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
    pub(crate) unsafe fn reset(&self, virtual_time: bool) {
        // SAFETY: no thread takes part in the partition or spawns into it, by this function's contract.
        unsafe { self.core.reset() };
        let kind = match self.model {
            _ if virtual_time => Kind::Virtual,
            ThreadModel::Polling if Tsc::is_there() => Kind::Polling,
            ThreadModel::Polling => Kind::PollingVdso,
            ThreadModel::Levels | ThreadModel::Anywhere => Kind::Threads,
        };
        self.core.port().choose(kind);
        if self.may_be_biased() && !virtual_time {
            // SAFETY: no thread takes part in the partition or spawns into it, by this function's contract.
            unsafe { word::allow(self.core.word_cell()) };
        }
        #[cfg(punctual_counted)]
        if self.may_be_biased() && virtual_time {
            // SAFETY: no thread takes part in the partition or spawns into it, by this function's
            // contract. In virtual time only the calling thread runs an app of one partition.
            unsafe { word::bias_for_counting(self.core.word_cell()) };
        }
        self.executed.store(0, Ordering::Relaxed);
    }

    /// Drops the values that tasks of a local `level` have on the calling thread, which is about to
    /// end. Destructors may lock the resources that their tasks may lock.
    ///
    /// # Safety
    /// As for [`Registered::retire`](crate::app::runtime::Registered::retire), and the level
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

    /// Returns the execution time of all ended jobs. Its increase during a job is the execution
    /// time of the jobs that preempted it.
    #[inline]
    pub(crate) fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
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
