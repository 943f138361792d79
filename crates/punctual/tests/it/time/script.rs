//! Jobs whose behavior is data: their messages, execution times, and locks.

use punctual::Duration;

use crate::log::Log;

/// A step of a job.
#[derive(Debug, Clone, Copy)]
#[allow(unreachable_pub, reason = "the app's generated interface is `pub` by name")]
pub enum Step {
    Say(&'static str),
    /// Executes for this many milliseconds.
    Spend(u64),
    /// Performs these steps with `x` locked.
    X(&'static [Step]),
    /// Performs these steps with `y` locked.
    Y(&'static [Step]),
    Do(fn()),
}

/// Performs `steps` with a log and two resources, of which `None` is already locked or not
/// available to the job.
pub(crate) fn perform<X, Y>(steps: &[Step], log: &Log, mut x: Option<&mut X>, mut y: Option<&mut Y>)
where
    X: punctual::Mutex<T = u32>,
    Y: punctual::Mutex<T = u32>,
{
    for step in steps {
        match *step {
            Step::Say(what) => log.note(what),
            Step::Spend(ms) => punctual::spend(Duration::from_millis(ms)),
            Step::X(inner) => x.as_mut().expect("the job has `x`").lock(|x| {
                *x += 1;
                perform(inner, log, None::<&mut X>, y.as_deref_mut());
            }),
            Step::Y(inner) => y.as_mut().expect("the job has `y`").lock(|y| {
                *y += 1;
                perform(inner, log, x.as_deref_mut(), None::<&mut Y>);
            }),
            Step::Do(what) => what(),
        }
    }
}

/// For jobs that have no such resource.
pub(crate) const NONE: Option<&mut Nothing> = None;

/// No resource.
pub(crate) enum Nothing {}

impl punctual::Mutex for Nothing {
    type T = u32;

    fn lock<R>(&mut self, _: impl FnOnce(&mut u32) -> R) -> R {
        match *self {}
    }
}
