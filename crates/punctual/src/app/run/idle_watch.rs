//! Says of an `idle` in virtual time that time does not pass in it.
//!
//! The clock moves only when nothing is left to do at the time it shows, and `idle` is something. One that spins or sleeps
//! for ever would otherwise end in a silent standstill.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use punctual_core::Port;

use crate::app::partition::PartitionState;
use crate::port::format_nanos;
use crate::port::linux::stderr;

/// How long virtual time stands still in `idle` before that is said.
const STANDSTILL: Duration = Duration::from_secs(2);

/// Watches `idle` until dropped. Between [`begin`](Self::begin) and that, nothing here allocates.
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
        // Nothing panics with the phase, which is whole at any time.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        *self.phase() = phase;
        self.changed.notify_all();
    }

    /// Waits until the phase is another.
    fn leave(&self, phase: Phase) {
        let is_left = self.changed.wait_while(self.phase(), |now| *now == phase);
        drop(is_left.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until `idle` is over, for so long at most; gives whether it still runs.
    fn runs_after(&self, limit: Duration) -> bool {
        let runs = |now: &mut Phase| *now == Phase::Running;
        let waited = self.changed.wait_timeout_while(self.phase(), limit, runs);
        let (mut phase, _) = waited.unwrap_or_else(PoisonError::into_inner);
        runs(&mut phase)
    }
}

impl IdleWatch {
    /// Starts to watch the partition `home`, whose thread is going to run `idle`.
    pub(super) fn begin(home: &'static PartitionState) -> Self {
        let idle = Arc::new(Idle { phase: Mutex::new(Phase::Unwatched), changed: Condvar::new() });
        let watched = Arc::clone(&idle);
        // Where there is no thread to be had the app runs without.
        let watcher = Builder::new().name("idle watch".into()).spawn(move || watch(home, &watched)).ok();
        if watcher.is_some() {
            // What a thread allocates at its start is over then.
            idle.leave(Phase::Unwatched);
        }
        Self { idle, watcher }
    }

    /// `idle` begins.
    pub(super) fn entered(&self) {
        self.idle.enter(Phase::Running);
    }

    /// `idle` has returned.
    pub(super) fn left(&self) {
        self.idle.enter(Phase::Over);
    }
}

impl Drop for IdleWatch {
    fn drop(&mut self) {
        self.left();
        if let Some(watcher) = self.watcher.take() {
            // It has nothing to panic for.
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
        // A job that takes long is another matter.
        if now == before && home.core.snapshot().level() == 0 && !home.core.is_stopping() {
            stderr::line(format_args!(
                "`idle` has kept virtual time at {} for {} s; time passes when it returns, or calls \
                 `punctual::wait_for_event()`",
                format_nanos(now.as_ticks() as f64),
                STANDSTILL.as_secs()
            ));
            return;
        }
        before = now;
    }
}
