//! What runs on the core: a job, `idle` or `init`, as the partition's one worker, or the handler of an interrupt.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use punctual_core::CurrentWorker;

use super::partition::PartitionState;
use super::runtime::Runtime;

/// The partition that runs on the core, if one does.
static PARTITION: AtomicPtr<PartitionState> = AtomicPtr::new(ptr::null_mut());

/// Whether a handler runs that has not come to serving jobs.
static IN_HANDLER: AtomicBool = AtomicBool::new(false);

/// Makes `partition` the one that runs on the core, or none.
pub(crate) fn set(partition: Option<&'static PartitionState>) {
    let partition = partition.map_or(ptr::null_mut(), |partition| ptr::from_ref(partition).cast_mut());
    PARTITION.store(partition, Ordering::Relaxed);
}

/// Says whether a handler runs.
#[inline]
pub(crate) fn set_in_handler(is: bool) {
    IN_HANDLER.store(is, Ordering::Relaxed);
}

#[inline]
pub(crate) fn in_handler() -> bool {
    IN_HANDLER.load(Ordering::Relaxed)
}

/// The partition of the core, and its worker unless a handler runs.
#[inline]
pub(crate) fn get() -> Option<(&'static PartitionState, CurrentWorker)> {
    // SAFETY: null, or from a reference that lasts.
    let partition = unsafe { PARTITION.load(Ordering::Relaxed).cast_const().as_ref() }?;
    Some((partition, worker_of(partition)?))
}

/// The partition of the core, also in a handler.
#[inline]
pub(crate) fn partition() -> Option<&'static PartitionState> {
    // SAFETY: null, or from a reference that lasts.
    unsafe { PARTITION.load(Ordering::Relaxed).cast_const().as_ref() }
}

/// The worker of `partition`, if that is the core's and no handler runs.
#[inline]
pub(crate) fn worker_of(partition: &'static PartitionState) -> Option<CurrentWorker> {
    let here = ptr::eq(PARTITION.load(Ordering::Relaxed), partition) && !in_handler();
    // SAFETY: there is one core, and this is not a handler; so whatever else uses the worker has been interrupted, or is
    // below on this stack.
    here.then(|| unsafe { partition.enter_idle() })
}

/// The right to release jobs in an app that is not stopping.
pub(crate) struct Entry;

/// Lets a handler release jobs of `runtime`; `None` if that is not running, or stopping.
#[inline]
pub(crate) fn enter(runtime: &'static Runtime) -> Option<Entry> {
    (is_of(runtime) && !runtime.is_stopping()).then_some(Entry)
}

/// Whether this is the only code left of a run of `runtime`.
#[cfg(feature = "async")]
#[cold]
pub(crate) fn is_last_of(runtime: &'static Runtime) -> bool {
    is_of(runtime) && runtime.is_ending()
}

/// Whether it is `runtime` that runs on the core.
#[inline]
pub(crate) fn is_of(runtime: &'static Runtime) -> bool {
    ptr::eq(PARTITION.load(Ordering::Relaxed), runtime.home)
}
