//! Partition and worker of the calling thread.

use std::cell::Cell;
use std::ptr;

use punctual_core::{CurrentWorker, Worker};
use punctual_sync::{PcpGroup, pcp};

use crate::port::linux::word;
use crate::state::fault::{self, FaultOrder};
use crate::state::foreign_spawns::ForeignSpawn;
use crate::state::partition::PartitionState;
use crate::state::runtime::Runtime;

thread_local! {
    static CURRENT: Cell<Here> = const { Cell::new(Here { partition: ptr::null(), worker: None }) };
    static CEILING_MEMBER: Cell<Option<&'static pcp::Member<'static>>> = const { Cell::new(None) };
    static ENDING: Cell<Option<&'static Runtime>> = const { Cell::new(None) };
    static GUEST: Cell<Option<&'static Runtime>> = const { Cell::new(None) };
}

/// Location of a thread. A spawn compares the partition, and needs no further check if it matches.
#[derive(Debug, Clone, Copy)]
struct Here {
    /// Null, or from a `&'static PartitionState`; then there is a worker, as which the thread has
    /// [joined](punctual_core::Partition::join).
    partition: *const PartitionState,
    worker: Option<CurrentWorker>,
}

/// Marks the calling thread as the only one left of a run, until dropped.
#[derive(Debug)]
pub(crate) struct LastThread {
    /// The app that this thread was ending before: its destructors may run another app.
    before: Option<&'static Runtime>,
}

impl LastThread {
    /// Marks the calling thread as the one that ends the run of `runtime`.
    ///
    /// # Safety
    /// Until the value is dropped, no other thread uses the resources of `runtime`.
    pub(crate) unsafe fn of(runtime: &'static Runtime) -> Self {
        Self { before: ENDING.replace(Some(runtime)) }
    }
}

impl Drop for LastThread {
    fn drop(&mut self) {
        ENDING.set(self.before);
    }
}

/// Returns whether the calling thread is the only one left of a run of `runtime`; see
/// [`LastThread::of`].
#[cold]
pub(crate) fn is_last_of(runtime: &'static Runtime) -> bool {
    ENDING.get().is_some_and(|ending| ptr::eq(ending, runtime))
}

/// Makes the calling thread the guest of a run in virtual time, until its end.
pub(crate) fn begin_as_guest(runtime: &'static Runtime) {
    GUEST.set(Some(runtime));
}

/// Returns the app in virtual time whose guest the calling thread is.
pub(crate) fn host_of_guest() -> Option<&'static Runtime> {
    GUEST.get()
}

/// Makes the calling thread a thread of `partition` until dropped.
#[derive(Debug)]
pub(crate) struct Member {
    _membership: Option<Membership>,
    /// The thread's previous partition: an app may run another app.
    before: Here,
    /// The order of the fault if a panic has left a section of that partition: its job or `idle`,
    /// which runs this app, has not ended.
    unwound_before: Option<FaultOrder>,
}

