//! Faults: a panic ends the program, by the handler of the board's crate. So nothing has to be
//! contained.

use super::runtime::Runtime;
use super::stop::Culprit;

/// Runs user code in place of a job.
#[cfg(feature = "async")]
pub(crate) fn ended_by(_: &'static Runtime, _: Culprit, f: impl FnOnce()) {
    f();
}

/// Runs user code outside of jobs.
pub(crate) fn contained<R>(_: &'static Runtime, _: Culprit, f: impl FnOnce() -> R) -> Option<R> {
    Some(f())
}
