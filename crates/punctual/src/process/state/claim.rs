//! Claim of an app by a run, and its return: one run at a time, for which runs in virtual time
//! wait.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use super::app::NOT_LAID;
use super::thread::{self, LastThread};
use crate::report::TaskReport;
use crate::start_error::StartError;
use crate::state::runtime::Runtime;

/// The app is not running.
const FREE: u8 = 0;
/// A run on threads of the kernel is in progress.
const REAL_TIME: u8 = 1;
/// A run in virtual time is in progress.
const VIRTUAL_TIME: u8 = 2;
/// A run ended without clearing all state.
const NOT_RESET: u8 = 3;

/// Time that a run in virtual time waits for another one: longer than any test should take.
const WAIT_LIMIT: StdDuration = StdDuration::from_mins(10);

/// The apps that are running, for signals, for `shutdown` from other threads, and for runs that
/// wait.
static RUNNING: Mutex<Vec<&'static Runtime>> = Mutex::new(Vec::new());
/// Signaled whenever a run returns its app.
static GIVEN_BACK: Condvar = Condvar::new();

fn running() -> MutexGuard<'static, Vec<&'static Runtime>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `f` for every running app.
pub(crate) fn each_running(f: impl Fn(&'static Runtime)) {
    let running = running().clone();
    running.into_iter().for_each(f);
}

/// State of an app's claim.
pub(super) struct Claim(AtomicU8);

impl Claim {
    pub(super) const fn free() -> Self {
        Self(AtomicU8::new(FREE))
    }

    /// Returns whether a run is in progress. Async-signal-safe.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self.0.load(Ordering::Relaxed), REAL_TIME | VIRTUAL_TIME)
    }

    /// Claims the app as `state`, or returns its current state.
    fn take(&self, state: u8) -> Result<(), u8> {
        self.0.compare_exchange(FREE, state, Ordering::Acquire, Ordering::Relaxed).map(drop)
    }
}

impl Runtime {
    /// Claims the app for a run. A run in virtual time waits for the end of another one; a run on
    /// threads of the kernel does not.
    pub(crate) fn take(&'static self, virtual_time: bool) -> Result<RunGuard, StartError> {
        self.claim(virtual_time, WAIT_LIMIT)?;
        // SAFETY: the previous run, if any, has joined its threads, closed the app to others, and
        // dropped every job.
        unsafe { self.reset(virtual_time) };
        self.clear_job_flags(u32::MAX);
        self.host.stop_requested.store(0, Ordering::Relaxed);
        self.host.grid.store(NOT_LAID, Ordering::Relaxed);
        self.forget_fault();
        running().push(self);
        self.host.foreign_spawns.open();
        Ok(RunGuard { runtime: self, ended: Cell::new(false) })
    }

    fn claim(&'static self, virtual_time: bool, limit: StdDuration) -> Result<(), StartError> {
        let begun = StdInstant::now();
        let mut running = running();
        loop {
            match self.host.claim.take(if virtual_time { VIRTUAL_TIME } else { REAL_TIME }) {
                Ok(()) => return Ok(()),
                Err(NOT_RESET) => return Err(StartError::NotReset(self.name)),
                // A thread of the run, and a copy of it in the child of a `fork`, would wait for
                // themselves.
                Err(_) if virtual_time && !thread::is_of(self) && !self.is_copy() => {}
                Err(_) => return Err(StartError::AlreadyRunning(self.name)),
            }
            let Some(left) = limit.checked_sub(begun.elapsed()) else {
                return Err(StartError::AlreadyRunning(self.name));
            };
            running = GIVEN_BACK.wait_timeout(running, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A run in progress. Returns the app when dropped, if the run has [ended](Self::end).
#[derive(Debug)]
pub(crate) struct RunGuard {
    runtime: &'static Runtime,
    ended: Cell<bool>,
}

impl RunGuard {
    /// Ends the run: no more spawns, every waiting job dropped. Returns the measurements and the
    /// number of dropped jobs, in addition to those that [`dropped`](Runtime::dropped) counts.
    ///
    /// # Safety
    /// Every thread of the run has ended.
    pub(crate) unsafe fn end(&self) -> (Vec<TaskReport>, u64) {
        self.runtime.host.foreign_spawns.close();
        // SAFETY: every thread of the run has ended, by this function's contract; the calling one
        // drops the futures, whose destructors may lock, one after the other.
        let _last = unsafe { LastThread::of(self.runtime) };
        // SAFETY: every thread of the run has ended, by this function's contract, and no thread
        // spawns anymore.
        let ended = self.runtime.tasks.iter().map(|task| unsafe { (task.end(), task.report()) });
        let (mut tasks, mut dropped) = (Vec::new(), 0);
        for (waiting, task) in ended {
            tasks.extend(task);
            dropped += u64::from(waiting);
        }
        self.ended.set(true);
        (tasks, dropped)
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.runtime.host.foreign_spawns.close();
        let mut running = running();
        running.retain(|running| !std::ptr::eq(*running, self.runtime));
        // The next run would find the remaining values, and use them with other resources on
        // another thread.
        let state = if self.ended.get() { FREE } else { NOT_RESET };
        // Release: pairs with the claim of the next run.
        self.runtime.host.claim.0.store(state, Ordering::Release);
        GIVEN_BACK.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::Worker;

    use super::*;
    use crate::model::Model;
    use crate::state::partition::{PartitionConfig, PartitionState, ThreadModel};
    use crate::state::runtime::Options;

    static IDLE: Worker = Worker::new(0);
    static MODEL: Model = Model::new("app", &[], &[], &[], None);
    static RUNTIME: Runtime = Runtime::new(&MODEL, Options::NONE, &[&PART], &PART, &[], None, None);
    static PART: PartitionState = {
        let declared = PartitionConfig { name: "app", model: ThreadModel::Anywhere, cpu: None, stack: None };
        // SAFETY: the worker is of no other partition.
        unsafe { PartitionState::new(declared, &RUNTIME, &[], &[&IDLE], &IDLE, None) }
    };

    #[test]
    fn wait_for_run_has_limit() {
        let runtime = &RUNTIME;
        for held in [VIRTUAL_TIME, REAL_TIME] {
            runtime.host.claim.take(held).expect("it is free");
            let refused = runtime.claim(true, StdDuration::ZERO);
            runtime.host.claim.0.store(FREE, Ordering::Release);
            assert!(matches!(refused, Err(StartError::AlreadyRunning(_))), "{refused:?}");
        }
    }
}
