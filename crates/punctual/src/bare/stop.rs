//! Reasons why an app stops.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::report::Outcome;

/// A reason, as in [`Outcome`].
#[derive(Debug)]
pub(crate) enum StopReason {
    Shutdown,
    /// The task that was released while its previous job was unfinished.
    Overrun(&'static str),
    TimeUp,
    Quiescent,
}

/// The first reason of a run.
pub(crate) struct FirstStopReason(AtomicPtr<StopReason>);

impl FirstStopReason {
    pub(crate) const fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Records `reason` if it is the first.
    pub(crate) fn record(&self, reason: &'static StopReason) {
        let reason = ptr::from_ref(reason).cast_mut();
        let _ = self.0.compare_exchange(ptr::null_mut(), reason, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn reset(&self) {
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
    }

    pub(crate) fn outcome(&self) -> Outcome {
        // SAFETY: it is null, or was made in `record` from a `'static` reference to a value that is
        // never written.
        match unsafe { self.0.load(Ordering::Relaxed).cast_const().as_ref() } {
            Some(StopReason::Overrun(task)) => Outcome::Overrun { task },
            Some(StopReason::TimeUp) => Outcome::TimeUp,
            Some(StopReason::Quiescent) => Outcome::Quiescent,
            Some(StopReason::Shutdown) | None => Outcome::Shutdown,
        }
    }
}

/// Running user code; used on platforms on which a program survives a panic.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Culprit {
    /// The destructor of an argument for this task.
    Argument(#[expect(dead_code, reason = "a panic ends the program")] &'static str),
    /// A task.
    #[cfg(feature = "async")]
    Handler(#[expect(dead_code, reason = "a panic ends the program")] &'static str),
    /// A waker.
    #[cfg(feature = "async")]
    Waker,
}
