//! Reasons why an app stops: a [`StopReason`], or a fault of a [`Culprit`].
//!
//! A reason is a constant, recorded by one atomic operation: a job that stops the app must neither
//! allocate nor wait for a lock before the app is stopping.

use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::report::Outcome;

/// A reason, as in [`Outcome`].
#[cfg_attr(not(feature = "std"), allow(dead_code, reason = "a board has no signals and descriptors"))]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    Shutdown,
    TimeUp,
    Quiescent,
    Signal(i32),
    /// The task that was released while its previous job was unfinished.
    Overrun(&'static str),
    /// The task whose event source has no more data.
    IdleSource(&'static str),
    /// The guard found a job of this task that allocates or blocks.
    Guard(&'static str),
}

impl From<&StopReason> for Outcome {
    fn from(reason: &StopReason) -> Self {
        match *reason {
            StopReason::Shutdown => Self::Shutdown,
            StopReason::TimeUp => Self::TimeUp,
            StopReason::Quiescent => Self::Quiescent,
            StopReason::Signal(signal) => Self::Signal(signal),
            StopReason::Overrun(task) => Self::Overrun { task },
            StopReason::IdleSource(task) => Self::IdleSource { task },
            StopReason::Guard(task) => Self::Guard { task },
        }
    }
}

/// The first reason of a run.
#[derive(Debug)]
pub(crate) struct FirstStopReason(AtomicPtr<StopReason>);

impl FirstStopReason {
    pub(crate) const fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Records `reason` if it is the first. Neither allocates nor waits.
    pub(crate) fn record(&self, reason: &'static StopReason) {
        let reason = ptr::from_ref(reason).cast_mut();
        // Relaxed: it points to a constant, and readers have seen the stop before.
        let _ = self.0.compare_exchange(ptr::null_mut(), reason, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn reset(&self) {
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<&'static StopReason> {
        // SAFETY: it is null, or was made in `record` from a `'static` reference to a value that is
        // never written.
        unsafe { self.0.load(Ordering::Relaxed).cast_const().as_ref() }
    }
}

/// Owner of the code that panicked.
#[cfg_attr(not(feature = "std"), allow(dead_code, reason = "a panic ends the program on a board"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Culprit {
    /// A task, `init`, `idle` or `shutdown`.
    Handler(&'static str),
    /// The destructor of an argument for this task.
    Argument(&'static str),
    /// The destructor of this resource.
    Resource(&'static str),
    /// A call given to `background::submit`.
    Call,
    /// A waker created by a user's future.
    Waker,
    /// The library itself.
    Executor,
}

/// As in [`Outcome::Panicked`].
impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(name) => f.write_str(name),
            Self::Argument(task) => write!(f, "drop of an argument for {task}"),
            Self::Resource(name) => write!(f, "drop of {name}"),
            Self::Call => f.write_str("a call submitted to the background thread"),
            Self::Waker => f.write_str("a waker"),
            Self::Executor => f.write_str("the executor"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_first_reason_until_reset() {
        let first = FirstStopReason::none();
        assert_eq!(first.get(), None);
        first.record(&StopReason::Overrun("late"));
        first.record(&StopReason::Shutdown);
        assert_eq!(first.get().map(Outcome::from), Some(Outcome::Overrun { task: "late" }));
        first.reset();
        first.record(&StopReason::Signal(15));
        assert_eq!(first.get(), Some(&StopReason::Signal(15)));
    }
}
