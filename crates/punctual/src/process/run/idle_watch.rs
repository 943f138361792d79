//! Warns of an `idle` in virtual time in which no time passes.
//!
//! The clock advances only when no work is left at the current time, and `idle` is work. Without a
//! warning, one that spins or sleeps forever would be a silent standstill.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use punctual_core::Port;

use crate::port::Nanos;
use crate::port::linux::stderr;
use crate::state::partition::PartitionState;

/// Duration of a standstill of virtual time in `idle` before the warning.
const STANDSTILL: Duration = Duration::from_secs(2);

/// Watches `idle` until dropped. Between [`begin`](Self::begin) and the drop, nothing here
/// allocates.
pub(super) struct IdleWatch {
    idle: Arc<Idle>,
    watcher: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The watcher has not started.
    Unwatched,
    Ahead,
    Running,
    Over,
}

struct Idle {
    phase: Mutex<Phase>,
    changed: Condvar,
}

impl Idle {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        // Nothing panics while it holds the lock, and any phase is valid.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        *self.phase() = phase;
        self.changed.notify_all();
    }

    /// Waits until the phase changes.
    fn leave(&self, phase: Phase) {
        let is_left = self.changed.wait_while(self.phase(), |now| *now == phase);
        drop(is_left.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until `idle` has returned, for at most `limit`. Returns whether it is still running.
    fn runs_after(&self, limit: Duration) -> bool {
        let runs = |now: &mut Phase| *now == Phase::Running;
        let waited = self.changed.wait_timeout_while(self.phase(), limit, runs);
        let (mut phase, _) = waited.unwrap_or_else(PoisonError::into_inner);
        runs(&mut phase)
    }
}

impl IdleWatch {
    /// Starts to watch the partition `home`, whose thread is about to run `idle`.
    pub(super) fn begin(home: &'static PartitionState) -> Self {
        let idle = Arc::new(Idle { phase: Mutex::new(Phase::Unwatched), changed: Condvar::new() });
        let watched = Arc::clone(&idle);
        // If no thread can be started, the app runs without the watch.
        let watcher = Builder::new().name("idle watch".into()).spawn(move || watch(home, &watched)).ok();
        if watcher.is_some() {
            // By then the thread has made the allocations of its start.
            idle.leave(Phase::Unwatched);
        }
        Self { idle, watcher }
    }

    /// Records that `idle` begins.
    pub(super) fn entered(&self) {
        self.idle.enter(Phase::Running);
    }

    /// Records that `idle` has returned.
    pub(super) fn left(&self) {
        self.idle.enter(Phase::Over);
    }
}

impl Drop for IdleWatch {
    fn drop(&mut self) {
        self.left();
        if let Some(watcher) = self.watcher.take() {
            // It never panics.
            let _ = watcher.join();
        }
    }
}

fn watch(home: &'static PartitionState, idle: &Idle) {
    idle.enter(Phase::Ahead);
    idle.leave(Phase::Ahead);
    let mut before = home.core.port().now();
    while idle.runs_after(STANDSTILL) {
        let now = home.core.port().now();
        // A long job is not a standstill of `idle`.
        if now == before && home.core.snapshot().level() == 0 && !home.core.is_stopping() {
            stderr::line(format_args!(
                "`idle` has kept virtual time at {} for {} s; time passes when it returns, or calls \
                 `punctual::wait_for_event()`",
                Nanos(now.as_ticks()),
                STANDSTILL.as_secs()
            ));
            return;
        }
        before = now;
    }
}
