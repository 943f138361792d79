//! Why an app stops: a [`Cause`], or a [`Fault`].
//!
//! A cause is a constant, and to note it is one atomic step: whoever stops the app may be a job, which must not allocate or
//! take a lock that it could wait for before the app knows that it is to stop.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

/// Whose code panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Culprit {
    /// A task, `init`, `idle` or `shutdown`.
    Handler(&'static str),
    /// The destructor of an argument for this task.
    Argument(&'static str),
    /// The destructor of this resource.
    Resource(&'static str),
    /// A call given to `helper::submit`.
    Call,
    /// A waker that a future of the user's has made.
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
            Self::Call => f.write_str("a call submitted to the helper thread"),
            Self::Waker => f.write_str("a waker"),
            Self::Executor => f.write_str("the executor"),
        }
    }
}

/// The first panic of a run.
pub(crate) struct Fault {
    pub(crate) culprit: Culprit,
    pub(crate) payload: Box<dyn Any + Send>,
}

impl Fault {
    /// What the panic said.
    pub(crate) fn text(&self) -> &str {
        panic_text(&*self.payload)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault").field("culprit", &self.culprit).finish_non_exhaustive()
    }
}

/// Drops what a run leaves of its fault.
impl Drop for Fault {
    fn drop(&mut self) {
        discard(std::mem::replace(&mut self.payload, Box::new(())));
    }
}

/// Drops the payload of a panic, or gives it up if that panics too.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // The one after that would be no better.
        std::mem::forget(another);
    }
}

/// What a panic said.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(the panic carries no text)")
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
