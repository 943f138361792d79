//! The reactor of an app's async tasks: an epoll set, and a slot for each wait.
//!
//! A wait is one entry of the set, which fires once and then stays disabled until it is removed.
//! Its data are the slot and the generation of the wait, so a late event detects that its wait is
//! over. The protocol between the waiting task and the thread that fires is that of [`WaitSlot`].

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::task::Waker;

use punctual_core::{Standing, Wait, WaitSlot, Worker};
use rustix::event::{Timespec, epoll};
use rustix::io::{Errno, Result};

use super::notify;
use crate::state::partition::PartitionState;
use crate::state::source::NONE;

/// The number of bits of an event's data that hold the slot. The rest is the generation, without
/// its upper bits.
const SLOT_BITS: u32 = 16;
/// Data of the eventfd that interrupts the thread, which is not a slot.
const CONTROL: u64 = u64::MAX;

/// The descriptors that the async tasks of an app wait for, and the thread that waits.
#[derive(Debug)]
pub struct Reactor {
    partition: &'static PartitionState,
    worker: &'static Worker,
    /// One more than the maximum number of waits: the thread that fires may still be using one that
    /// has ended.
    slots: &'static [WaitSlot<Waker>],
    waits: AtomicU32,
    epoll: AtomicI32,
    control: AtomicI32,
}

/// A wait for a descriptor: its slot and generation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    slot: usize,
    wait: Wait,
}

impl Reactor {
    /// Creates a reactor for one wait less than there are `slots`; `worker` is its thread.
    pub const fn new(
        partition: &'static PartitionState,
        worker: &'static Worker,
        slots: &'static [WaitSlot<Waker>],
    ) -> Self {
        assert!(slots.len() < 1 << SLOT_BITS, "the `waits` of all async tasks add up to 65534 at most");
        Self {
            partition,
            worker,
            slots,
            waits: AtomicU32::new(0),
            epoll: AtomicI32::new(NONE),
            control: AtomicI32::new(NONE),
        }
    }

