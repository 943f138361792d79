//! What an app has for each of its partitions: the executor's state, and where that is to run.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::{CurrentWorker, Level, Partition, Worker};

use crate::app::runtime::Runtime;
use crate::helper::calls::Calls;
use crate::port::linux::tsc::Tsc;
use crate::port::{AppPort, Kind};

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

/// What the program says of a partition.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Its name.
    pub name: &'static str,
    /// How its jobs come to run.
    pub style: Style,
    /// The CPU, if one is given.
    pub cpu: Option<usize>,
    /// The stack of each thread in bytes, if it is given.
    pub stack: Option<usize>,
}

/// A partition of an app, in a static of the generated code.
pub struct Part {
    pub(crate) name: &'static str,
    pub(crate) style: Style,
    /// The CPU, if one is given.
    pub(crate) cpu: Option<usize>,
    pub(crate) stack: Option<usize>,
    pub(crate) partition: Partition<AppPort>,
    /// The thread below all levels: that of `init`, and in the app's home that of `idle`.
    pub(crate) idle: &'static Worker,
    pub(crate) runtime: &'static Runtime,
    /// What it wants to have the kernel do, if it must not enter it.
    pub(crate) calls: Option<&'static Calls>,
    /// Total execution time of all jobs that have ended, in ns; see [`executed`](Self::executed).
    executed: AtomicU64,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Part").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Part {
    /// A partition of `runtime`.
    ///
    /// # Safety
    /// As for [`Partition::new`]; `idle` is among the workers.
    pub const unsafe fn new(
        declared: Declared,
        runtime: &'static Runtime,
        levels: &'static [&'static Level],
        workers: &'static [&'static Worker],
        idle: &'static Worker,
        calls: Option<&'static Calls>,
    ) -> Self {
        let Declared { name, style, cpu, stack } = declared;
        // SAFETY: by this function's contract.
        let partition = unsafe { Partition::new(AppPort::new(runtime), levels, workers) };
        Self { name, style, cpu, stack, partition, idle, runtime, calls, executed: AtomicU64::new(0) }
    }

    /// What to call it, if the app has several that a user has named.
    pub(crate) fn public_name(&self) -> Option<&'static str> {
        let placed = self.runtime.parts.iter().filter(|part| part.style != Style::Anywhere).count();
        (placed > 1 && self.style != Style::Anywhere).then_some(self.name)
    }

    /// Its place among the app's parts.
    pub(crate) fn index(&self) -> usize {
        let place = self.runtime.parts.iter().position(|part| std::ptr::eq(*part, self));
        place.expect("a part is one of its app's")
    }

    /// The number of its highest level; 0, the level of `idle`, if it has none.
    pub(crate) fn highest_level(&self) -> u8 {
        self.partition.levels().iter().map(|level| level.number()).max().unwrap_or(0)
    }

    /// The tasks of `level`, for a message. Neither allocates nor takes a lock.
    pub(crate) fn names_at(&'static self, level: u8) -> Names {
        Names { part: self, level }
    }

    /// Whether it is the partition of `idle`.
    pub(crate) fn is_home(&self) -> bool {
        std::ptr::eq(self, self.runtime.home)
    }

    /// The calling thread as the one below all levels.
    ///
    /// # Safety
    /// No other thread uses what this gives, or a copy of it, while this one does.
    pub(crate) unsafe fn enter_idle(&self) -> CurrentWorker {
        // SAFETY: by this function's contract; what the worker is given to is this partition.
        unsafe { CurrentWorker::new(self.idle) }
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
        let kind = match self.style {
            _ if virtual_time => Kind::Virtual,
            Style::Polling if Tsc::is_there() => Kind::Polling,
            Style::Polling => Kind::PollingVdso,
            Style::Levels | Style::Anywhere => Kind::Threads,
        };
        self.partition.port().choose(kind);
        self.executed.store(0, Ordering::Relaxed);
    }

    /// Drops what the tasks of `level`, if that is local, have on the calling thread. For the end of the thread's life.
    ///
    /// # Safety
    /// As for [`Registered::retire`](crate::app::runtime::Registered::retire).
    pub(crate) unsafe fn retire(&self, level: &'static Level) {
        if level.is_local() {
            // SAFETY: by this function's contract.
            self.runtime.tasks.iter().for_each(|task| unsafe { task.retire(level) });
        }
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

/// See [`Part::names_at`].
pub(crate) struct Names {
    part: &'static Part,
    level: u8,
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let marked = self.part.runtime.tasks.iter().filter_map(|task| task.marked());
        let here = marked.filter(|task| task.level == self.level && std::ptr::eq(task.part, self.part));
        for (number, task) in here.enumerate() {
            write!(f, "{}`{}`", if number == 0 { "" } else { " or " }, task.name)?;
        }
        Ok(())
    }
}
