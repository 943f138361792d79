//! Finds jobs that allocate or block, and reports the task, the call and the stack.
//!
//! A job that allocates, prints, sleeps or waits for an ordinary lock takes an unbounded time,
//! often only in rare cases. Enable the guard by [`Config::guard`](crate::Config::guard) or
//! `PUNCTUAL_GUARD=report`, in a debug build so that the stacks contain lines, and read the
//! [report](crate::report::TaskReport::findings):
//!
//! ```
//! # #[cfg(feature = "guard")]
//! # {
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
//! # }
//! ```
//!
//! # Reported operations
//!
//! Operations in a task's function and in all functions it calls, on the thread of the job:
//!
//! * allocation and deallocation, if the program has an [`Allocator`];
//! * system calls that wait: for a time, a lock (`futex`, which a contended `std::sync::Mutex`
//!   calls), an event, a process;
//! * `read` and related calls on a file, or if there is nothing to read; `write` and related calls
//!   on standard output, standard error, a file, a terminal, and a pipe or socket that is not
//!   nonblocking;
//! * calls that use paths, change the process's memory map, or start threads and processes.
//!
//! All other calls are permitted and not counted: those that return at once, and those to drivers
//! (`ioctl`, and `read` and `write` of a character device other than a terminal), whose behavior
//! only the driver determines.
//!
//! Operations of the executor on behalf of the job are not reported: a spawn that wakes a thread, a
//! resource's lock, [`log!`](crate::log). Nor are those of `init`, `idle` and `#[shutdown]`, of
//! threads that a job has started, and after a panic. After a system call that starts a thread or a
//! process, changes the thread's signal mask or adds a seccomp filter, the rest of that job is
//! watched neither for system calls nor for memory.
//!
//! A violation is recorded and then permitted: the job continues.

#[cfg(feature = "guard")]
mod allocator;
mod findings;
mod job;

use std::sync::{Mutex, PoisonError};

#[cfg(feature = "guard")]
pub use self::allocator::Allocator;
use self::findings::Findings;
pub(crate) use self::job::{job, users_code};
use crate::cells::Slot;
use crate::config::Guard;
use crate::port::linux::dispatch::Dispatched;
use crate::port::linux::notice;
use crate::report::TaskReport;
use crate::state::runtime::Runtime;

/// Returns the findings about the task with this slot, if the guard is on.
#[inline]
fn findings(slot: &Slot) -> Option<&'static Findings> {
    // SAFETY: `Guarded` alone sets slots of findings, with this type.
    unsafe { slot.get() }
}

/// Threads that could not be watched, of all apps.
static UNWATCHED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The guard of one run; off when dropped, which is after its threads have ended.
#[derive(Debug)]
pub(crate) struct Guarded {
    runtime: &'static Runtime,
    guard: Guard,
    /// Notes for the report.
    notes: Vec<String>,
}

impl Guarded {
    /// Watches the jobs of `runtime`, none of which can run yet, as configured by `guard`.
    pub(crate) fn begin(runtime: &'static Runtime, guard: Guard) -> Self {
        let mut guarded = Self { runtime, guard, notes: Vec::new() };
        if guard == Guard::Off {
            return guarded;
        }
        guarded.notes.push(
            "the guard monitors all jobs, which takes time: the figures differ from those without \
             it"
            .into(),
        );
        if !job::observes_allocations() {
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
            // SAFETY: it lives until `drop` clears the slot, and this module uses it with this
            // type.
            unsafe { task.cells.guard.set(findings) };
            task.cells.mark.set_guarded(true);
        }
        findings::prepare();
        runtime.set_guarded(true);
        guarded
    }

    /// Returns the notes for the report.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    fn warn(&mut self, note: String) {
        notice::warn(format_args!("{note}"));
        self.notes.push(note);
    }

    /// Adds the findings to the reports of tasks, and returns the threads that were not watched.
    /// Slow.
    ///
    /// # Safety
    /// No job of the app can run anymore.
    pub(crate) unsafe fn add_findings(&self, tasks: &mut [TaskReport]) -> Vec<String> {
        if self.guard == Guard::Off {
            return Vec::new();
        }
        for info in self.runtime.tasks.iter().filter_map(|task| task.info()) {
            let report = tasks.iter_mut().find(|task| task.name == info.name);
            if let (Some(report), Some(findings)) = (report, findings(&info.cells.guard)) {
                // SAFETY: no job of the app can run anymore, by this function's contract.
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
            task.cells.mark.set_guarded(false);
            let findings = task.cells.guard.clear().cast::<Findings>();
            if !findings.is_null() {
                // SAFETY: `begin` made it from a box, and no job can run anymore that would use
                // it.
                drop(unsafe { Box::from_raw(findings) });
            }
        }
    }
}

/// Allows the calling thread to run watched jobs, until this is dropped on it.
#[derive(Debug)]
pub(crate) struct WatchedThread {
    _dispatched: Dispatched,
}

impl WatchedThread {
    /// Called before the first job of the thread; `None` if the guard is off.
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
