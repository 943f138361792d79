//! Resources whose users run apart: in several partitions, or each level for itself under the global executor.
//!
//! Within a partition the ceiling of a resource is enough, since a partition runs one job at a time. Jobs that truly run
//! at once need a lock besides:
//!
//! * across partitions, the Multiprocessor Stack Resource Policy: [`GroupLocked`];
//! * under the global executor, the Priority Ceiling Protocol: [`CeilingLocked`].
//!
//! Which of them a resource has is for the macro to decide; a task's code is the same with either.

mod async_locked;
mod ceiling;
mod group;

pub use async_locked::AsyncLocked;
pub(crate) use ceiling::Membership;
pub use ceiling::{CeilingLocked, CeilingMutex, Ceilings};
pub use group::{Group, GroupLocked};

use punctual_core::{CurrentWorker, Port};

use crate::app::current;
use crate::app::partition::Part;

/// Runs `f` with the value of a resource. A panic that leaves it is a fault of the app, of which it is told before anybody else
/// can enter.
#[inline]
fn critical<T, R>(part: &'static Part, value: &mut T, f: impl FnOnce(&mut T) -> R) -> R {
    let section = Section(part);
    let result = f(value);
    std::mem::forget(section);
    result
}

/// A critical section; to drop it is to unwind out of it.
struct Section(&'static Part);

impl Drop for Section {
    #[cold]
    fn drop(&mut self) {
        self.0.partition.port().unwinds();
    }
}

/// The worker that the calling thread is, which runs a job of `level` of `part`.
///
/// # Panics
/// If it does not: a lock right has left its task.
#[inline]
pub(crate) fn user(part: &'static Part, level: u8) -> CurrentWorker {
    let worker = current::worker_of(part).filter(|worker| worker.running() == level);
    worker.expect("a shared resource is locked by its task only, while it runs")
}
