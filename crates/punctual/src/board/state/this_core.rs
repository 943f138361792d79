//! Code running on the core: a job, `idle` or `init`, as the single worker of the core's partition,
//! or an interrupt handler.

use core::ptr;

use punctual_core::CurrentWorker;

use crate::board::port as board;
use crate::state::partition::PartitionState;
use crate::state::runtime::Runtime;

/// Sets the partition that runs on the core, if any.
pub(crate) fn set(partition: Option<&'static PartitionState>) {
    board::set_own(partition.map_or(ptr::null(), |partition| ptr::from_ref(partition).cast()));
}

/// Returns the partition of the core, and its worker unless a handler runs.
#[inline]
pub(crate) fn get() -> Option<(&'static PartitionState, CurrentWorker)> {
    let partition = partition()?;
    Some((partition, worker_of(partition)?))
}

/// Returns the partition of the core, also in a handler.
#[inline]
pub(crate) fn partition() -> Option<&'static PartitionState> {
    // SAFETY: null, or from a `'static` reference: see `set`.
    unsafe { board::own().cast::<PartitionState>().as_ref() }
}

/// Returns the level of the job that runs on the core, or that a handler has interrupted there: 0
/// for `idle` or `init`.
pub(crate) fn level() -> Option<u8> {
    Some(partition()?.running())
}

/// Returns whether `partition` is the one of the core.
#[inline]
pub(crate) fn is_here(partition: &PartitionState) -> bool {
    ptr::eq(board::own().cast::<PartitionState>(), partition)
}

/// Returns the worker of `partition`, if that is the core's and no handler runs.
#[inline]
pub(crate) fn worker_of(partition: &'static PartitionState) -> Option<CurrentWorker> {
    // SAFETY: it is the partition of this core, and this is not a handler; so any other use of the
    // worker has been interrupted, or is below on this stack.
    is_in(partition).then(|| unsafe { partition.enter_idle() })
}

/// Returns whether `partition` is that of the core and no handler runs.
#[inline(always)]
pub(crate) fn is_in(partition: &'static PartitionState) -> bool {
    is_here(partition) && !partition.core.port().is_in_handler()
}

/// Returns the worker of the core's partition.
///
/// # Safety
/// The core has a partition, and no handler runs.
#[inline(always)]
pub(crate) unsafe fn worker() -> CurrentWorker {
    // SAFETY: this is not a handler, so any other use of the worker has been interrupted, or is
    // below on this stack; the core has a partition.
    unsafe { partition().unwrap_unchecked().enter_idle() }
}

/// Returns whether a partition of `runtime` runs on the core.
#[inline]
pub(crate) fn is_of(runtime: &'static Runtime) -> bool {
    partition().is_some_and(|partition| ptr::eq(partition.runtime, runtime))
}
