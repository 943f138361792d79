//! The record of a thread.

use core::cell::Cell;
use core::ptr;

use crate::rank::Rank;
use crate::stack::Use;
use crate::timer::Timer;
use crate::wait_queue::WaitQueue;
use crate::{JoinError, Port, RawMutex};

/// A link to another thread in a list.
pub(crate) type Link<P> = Cell<Option<&'static ThreadSlot<P>>>;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Running, or ready to run.
    Ready,
    /// Waiting for a time.
    Sleeping,
    /// Waiting for a mutex.
    Locking,
    /// Waiting for a unit of a semaphore.
    Waiting,
    /// Waiting for the end of another thread.
    Joining,
    /// Ended.
    Ended,
}

/// The reason a waiting thread continues.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Its wait has succeeded.
    Granted,
    /// Its wait has timed out.
    TimedOut,
    /// The thread that held the mutex has ended.
    OwnerEnded,
}

/// The slot of one thread of a kernel. All its fields are accessed with interrupts masked only.
pub struct ThreadSlot<P: Port> {
    /// The neighbors in the ring of threads of one priority, which are ready or wait in the same
    /// queue. `None`, or the thread itself, if there is no other: see [`neighbor`].
    pub(crate) next: Link<P>,
    pub(crate) previous: Link<P>,
    /// The first of the next higher and lower priority that waits in the same queue, if this thread
    /// is a first itself. In a free slot, `lower` is the next free one.
    pub(crate) higher: Link<P>,
    pub(crate) lower: Link<P>,
    /// The saved context, while the thread does not run.
    pub(crate) context: Cell<*mut u8>,
    /// The lowest word of its stack.
    pub(crate) canary: Cell<*const usize>,
    /// The use state of its stack.
    pub(crate) stack: Cell<Option<&'static Cell<Use>>>,
    /// The priority, including inherited ones.
    pub(crate) rank: Cell<Rank>,
    /// The priority that it was spawned with.
    pub(crate) base: Cell<Rank>,
    pub(crate) state: Cell<State>,
    pub(crate) wake: Cell<Wake>,
    /// The rest of its slice since it was preempted, in nanoseconds; 0 if the next slice is new.
    pub(crate) slice_left: Cell<u64>,
    /// The number of threads that have ended in this slot.
    pub(crate) generation: Cell<u32>,
    /// The result of the last of them.
    pub(crate) result: Cell<Result<(), JoinError>>,
    /// The mutex it has locked last and not unlocked; the others are linked to that one.
    pub(crate) held: Cell<Option<&'static RawMutex<P>>>,
    pub(crate) waiting_for: Cell<Option<&'static RawMutex<P>>>,
    /// The queue that it waits in.
    pub(crate) queue: Cell<Option<&'static WaitQueue<P>>>,
    pub(crate) timer: Timer<P>,
    /// The threads that wait for its end.
    pub(crate) joiners: WaitQueue<P>,
}

// SAFETY: the crate accesses it with interrupts masked, on the one core or thread that the port
// lets in (see `Port`).
unsafe impl<P: Port> Sync for ThreadSlot<P> {}

impl<P: Port> ThreadSlot<P> {
    /// Creates a slot for a thread.
    pub const fn new() -> Self {
        Self {
            next: Cell::new(None),
            previous: Cell::new(None),
            higher: Cell::new(None),
            lower: Cell::new(None),
            context: Cell::new(ptr::null_mut()),
            canary: Cell::new(ptr::null()),
            stack: Cell::new(None),
            rank: Cell::new(Rank::LOWEST),
            base: Cell::new(Rank::LOWEST),
            state: Cell::new(State::Ended),
            wake: Cell::new(Wake::Granted),
            slice_left: Cell::new(0),
            generation: Cell::new(0),
            result: Cell::new(Ok(())),
            held: Cell::new(None),
            waiting_for: Cell::new(None),
            queue: Cell::new(None),
            timer: Timer::new(),
            joiners: WaitQueue::new(),
        }
    }

    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl<P: Port> Default for ThreadSlot<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the neighbor of a thread: itself, if it is alone in its ring or in none. A thread that
/// becomes alone in a ring needs no writes for that.
#[inline]
pub(crate) fn neighbor<P: Port>(link: &Link<P>, of: &'static ThreadSlot<P>) -> &'static ThreadSlot<P> {
    link.get().unwrap_or(of)
}

/// Appends a thread to a ring, before its first.
#[inline]
pub(crate) fn append<P: Port>(first: &'static ThreadSlot<P>, thread: &'static ThreadSlot<P>) {
    let last = neighbor(&first.previous, first);
    thread.next.set(Some(first));
    thread.previous.set(Some(last));
    last.next.set(Some(thread));
    first.previous.set(Some(thread));
}

/// Removes a thread from its ring; returns the one after it, if it was not alone.
#[inline]
pub(crate) fn unlink<P: Port>(thread: &'static ThreadSlot<P>) -> Option<&'static ThreadSlot<P>> {
    let next = neighbor(&thread.next, thread);
    if next.is(thread) {
        return None;
    }
    let previous = neighbor(&thread.previous, thread);
    previous.next.set(Some(next));
    next.previous.set(Some(previous));
    thread.next.set(None);
    thread.previous.set(None);
    Some(next)
}
