//! Why a job could not be spawned, or an armed one not be changed any more.

use std::fmt;

use crate::app::current;
use crate::app::runtime::Runtime;

/// A job that was not spawned, with its arguments: none, one, or a tuple.
///
/// Only a thread that is not the app's is told that the app is stopping. To a thread of the app itself, a spawn in an app
/// that is stopping succeeds: the job is one of those that were released and not run, its arguments are dropped at
/// once, and [`Report::dropped_jobs`](crate::Report::dropped_jobs) counts it. So code that relies on its spawns, and
/// says so by `unwrap`, does so whenever the app happens to be stopped; and whoever spawns until there is room
/// is not kept from ending.
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
    /// As many jobs as the task's `capacity` wait already; an async task has not completed yet.
    Full(A),
    /// The app is stopping, or does not run.
    Stopping(A),
}

impl<A> SpawnError<A> {
    /// The arguments.
    pub fn into_inner(self) -> A {
        match self {
            Self::Full(args) | Self::Stopping(args) => args,
        }
    }

    /// Whether there is no room for the job now, though there may be later.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    /// Whether the app is stopping, or does not run.
    pub fn is_stopping(&self) -> bool {
        matches!(self, Self::Stopping(_))
    }
}

/// Arguments need not be `Debug`, so that `unwrap` is for all of them.
impl<A> fmt::Debug for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Stopping(_) => "Stopping(..)",
        })
    }
}

impl<A> fmt::Display for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "as many jobs of the task as it has room for are waiting already",
            Self::Stopping(_) => "the app is stopping or does not run",
        })
    }
}

impl<A> std::error::Error for SpawnError<A> {}

/// An armed job cannot be taken back or moved: it has been released, or its run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLate;

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the job has been released already, or its run has ended")
    }
}

impl std::error::Error for TooLate {}

/// What becomes of a spawn when nothing is released any more; see [`SpawnError`].
#[cold]
#[inline(never)]
pub(crate) fn not_released<A>(runtime: &'static Runtime, args: A) -> Result<(), SpawnError<A>> {
    if !current::is_of(runtime) {
        return Err(SpawnError::Stopping(args));
    }
    runtime.drop_job();
    drop(args);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_why_without_knowing_the_arguments() {
        struct NotDebug;
        let [full, stopping] = [SpawnError::Full(NotDebug), SpawnError::Stopping(NotDebug)];
        assert!(full.is_full() && !full.is_stopping() && stopping.is_stopping() && !stopping.is_full());
        assert_eq!(format!("{full:?} {stopping:?}"), "Full(..) Stopping(..)");
        assert!(full.to_string().contains("waiting already"));
        assert!(stopping.to_string().contains("is stopping"));
        let error: Box<dyn std::error::Error> = Box::new(full);
        drop(error);
    }
}
