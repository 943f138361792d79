//! The reasons why a job could not be spawned, or an armed job could not be changed.

use core::fmt;

/// A job that was not spawned, with its arguments: none, one, or a tuple.
///
/// Only foreign threads get [`Stopping`](Self::Stopping). On a thread of the app, a spawn succeeds
/// while the app is stopping: the arguments are dropped immediately, and
/// [`Report::dropped_jobs`](crate::Report::dropped_jobs) counts the job as released and not run. So
/// a spawn with `unwrap` does not fail because the app is stopping, and a loop that spawns until
/// there is room ends.
///
/// `Debug` prints the same message as `Display`, so that a failed `unwrap` or `expect` shows the
/// task and the remedy. Neither requires that the arguments can be printed.
///
/// ```
/// use punctual::SpawnError;
///
/// let refused: Result<(), SpawnError<(u8, String)>> = Err(SpawnError::Stopping((1, "one".into())));
/// assert_eq!(refused.map_err(SpawnError::into_inner), Err((1, "one".into())));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnError<A> {
    /// All slots of the task's `capacity` are taken, or an async task has not completed yet.
    Full(A, &'static FullTask),
    /// The app is stopping or not running.
    Stopping(A),
    /// The task has had as many releases as its `min_interval` allows, and it has `on_early =
    /// reject`.
    TooEarly(A),
}

/// A task that had no room for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullTask {
    name: &'static str,
    capacity: Option<usize>,
}

impl FullTask {
    /// Describes a task; an async task has no `capacity`.
    pub(crate) const fn new(name: &'static str, capacity: Option<usize>) -> Self {
        Self { name, capacity }
    }

    /// Returns the name of the task.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the `capacity` of the task; `None` for an async task, of which one instance can run.
    pub const fn capacity(&self) -> Option<usize> {
        self.capacity
    }
}

impl fmt::Display for FullTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        match self.capacity {
            Some(capacity) => write!(
                f,
                "cannot spawn `{name}`: its capacity of {capacity} is used up; set a larger \
                 `capacity` in its attribute, spawn less often, or handle the error"
            ),
            None => write!(
                f,
                "cannot spawn `{name}`: the async task has not completed yet; spawn it after it has \
                 completed, or handle the error"
            ),
        }
    }
}

impl<A> SpawnError<A> {
    /// Returns the arguments.
    pub fn into_inner(self) -> A {
        match self {
            Self::Full(args, _) | Self::Stopping(args) | Self::TooEarly(args) => args,
        }
    }

    /// Returns `true` if the task has no room for the job at present.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(..))
    }

    /// Returns `true` if the `min_interval` of the task allows no further job yet.
    pub fn is_too_early(&self) -> bool {
        matches!(self, Self::TooEarly(_))
    }

    /// Returns `true` if the app is stopping or not running.
    pub fn is_stopping(&self) -> bool {
        matches!(self, Self::Stopping(_))
    }
}

impl<A> fmt::Debug for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<A> fmt::Display for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_, task) => task.fmt(f),
            Self::Stopping(_) => f.write_str("cannot spawn a job: the app is stopping or does not run"),
            Self::TooEarly(_) => f.write_str(
                "cannot spawn a job: the task has had as many releases as its `min_interval` allows",
            ),
        }
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
    fn reports_rejection_without_arguments() {
        struct NotDebug;
        static WORK: FullTask = FullTask::new("work", Some(2));
        let early = SpawnError::TooEarly(NotDebug);
        assert!(early.is_too_early() && !early.is_full() && !early.is_stopping());
        let [full, stopping] = [SpawnError::Full(NotDebug, &WORK), SpawnError::Stopping(NotDebug)];
        assert!(full.is_full() && !full.is_stopping() && stopping.is_stopping() && !stopping.is_full());
        for (error, reason) in [
            (early, "as its `min_interval` allows"),
            (full, "its capacity of 2 is used up"),
            (stopping, "is stopping"),
        ] {
            assert!(error.to_string().contains(reason), "{error}");
            assert_eq!(format!("{error:?}"), error.to_string(), "`unwrap` shows the reason");
            let error: Box<dyn std::error::Error> = Box::new(error);
            drop(error);
        }
    }
}
