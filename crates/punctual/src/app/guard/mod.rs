//! Finds jobs that allocate or block, and names the task, the call and the stack.
//!
//! A job that allocates, prints, sleeps or waits for a lock of the ordinary kind takes a time that nobody can bound, and often does so
//! only on a bad day. Turn the guard on by [`Config::guard`](crate::Config::guard) or `PUNCTUAL_GUARD=report`, in a debug build so that the
//! stacks name lines, and read the [report](crate::report::TaskReport::findings):
//!
//! ```
//! use punctual::config::{Config, Guard};
//!
//! #[global_allocator]
//! static ALLOCATOR: punctual::guard::Allocator = punctual::guard::Allocator::system();
//!
//! #[punctual::app(main = false)]
//! mod app {
//!     #[shared]
//!     struct Shared {}
//!
//!     #[local]
//!     struct Local { samples: Vec<f32> }
//!
//!     #[init]
//!     fn init(_: init::Context) -> (Shared, Local) {
//!         sample::spawn().expect("it has room");
//!         (Shared {}, Local { samples: Vec::new() })
//!     }
//!
//!     #[task(priority = 1, local = [samples])]
//!     fn sample(cx: sample::Context) {
//!         // The vector has no room yet.
//!         cx.local.samples.push(0.5);
//!     }
//! }
//!
//! let report = app::run(Config::new().virtual_time().guard(Guard::Report)).expect("nothing can be missing");
//! let findings = &report.task("sample").unwrap().findings;
//! assert_eq!((findings[0].call.as_str(), findings[0].count), ("allocation", 1));
//! ```
//!
//! # What counts
//!
//! What happens in a task's function and in all that it calls, on the thread of the job:
//!
//! * allocation and deallocation, if the program has an [`Allocator`];
//! * system calls that wait: for a time, a lock (`futex`, which is what a contended `std::sync::Mutex` comes to), an event, a process;
//! * `read` and its kin of a file, or if there is nothing to read; `write` and its kin to standard output, standard error, a file, a terminal, and a
//!   pipe or socket that is not set to be non-blocking;
//! * calls that work on paths, on the process's memory map, or start threads and processes.
//!
//! All other calls are let through and not counted: those that return at once, and those to drivers (`ioctl`, and `read` and `write` of a
//! character device that is no terminal), of which nobody but the driver can say.
//!
//! What the executor does on behalf of the job does not count: a spawn that wakes a thread, a resource's lock, [`log!`](crate::log). Neither does
//! what `init`, `idle` and `#[shutdown]` do, what threads do that a job has started, and what happens after a panic. After a system call that
//! starts a thread or a process, changes the thread's signal mask or adds a seccomp filter, the rest of that job is not watched for system calls, nor for memory.
//!
//! A violation is let through as soon as it is noted: the job goes on.

mod allocator;
mod findings;
mod job;

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

pub use allocator::Allocator;
pub(crate) use job::{job, users_code};

use crate::app::config::Guard;
use crate::app::report::TaskReport;
use crate::app::runtime::Runtime;
use crate::port::linux::dispatch::Dispatched;
use crate::port::linux::notice;
use findings::Findings;

/// What the guard has found of a task, while it is on.
#[derive(Debug)]
pub(crate) struct GuardSlot {
    /// Null, or a `Box` that belongs to [`Guarded`].
    findings: AtomicPtr<Findings>,
}

impl GuardSlot {
    pub(crate) const fn empty() -> Self {
        Self { findings: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// What has been found, if the guard is on.
    #[inline]
    fn get(&self) -> Option<&Findings> {
        // Changes only while no job of the task can run; starting and joining the threads orders that.
        // SAFETY: it is null, or lives until `Guarded` is dropped, which is when no job can run.
        unsafe { self.findings.load(Ordering::Relaxed).as_ref() }
    }
}

/// Which threads could not be watched, of all apps.
static UNWATCHED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The guard of one run; off when dropped, which is after its threads have ended.
#[derive(Debug)]
pub(crate) struct Guarded {
    runtime: &'static Runtime,
    guard: Guard,
    /// What the report says about it.
    notes: Vec<String>,
}

impl Guarded {
    /// Has the jobs of `runtime`, none of which can run yet, watched as `guard` says.
    pub(crate) fn begin(runtime: &'static Runtime, guard: Guard) -> Self {
        let mut guarded = Self { runtime, guard, notes: Vec::new() };
        if guard == Guard::Off {
            return guarded;
        }
        guarded.notes.push(
            "the guard watches all jobs, which takes time: the figures are not those of the app without it"
                .into(),
        );
        if !job::sees_allocations() {
            guarded.warn(
                "the guard does not see allocations: install its allocator (#[global_allocator] static ALLOCATOR: \
                 punctual::guard::Allocator = punctual::guard::Allocator::system();)"
                    .into(),
            );
        }
        if let Err(why) = Dispatched::begin(job::entered_the_kernel) {
            guarded.warn(format!("the guard does not see system calls: {why}"));
        }
        for task in runtime.tasks.iter().filter_map(|task| task.info()) {
            let findings = Box::into_raw(Box::new(Findings::new(guard == Guard::Stop)));
            task.guard.findings.store(findings, Ordering::Relaxed);
            task.mark.set_guarded(true);
        }
        findings::prepare();
        runtime.set_guarded(true);
        guarded
    }

    /// What a report says about it.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    fn warn(&mut self, note: String) {
        notice::warn(format_args!("{note}"));
        self.notes.push(note);
    }

    /// Puts into the reports of tasks what has been found, and returns what threads were not watched. Takes its time.
    ///
    /// # Safety
    /// No job of the app can run any more.
    pub(crate) unsafe fn tell(&self, tasks: &mut [TaskReport]) -> Vec<String> {
        if self.guard == Guard::Off {
            return Vec::new();
        }
        for info in self.runtime.tasks.iter().filter_map(|task| task.info()) {
            let report = tasks.iter_mut().find(|task| task.name == info.name);
            if let (Some(report), Some(findings)) = (report, info.guard.get()) {
                // SAFETY: no job of the app can run any more, by this function's contract.
                report.findings = unsafe { findings.explained() };
            }
        }
        std::mem::take(&mut UNWATCHED.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.guard == Guard::Off {
            return;
        }
        self.runtime.set_guarded(false);
        for task in self.runtime.tasks.iter().filter_map(|task| task.info()) {
            task.mark.set_guarded(false);
            let findings = task.guard.findings.swap(std::ptr::null_mut(), Ordering::Relaxed);
            if !findings.is_null() {
                // SAFETY: `begin` made it of a box, and no job can run any more that would use it.
                drop(unsafe { Box::from_raw(findings) });
            }
        }
    }
}

/// The calling thread may run watched jobs, until this is dropped on it.
#[derive(Debug)]
pub(crate) struct WatchedThread {
    _dispatched: Dispatched,
}

impl WatchedThread {
    /// Before the first job of the thread, if the guard is on.
    pub(crate) fn begin(runtime: &'static Runtime) -> Option<Self> {
        if !runtime.is_guarded() {
            return None;
        }
        match Dispatched::begin(job::entered_the_kernel) {
            Ok(dispatched) => Some(Self { _dispatched: dispatched }),
            Err(why) => {
                let thread = std::thread::current();
                let note = format!(
                    "the guard sees no system calls of thread {}: {why}",
                    thread.name().unwrap_or("?")
                );
                UNWATCHED.lock().unwrap_or_else(PoisonError::into_inner).push(note);
                None
            }
        }
    }
}
