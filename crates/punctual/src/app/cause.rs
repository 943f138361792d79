//! Why an app stops, unless it is a [fault](crate::app::fault).
//!
//! A cause is a constant, and to note it is one atomic step: whoever stops the app may be a job, which must not allocate or
//! take a lock that it could wait for before the app knows that it is to stop.

use std::sync::atomic::{AtomicPtr, Ordering};

use crate::app::report::Outcome;

/// A cause, as in [`Outcome`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Shutdown,
    TimeUp,
    Quiescent,
    Signal(i32),
    /// The task that was released while its previous job was unfinished.
    Overrun(&'static str),
    /// The task whose event source has nothing to give.
    IdleSource(&'static str),
}

impl From<&Cause> for Outcome {
    fn from(cause: &Cause) -> Self {
        match *cause {
            Cause::Shutdown => Self::Shutdown,
            Cause::TimeUp => Self::TimeUp,
            Cause::Quiescent => Self::Quiescent,
            Cause::Signal(signal) => Self::Signal(signal),
            Cause::Overrun(task) => Self::Overrun { task: task.into() },
            Cause::IdleSource(task) => Self::IdleSource { task: task.into() },
        }
    }
}

/// The first cause of a run.
#[derive(Debug)]
pub(crate) struct FirstCause(AtomicPtr<Cause>);

impl FirstCause {
    pub(crate) const fn none() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Notes `cause` unless there is one. Neither allocates nor waits.
    pub(crate) fn note(&self, cause: &'static Cause) {
        let cause = std::ptr::from_ref(cause).cast_mut();
        // Relaxed: what it points to is a constant, and whoever asks has been told of the stop by then.
        let _ = self.0.compare_exchange(std::ptr::null_mut(), cause, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn forget(&self) {
        self.0.store(std::ptr::null_mut(), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<&'static Cause> {
        // SAFETY: it is null, or was made in `note` of a reference for ever to something that nobody writes to.
        unsafe { self.0.load(Ordering::Relaxed).cast_const().as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_stays_until_it_is_forgotten() {
        let first = FirstCause::none();
        assert_eq!(first.get(), None);
        first.note(&Cause::Overrun("late"));
        first.note(&Cause::Shutdown);
        assert_eq!(first.get().map(Outcome::from), Some(Outcome::Overrun { task: "late".into() }));
        first.forget();
        first.note(&Cause::Signal(15));
        assert_eq!(first.get(), Some(&Cause::Signal(15)));
    }
}