impl Member {
    pub(crate) fn join(partition: &'static PartitionState, worker: CurrentWorker) -> Self {
        partition.core.join(worker);
        let before = CURRENT.replace(Here { partition, worker: Some(worker) });
        let ceilings = partition.runtime.host.ceilings.filter(|_| !partition.core.port().is_virtual());
        Self {
            _membership: ceilings.map(|ceilings| Membership::join(ceilings, &worker)),
            before,
            unwound_before: fault::replace_unwound_section(None),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some((partition, _)) = get() {
            word::forget_sequence(partition.core.word_cell());
        }
        CURRENT.set(self.before);
        fault::replace_unwound_section(self.unwound_before);
    }
}

/// The calling thread's membership in the ceiling group of the global executor, until dropped.
#[derive(Debug)]
struct Membership {
    member: *mut pcp::Member<'static>,
    /// The membership in the app that runs this one.
    before: Option<&'static pcp::Member<'static>>,
}

impl Membership {
    /// Makes the calling thread a member with the level of `worker` as its priority.
    fn join(ceilings: &'static PcpGroup, worker: &Worker) -> Self {
        let member = ceilings.join(worker.base());
        let member = member.expect("each thread joins once, and the macro has counted them");
        let member = Box::into_raw(Box::new(member));
        // SAFETY: it lives until `drop`, which first removes the reference.
        let before = CEILING_MEMBER.replace(Some(unsafe { &*member }));
        Self { member, before }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        CEILING_MEMBER.set(self.before);
        // SAFETY: the pointer is from `Box::into_raw`. Only this thread had the reference (this
        // type, with its raw pointer, stays on it), and lends it to critical sections, all of which
        // have ended.
        drop(unsafe { Box::from_raw(self.member) });
    }
}

/// Returns the calling thread's membership in the ceiling group of its app, if that runs on the
/// global executor.
#[inline]
pub(crate) fn ceiling_member() -> Option<&'static pcp::Member<'static>> {
    CEILING_MEMBER.get()
}

/// Returns the partition of the calling thread and its worker, if it is a thread of an app.
#[inline]
pub(crate) fn get() -> Option<(&'static PartitionState, CurrentWorker)> {
    let Here { partition, worker } = CURRENT.get();
    // SAFETY: null, or from a `'static` reference.
    Some((unsafe { partition.as_ref() }?, worker?))
}

/// Returns the worker of the calling thread, if it is a thread of `partition`.
#[inline]
pub(crate) fn worker_of(partition: &'static PartitionState) -> Option<CurrentWorker> {
    let here = CURRENT.get();
    // SAFETY: with a partition there is a worker.
    ptr::eq(here.partition, partition).then(|| unsafe { here.worker.unwrap_unchecked() })
}

/// Returns whether the calling thread is a thread of `partition`.
#[inline(always)]
pub(crate) fn is_in(partition: &'static PartitionState) -> bool {
    ptr::eq(CURRENT.get().partition, partition)
}

/// Returns the worker of the calling thread. After [`is_in`], this costs one comparison less than
/// [`worker_of`], whose result is tested once more.
///
/// # Safety
/// The calling thread is a thread of a partition.
#[inline(always)]
pub(crate) unsafe fn worker() -> CurrentWorker {
    // SAFETY: with a partition there is a worker.
    unsafe { CURRENT.get().worker.unwrap_unchecked() }
}

/// The right to release jobs in an app that is not stopping, until dropped.
pub(crate) enum Entry<'a> {
    /// A thread of the app; the run waits for it anyway.
    Member,
    /// A foreign thread; the run waits until it drops this.
    Foreign { _spawn: ForeignSpawn<'a> },
}

/// Lets the calling thread release jobs of `runtime`; `None` if it is not running, or stopping.
#[inline]
pub(crate) fn enter(runtime: &'static Runtime) -> Option<Entry<'static>> {
    let entry = match is_of(runtime) {
        true => Entry::Member,
        false => Entry::Foreign { _spawn: runtime.begin_foreign_spawn()? },
    };
    (!runtime.is_stopping()).then_some(entry)
}

/// Lets the calling thread arm and cancel timed jobs of `partition`; `None` if the app is not
/// running.
#[inline(always)]
pub(crate) fn visit(partition: &'static PartitionState) -> Option<Entry<'static>> {
    if is_in(partition) {
        // The run waits for this thread, unless this is the thread that ends the run. Then it has
        // closed foreign spawns itself.
        partition.runtime.accepts_foreign_spawns().then_some(Entry::Member)
    } else {
        Some(Entry::Foreign { _spawn: partition.runtime.begin_foreign_spawn()? })
    }
}

/// Returns whether the calling thread belongs to `runtime`.
#[inline]
pub(crate) fn is_of(runtime: &'static Runtime) -> bool {
    get().is_some_and(|(partition, _)| ptr::eq(partition.runtime, runtime))
}
