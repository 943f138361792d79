//! The reasons why a job could not be spawned, or an armed job could not be changed.

use core::fmt;

/// A job that was not spawned, with its arguments: none, one, or a tuple.
///
/// Only foreign threads get [`Stopping`](Self::Stopping). On a thread of the app, a spawn succeeds
/// while the app is stopping: the arguments are dropped immediately, and
/// [`Report::dropped_jobs`](crate::Report::dropped_jobs) counts the job as released and not run. So
/// a spawn with `unwrap` does not fail because the app happens to be stopping, and a loop that
/// spawns until there is room ends.
///
/// ```
/// use punctual::SpawnError;
///
/// let refused: Result<(), SpawnError<(u8, String)>> = Err(SpawnError::Full((1, "one".into())));
/// assert_eq!(refused.map_err(SpawnError::into_inner), Err((1, "one".into())));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnError<A> {
    /// All slots of the task's `capacity` are taken; or an async task has not completed yet.
    Full(A),
    /// The app is stopping or not running.
    Stopping(A),
    /// The task has had as many releases as its `min_interval` allows, and has `on_early = reject`.
    TooEarly(A),
}

impl<A> SpawnError<A> {
    /// Returns the arguments.
    pub fn into_inner(self) -> A {
        match self {
            Self::Full(args) | Self::Stopping(args) | Self::TooEarly(args) => args,
        }
    }

    /// Returns whether there is no room for the job now; there may be room later.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    /// Returns whether the task's `min_interval` does not allow another job yet.
    pub fn is_too_early(&self) -> bool {
        matches!(self, Self::TooEarly(_))
    }

    /// Returns whether the app is stopping or not running.
    pub fn is_stopping(&self) -> bool {
        matches!(self, Self::Stopping(_))
    }
}

/// Does not require `Debug` of the arguments, so that `unwrap` works with all of them.
impl<A> fmt::Debug for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Stopping(_) => "Stopping(..)",
            Self::TooEarly(_) => "TooEarly(..)",
        })
    }
}

impl<A> fmt::Display for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "as many jobs of the task as it has room for are waiting already",
            Self::Stopping(_) => "the app is stopping or does not run",
            Self::TooEarly(_) => "the task has been released as often as its `min_interval` allows",
        })
    }
}

impl<A> core::error::Error for SpawnError<A> {}

/// An armed job cannot be cancelled or rescheduled: it has been released, or its run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLate;

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the job has been released already, or its run has ended")
    }
}

impl core::error::Error for TooLate {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_why_without_knowing_the_arguments() {
        struct NotDebug;
        let early = SpawnError::TooEarly(NotDebug);
        assert!(early.is_too_early() && !early.is_full() && !early.is_stopping());
        assert!(format!("{early:?} {early}").contains("TooEarly(..) the task has been released as often"));
        let [full, stopping] = [SpawnError::Full(NotDebug), SpawnError::Stopping(NotDebug)];
        assert!(full.is_full() && !full.is_stopping() && stopping.is_stopping() && !stopping.is_full());
        assert_eq!(format!("{full:?} {stopping:?}"), "Full(..) Stopping(..)");
        assert!(full.to_string().contains("waiting already"));
        assert!(stopping.to_string().contains("is stopping"));
        let error: Box<dyn std::error::Error> = Box::new(full);
        drop(error);
    }
}
