//! The record of a thread.

use core::cell::Cell;
use core::ptr;

use crate::rank::Rank;
use crate::stack::Use;
use crate::timer::Timer;
use crate::wait_queue::WaitQueue;
use crate::{JoinError, Port, RawMutex};

/// Another thread in a list.
pub(crate) type Link<P> = Cell<Option<&'static ThreadSlot<P>>>;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, or would if no other went before.
    Ready,
    /// It waits for a time alone.
    Sleeping,
    /// It waits for a mutex.
    Locking,
    /// It waits for a unit of a semaphore.
    Waiting,
    /// It waits for the end of another thread.
    Joining,
    /// It has ended.
    Ended,
}

/// Why a thread goes on that has waited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// It has got what it waited for.
    Granted,
    /// Its time is over.
    TimedOut,
    /// The thread that held the mutex has ended.
    OwnerEnded,
}

/// Room for one thread of a kernel. All of it is accessed with interrupts masked only.
pub struct ThreadSlot<P: Port> {
    /// The neighbours in the ring of threads of one priority, which are ready or wait at the same place. None, or the thread itself,
    /// if there is no other: see [`neighbour`].
    pub(crate) next: Link<P>,
    pub(crate) previous: Link<P>,
    /// The first of the next higher and lower priority that waits at the same place, if this is a first itself. In a free slot, `lower`
    /// is the next free one.
    pub(crate) higher: Link<P>,
    pub(crate) lower: Link<P>,
    /// Where its registers are, while it does not run.
    pub(crate) context: Cell<*mut u8>,
    /// The lowest word of its stack.
    pub(crate) canary: Cell<*const usize>,
    /// What its stack says of being in use.
    pub(crate) stack: Cell<Option<&'static Cell<Use>>>,
    /// With what it has inherited.
    pub(crate) rank: Cell<Rank>,
    /// What it was spawned with.
    pub(crate) base: Cell<Rank>,
    pub(crate) state: Cell<State>,
    pub(crate) wake: Cell<Wake>,
    /// What is left of its slice since it was preempted, in nanoseconds; 0 if the next is a new one.
    pub(crate) slice_left: Cell<u64>,
    /// How many threads have ended in this slot.
    pub(crate) generation: Cell<u32>,
    /// How the last of them ended.
    pub(crate) result: Cell<Result<(), JoinError>>,
    /// The mutex it has locked last and not unlocked; the others are linked to that.
    pub(crate) held: Cell<Option<&'static RawMutex<P>>>,
    pub(crate) waiting_for: Cell<Option<&'static RawMutex<P>>>,
    /// Where it waits.
    pub(crate) queue: Cell<Option<&'static WaitQueue<P>>>,
    pub(crate) timer: Timer<P>,
    /// Who waits for its end.
    pub(crate) joiners: WaitQueue<P>,
}

// SAFETY: the crate accesses it with interrupts masked, on the one core or thread that the port lets in (see `Port`).
unsafe impl<P: Port> Sync for ThreadSlot<P> {}

impl<P: Port> ThreadSlot<P> {
    /// Room for a thread.
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

/// The neighbour of a thread: itself, if it is alone in its ring or in none. A thread that goes into a ring of its own has
/// nothing to be written for that.
#[inline]
pub(crate) fn neighbour<P: Port>(link: &Link<P>, of: &'static ThreadSlot<P>) -> &'static ThreadSlot<P> {
    link.get().unwrap_or(of)
}

/// Puts a thread into a ring, before its first, which is at the end.
#[inline]
pub(crate) fn append<P: Port>(first: &'static ThreadSlot<P>, thread: &'static ThreadSlot<P>) {
    let last = neighbour(&first.previous, first);
    thread.next.set(Some(first));
    thread.previous.set(Some(last));
    last.next.set(Some(thread));
    first.previous.set(Some(thread));
}

/// Takes a thread out of its ring; returns the one after it, if it was not alone.
#[inline]
pub(crate) fn unlink<P: Port>(thread: &'static ThreadSlot<P>) -> Option<&'static ThreadSlot<P>> {
    let next = neighbour(&thread.next, thread);
    if next.is(thread) {
        return None;
    }
    let previous = neighbour(&thread.previous, thread);
    previous.next.set(Some(next));
    next.previous.set(Some(previous));
    thread.next.set(None);
    thread.previous.set(None);
    Some(next)
}
