//! Which app, and which of its threads, the calling code runs on.

use std::cell::Cell;

use punctual_core::{CurrentWorker, Worker};
use punctual_sync::{PcpGroup, pcp};

use crate::app::partition::Part;
use crate::app::runtime::Runtime;
use crate::app::spawn_gate::Visit;

thread_local! {
    static CURRENT: Cell<Option<(&'static Part, CurrentWorker)>> = const { Cell::new(None) };
    static CEILING_MEMBER: Cell<Option<&'static pcp::Member<'static>>> = const { Cell::new(None) };
}

/// Makes the calling thread a thread of `part` until dropped.
#[derive(Debug)]
pub(crate) struct Member {
    _membership: Option<Membership>,
    /// What the thread was before: an app may run another.
    before: Option<(&'static Part, CurrentWorker)>,
}

impl Member {
    pub(crate) fn join(part: &'static Part, worker: CurrentWorker) -> Self {
        let before = CURRENT.replace(Some((part, worker)));
        let ceilings = part.runtime.ceilings.filter(|_| !part.partition.port().is_virtual());
        Self { _membership: ceilings.map(|ceilings| Membership::join(ceilings, &worker)), before }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// The calling thread's membership in the ceiling group of the global executor, until dropped.
#[derive(Debug)]
struct Membership {
    member: *mut pcp::Member<'static>,
    /// That of an app which runs this one.
    before: Option<&'static pcp::Member<'static>>,
}

impl Membership {
    /// Makes the calling thread a member with the level of `worker` for its priority.
    fn join(ceilings: &'static PcpGroup, worker: &Worker) -> Self {
        let member = ceilings.join(worker.base());
        let member = member.expect("each thread joins once, and the macro has counted them");
        let member = Box::into_raw(Box::new(member));
        // SAFETY: it lives until `drop`, which takes the reference away first.
        let before = CEILING_MEMBER.replace(Some(unsafe { &*member }));
        Self { member, before }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        CEILING_MEMBER.set(self.before);
        // SAFETY: the pointer is of `Box::into_raw`. Only this thread had the reference (this type, with its raw
        // pointer, stays on it), and lends it to critical sections, all of which have ended.
        drop(unsafe { Box::from_raw(self.member) });
    }
}

/// The calling thread's membership in the ceiling group of its app, if that runs on the global executor.
#[inline]
pub(crate) fn ceiling_member() -> Option<&'static pcp::Member<'static>> {
    CEILING_MEMBER.get()
}

/// Of which part, and which of its workers, the calling thread is, if it is one of an app.
#[inline]
pub(crate) fn get() -> Option<(&'static Part, CurrentWorker)> {
    CURRENT.get()
}

/// The worker that the calling thread is in `part`, if it is one of its threads.
#[inline]
pub(crate) fn worker_of(part: &'static Part) -> Option<CurrentWorker> {
    CURRENT.get().filter(|(p, _)| std::ptr::eq(*p, part)).map(|(_, worker)| worker)
}

/// The right to release something in an app that is not stopping, while this lives.
pub(crate) enum Entry<'a> {
    /// The run waits for its own threads.
    Member,
    /// Of other threads it waits for those that are in the middle of this.
    Visitor { _visit: Visit<'a> },
}

/// Lets the calling thread release something in `runtime`; `None` if that is not running, or stopping.
#[inline]
pub(crate) fn enter(runtime: &'static Runtime) -> Option<Entry<'static>> {
    let entry = match is_of(runtime) {
        true => Entry::Member,
        false => Entry::Visitor { _visit: runtime.enter_from_outside()? },
    };
    (!runtime.is_stopping()).then_some(entry)
}

/// Whether the calling thread is one of `runtime`'s.
#[inline]
pub(crate) fn is_of(runtime: &'static Runtime) -> bool {
    CURRENT.get().is_some_and(|(part, _)| std::ptr::eq(part.runtime, runtime))
}