    /// Returns the partition of the thread.
    pub(crate) fn partition(&self) -> &'static PartitionState {
        self.partition
    }

    pub(crate) fn worker(&self) -> &'static Worker {
        self.worker
    }

    // ---- for futures ----------------------------------------------------------------------------

    /// Begins to wait; `None` if the app is ending: then nothing needs to be woken anymore.
    ///
    /// # Errors
    /// Returns the error of `epoll_ctl`.
    ///
    /// # Panics
    /// Panics if every slot is taken.
    pub(crate) fn begin(
        &self,
        fd: BorrowedFd<'_>,
        interest: epoll::EventFlags,
        waker: &Waker,
    ) -> Result<Option<Ticket>> {
        let Some(_spawn) = self.partition.runtime.begin_foreign_spawn() else { return Ok(None) };
        if self.partition.core.is_stopping() {
            return Ok(None);
        }
        let ticket = self.claim(waker.clone());
        let data = epoll::EventData::new_u64(ticket.data());
        let added = epoll::add(self.epoll(), fd, data, interest | epoll::EventFlags::ONESHOT);
        if added.is_err() {
            self.free(ticket);
        }
        added.map(|()| Some(ticket))
    }

    /// Takes a slot. There always is a free one: each counted wait has at most one, and the thread
    /// that fires one more. So a scan finds none only if others took and freed slots in between;
    /// then it is repeated.
    fn claim(&self, mut waker: Waker) -> Ticket {
        let limit = self.slots.len() as u32 - 1;
        let more = |waits| (waits < limit).then_some(waits + 1);
        let counted = self.waits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        assert!(
            counted.is_ok(),
            "the async tasks of the app wait for more than {limit} descriptors at once; raise `waits` of one of them"
        );
        loop {
            for (slot, place) in self.slots.iter().enumerate() {
                match place.begin(waker) {
                    Ok(wait) => return Ticket { slot, wait },
                    Err(back) => waker = back,
                }
            }
        }
    }

    /// Returns the state of a wait.
    #[inline]
    pub(crate) fn standing(&self, ticket: Ticket) -> Standing {
        self.slots[ticket.slot].standing(ticket.wait)
    }

    /// Replaces the waker.
    ///
    /// # Safety
    /// The ticket belongs to this reactor, and only to the caller.
    pub(crate) unsafe fn renew(&self, ticket: Ticket, waker: &Waker) -> Standing {
        match self.partition.runtime.begin_foreign_spawn() {
            // SAFETY: the ticket belongs to this reactor and only to the caller, by this function's
            // contract.
            Some(_spawn) => unsafe { self.slots[ticket.slot].renew(ticket.wait, waker.clone()) },
            None => self.standing(ticket),
        }
    }

    /// Ends a wait for `fd`, which is still open.
    ///
    /// # Safety
    /// The ticket belongs to this reactor, and only to the caller.
    pub(crate) unsafe fn end(&self, ticket: Ticket, fd: BorrowedFd<'_>) {
        // The run may have ended, and its descriptor numbers may refer to other files by now.
        let Some(_spawn) = self.partition.runtime.begin_foreign_spawn() else { return };
        if self.standing(ticket) != Standing::Over {
            // The entry has already been removed if its file was closed in between.
            let _ = epoll::delete(self.epoll(), fd);
            self.free(ticket);
        }
    }

    fn free(&self, ticket: Ticket) {
        // SAFETY: the callers own the wait: one has just begun it, the other guarantees it.
        if unsafe { self.slots[ticket.slot].end(ticket.wait) } {
            self.waits.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns the epoll set. For threads of the app, and for visitors that have a wait or begin
    /// one in a poll.
    fn epoll(&self) -> BorrowedFd<'_> {
        // SAFETY: a run creates it before its threads, and other threads have a wait only after a
        // poll. The run closes it after its threads have ended and every visitor has left.
        unsafe { BorrowedFd::borrow_raw(self.epoll.load(Ordering::Acquire)) }
    }

    // ---- for the thread that fires --------------------------------------------------------------

    /// Sleeps until something is ready, or only checks, and wakes all that wait for it. Returns
    /// whether it woke any.
    ///
    /// `slept` is called in between, and `wake` for each. For one thread of the app at a time.
    pub(crate) fn react(&self, sleep: bool, slept: impl FnOnce(), wake: impl Fn(Waker)) -> Result<bool> {
        if !sleep && self.waits.load(Ordering::Relaxed) == 0 {
            return Ok(false);
        }
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; 16];
        // In virtual time a woken task may itself check for more, of higher levels.
        let (most, limit) = match sleep {
            true => (room.len(), None),
            false => (1, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })),
        };
        let ready = epoll::wait(self.epoll(), &mut room[..most], limit);
        slept();
        let events = match ready {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error),
        };
        let mut any = false;
        for event in events {
            any |= self.fire(event.data.u64(), &wake);
        }
        Ok(any)
    }

    fn fire(&self, data: u64, wake: impl Fn(Waker)) -> bool {
        if data == CONTROL {
            return false;
        }
        let ticket = Ticket::from_data(data);
        let waker = self.slots.get(ticket.slot).and_then(|slot| slot.fire(ticket.wait));
        // The slot is free for the next wait, whatever the waker does.
        let woken = waker.map(wake);
        woken.is_some()
    }

    /// Makes the thread check whether the app is stopping.
    pub(crate) fn interrupt(&self) {
        notify(self.control.load(Ordering::Acquire));
    }

    // ---- for the run ----------------------------------------------------------------------------

    /// Publishes the descriptors that a run has created, which stay open until
    /// [`close`](Self::close).
    pub(crate) fn open(&self, epoll: BorrowedFd<'_>, control: Option<BorrowedFd<'_>>) -> Result<()> {
        if let Some(control) = control {
            epoll::add(epoll, control, epoll::EventData::new_u64(CONTROL), epoll::EventFlags::IN)?;
            self.control.store(control.as_raw_fd(), Ordering::Release);
        }
        self.epoll.store(epoll.as_raw_fd(), Ordering::Release);
        Ok(())
    }

    /// Clears the run's descriptors and all waits; `discard` drops their wakers.
    ///
    /// # Safety
    /// Every other thread of the app has ended, and there is no visitor.
    pub(crate) unsafe fn close(&self, discard: impl Fn(Option<Waker>)) {
        self.epoll.store(NONE, Ordering::Relaxed);
        self.control.store(NONE, Ordering::Relaxed);
        self.waits.store(0, Ordering::Relaxed);
        for slot in self.slots {
            // SAFETY: the app's other threads have ended, and no foreign thread is inside, by this
            // function's contract.
            discard(unsafe { slot.clear() });
        }
    }
}

impl Ticket {
    fn data(self) -> u64 {
        self.wait.number() << SLOT_BITS | self.slot as u64
    }

    fn from_data(data: u64) -> Self {
        let slot = (data & ((1 << SLOT_BITS) - 1)) as usize;
        Self { slot, wait: Wait::from_number(data >> SLOT_BITS) }
    }
}
