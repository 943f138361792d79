//! Waiting tasks, in order of arrival, in a fixed number of slots.
//!
//! A list linked through the futures would need a lock to unlink a dropped one, and a task would
//! spin for a preempted holder of the lock. Here the wakers are stored in slots of the object
//! itself. A future owns a slot from the moment it begins to wait until it has been notified or
//! dropped; the notifier briefly owns the waker in it. All contention is on the slot's state:
//!
//! ```text
//!            owner: begins                 notifier: chooses           notifier: has the waker
//!   IDLE ───────────────────────▶ WAITING ───────────────────▶ WAKING ────────────────────────▶ NOTIFIED
//!    ▲ ▲                           │ ▲ │                         │                                │
//!    │ └───── owner: withdraws ────┘ │ └─ owner: next poll ─▶ UPDATING ─ notifier: chooses ──────▶│
//!    │                               └─────── owner ────────────┘│                                │
//!    │                                           owner: takes it │                                │
//!    ├──────────── notifier: has the waker ─────────── LEFT ◀────┘                                │
//!    └───────────────────────────── owner: takes it ──────────────────────────────────────────────┘
//! ```
//!
//! No arrow waits for another thread. If the owner finds `WAKING`, it takes the notification and
//! leaves the slot to the notifier, which frees it. If a notifier finds `UPDATING`, the owner is
//! being polled and needs no wake.
//!
//! # Invariants
//!
//! *W1* The future owner sets a slot's bit in `used`, and the thread that makes the state `IDLE` at
//! the end clears it. *W2* The waker is accessed by the owner in `IDLE` (its bit set), `UPDATING`
//! and `NOTIFIED`, by the notifier in `WAKING` and `LEFT`, and not at all in `WAITING`. Each
//! transfer is a release and an acquire of the state. *W3* Each notification is taken exactly once:
//! by the owner's [`Waiters::poll`], or by its [`Waiters::withdraw`], whose caller passes it on.
//! *W4* The state includes a generation, so that a notification chosen for one owner cannot reach
//! the next.
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel, except what the wakers
//! do. Beginning, polling and withdrawing repeat a step at most as often as the state changes
//! concurrently. Notifying is lock-free: it scans `W` slots, and again only if another thread took
//! the one it chose.

use core::task::Waker;

use crate::atomic::{AtomicU32, Ordering, UnsafeCell, const_array, const_new, fence};

/// The lower bits of a slot's state; its generation is above them.
const STATE: u32 = 7;
const IDLE: u32 = 0;
const UPDATING: u32 = 1;
const WAITING: u32 = 2;
const WAKING: u32 = 3;
const NOTIFIED: u32 = 4;
const LEFT: u32 = 5;
const GENERATION: u32 = 8;

/// Slots for `W` waiting tasks.
pub(super) struct Waiters<const W: usize> {
    /// The slots in use, as bits.
    used: AtomicU32,
    /// Orders the waiting tasks.
    arrivals: AtomicU32,
    slots: [Slot; W],
}

struct Slot {
    state: AtomicU32,
    arrival: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

const fn is_possible(slots: usize) -> bool {
    slots >= 1 && slots <= 32
}

/// The slot of one waiting future. It must be returned to [`Waiters::poll`] or
/// [`Waiters::withdraw`].
#[derive(Debug)]
pub(super) struct Waiting(usize);

// SAFETY: one thread at a time accesses the wakers (W2), which are themselves `Send` and `Sync`.
unsafe impl<const W: usize> Sync for Waiters<W> {}

impl<const W: usize> Waiters<W> {
    const CHECK: () = assert!(is_possible(W), "there are 1 to 32 slots for waiting tasks");

    const_new! {
        pub(super) fn new() -> Self {
            let () = Self::CHECK;
            let slots = const_array![Slot::new(); W];
            Self { used: AtomicU32::new(0), arrivals: AtomicU32::new(0), slots }
        }
    }

    /// Begins to wait. The caller then has to check its condition once more, see
    /// [`Self::wake_all`].
    ///
    /// # Panics
    /// If every slot is taken.
    pub(super) fn begin(&self, waker: &Waker) -> Waiting {
        // Cloned before the slot is taken: cloning is foreign code, and may panic.
        let waker = waker.clone();
        let Some(index) = self.claim() else {
            panic!("all {W} slots for waiting tasks are in use: raise `W` of the type")
        };
        let slot = &self.slots[index];
        slot.waker.with_mut(|cell| {
            // SAFETY: the slot is idle and its bit was just set: by W2 only this thread accesses
            // the waker.
            unsafe { *cell = Some(waker) };
        });
        slot.arrival.store(self.arrivals.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let generation = (slot.state.load(Ordering::Relaxed) & !STATE).wrapping_add(GENERATION);
        // Release: a notifier that sees the state sees the waker and the arrival.
        slot.state.store(generation | WAITING, Ordering::Release);
        // Before the caller's second check. Pairs with the fences in `Permits::hand_on` and
        // `wake_all`: either the caller sees their change, or they see the slot.
        fence(Ordering::SeqCst);
        Waiting(index)
    }

    /// Returns `true` if the wait is over, and then frees the slot; otherwise registers `waker`.
    pub(super) fn poll(&self, waiting: &mut Option<Waiting>, waker: &Waker) -> bool {
        let Some(&mut Waiting(index)) = waiting.as_mut() else { return false };
        let slot = &self.slots[index];
        loop {
            // Acquire: pairs with the notifier's release, so that its actions are seen.
            let state = slot.state.load(Ordering::Acquire);
            let generation = state & !STATE;
            match state & STATE {
                // In `UPDATING` the clone of an earlier poll panicked, and the previous waker is
                // still stored.
                WAITING | UPDATING => {
                    if state & STATE == WAITING && !slot.change(state, generation | UPDATING) {
                        continue;
                    }
                    slot.waker.with_mut(|cell| {
                        // SAFETY: by W2, in `UPDATING` the owner accesses the waker.
                        let cell = unsafe { &mut *cell };
                        if !cell.as_ref().is_some_and(|old| old.will_wake(waker)) {
                            // If this panics, the future's drop finds `UPDATING` and withdraws.
                            *cell = Some(waker.clone());
                        }
                    });
                    if slot.change(generation | UPDATING, generation | WAITING) {
                        return false;
                    }
                }
                WAKING if slot.change(state, generation | LEFT) => {
                    *waiting = None;
                    return true;
                }
                NOTIFIED => {
                    // Dropped first, since that is foreign code: if it panics, the future's drop
                    // withdraws, and passes the notification on.
                    // SAFETY: by W2, in `NOTIFIED` the owner accesses the waker.
                    drop(slot.waker.with_mut(|cell| unsafe { (*cell).take() }));
                    *waiting = None;
                    drop(self.free(index));
                    return true;
                }
                _ => {}
            }
        }
    }

    /// Stops waiting. Returns `true` if a notification had come: the caller passes it on if it was
    /// meant for one task, and then drops the waker, which is foreign code.
    #[must_use]
    pub(super) fn withdraw(&self, waiting: &mut Option<Waiting>) -> (bool, Option<Waker>) {
        let Some(Waiting(index)) = waiting.take() else { return (false, None) };
        let slot = &self.slots[index];
        loop {
            let state = slot.state.load(Ordering::Acquire);
            let generation = state & !STATE;
            match state & STATE {
                WAITING | UPDATING if slot.change(state, generation | IDLE) => {
                    return (false, self.free(index));
                }
                WAKING if slot.change(state, generation | LEFT) => return (true, None),
                NOTIFIED => return (true, self.free(index)),
                _ => {}
            }
        }
    }

    /// Notifies the task that has waited longest; returns `false` if none waits.
    ///
    /// The notified owner then has what the caller hands over. No fence: see `Permits::hand_on`.
    pub(super) fn wake_one(&self) -> bool {
        while let Some((index, state)) = self.first() {
            if self.notify(index, state) {
                return true;
            }
        }
        false
    }

    /// Notifies every task that waits now.
    ///
    /// The change they are notified of must have been stored before.
    pub(super) fn wake_all(&self) {
        // Between that store and the scan of the slots; pairs with the fence in `begin`.
        fence(Ordering::SeqCst);
        Each { waiters: self, slots: self.used.load(Ordering::Relaxed) }.wake();
    }

    /// Returns `true` if no task waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting().next().is_none()
    }

    /// Notifies the owner of a slot, if the state is still the one that was seen.
    fn notify(&self, index: usize, state: u32) -> bool {
        let slot = &self.slots[index];
        let generation = state & !STATE;
        if state & STATE == UPDATING {
            return slot.change(state, generation | NOTIFIED);
        }
        // Acquire: the waker. Release: the owner sees what it is notified of, even if it finds
        // `WAKING`.
        let waking = generation | WAKING;
        if !slot.change(state, waking) {
            return false;
        }
        // SAFETY: by W2, in `WAKING` and `LEFT` this notifier accesses the waker.
        let waker = slot.waker.with_mut(|cell| unsafe { (*cell).take() });
        if !slot.change(waking, generation | NOTIFIED) {
            // The owner has left with its notification; it runs, or needs no wake.
            drop(self.free(index));
            return true;
        }
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Frees a slot, and returns its waker for the caller to drop. The caller owns the slot: in
    /// this state no other thread accesses it (W2).
    #[must_use]
    fn free(&self, index: usize) -> Option<Waker> {
        let slot = &self.slots[index];
        // SAFETY: by W2 only the caller accesses the waker. One is left if no wake was needed.
        let waker = slot.waker.with_mut(|cell| unsafe { (*cell).take() });
        let generation = slot.state.load(Ordering::Relaxed) & !STATE;
        slot.state.store(generation | IDLE, Ordering::Relaxed);
        // Release: the next owner finds the slot idle and without a waker.
        self.used.fetch_and(!(1 << index), Ordering::Release);
        waker
    }

    /// Takes a free slot.
    fn claim(&self) -> Option<usize> {
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let index = used.trailing_ones() as usize;
            if index >= W {
                return None;
            }
            let claimed = used | 1 << index;
            // Acquire: the last owner has finished with the slot.
            match self.used.compare_exchange_weak(used, claimed, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(index),
                Err(now) => used = now,
            }
        }
    }

    /// Returns the slots whose tasks wait to be notified, with their states.
    #[inline]
    fn waiting(&self) -> impl Iterator<Item = (usize, u32)> {
        let mut used = self.used.load(Ordering::Relaxed);
        core::iter::from_fn(move || self.next_waiting(&mut used))
    }

    /// Removes the first of `slots` whose task waits to be notified, and those before it; returns
    /// it with its state.
    #[inline]
    fn next_waiting(&self, slots: &mut u32) -> Option<(usize, u32)> {
        while *slots != 0 {
            let index = slots.trailing_zeros() as usize;
            *slots &= *slots - 1;
            let state = self.slots[index].state.load(Ordering::Acquire);
            if matches!(state & STATE, WAITING | UPDATING) {
                return Some((index, state));
            }
        }
        None
    }

    /// Returns the slot whose task has waited longest.
    fn first(&self) -> Option<(usize, u32)> {
        // Arrivals are compared by their distance from the latest, so the counter may wrap. An
        // arrival newer than `latest` is the youngest.
        let latest = self.arrivals.load(Ordering::Relaxed);
        self.waiting().max_by_key(|&(index, _)| {
            let age = latest.wrapping_sub(self.slots[index].arrival.load(Ordering::Relaxed));
            if age > u32::MAX / 2 { 0 } else { age }
        })
    }
}

/// The slots whose tasks are to be notified. Also notifies the remaining ones when dropped: while
/// the panic of a waker unwinds.
struct Each<'a, const W: usize> {
    waiters: &'a Waiters<W>,
    slots: u32,
}

impl<const W: usize> Each<'_, W> {
    #[inline]
    fn wake(&mut self) {
        while let Some((index, mut state)) = self.waiters.next_waiting(&mut self.slots) {
            // Repeated only while the owner changes the state, and no longer than the same owner
            // waits.
            let generation = state & !STATE;
            while !self.waiters.notify(index, state) {
                // Relaxed: `notify` acquires.
                state = self.waiters.slots[index].state.load(Ordering::Relaxed);
                if state & !STATE != generation || !matches!(state & STATE, WAITING | UPDATING) {
                    break;
                }
            }
        }
    }
}

impl<const W: usize> Drop for Each<'_, W> {
    fn drop(&mut self) {
        self.wake();
    }
}

impl Slot {
    crate::atomic::const_new! {
        fn new() -> Self {
            Self { state: AtomicU32::new(IDLE), arrival: AtomicU32::new(0), waker: UnsafeCell::new(None) }
        }
    }

    /// Acquire: the actions of the last thread that changed the state. Release: those of the
    /// caller.
    fn change(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// A wait that ends when a condition holds, for objects that notify every waiter.
pub(super) struct Until<'a, const W: usize> {
    waiters: &'a Waiters<W>,
    waiting: Option<Waiting>,
}

impl<'a, const W: usize> Until<'a, W> {
    pub(super) fn new(waiters: &'a Waiters<W>) -> Self {
        Self { waiters, waiting: None }
    }

    /// Completes with the result of `attempt` as soon as it is `Some`. Then `attempt` is dropped,
    /// and the wait has ended.
    pub(super) fn poll<R>(
        &mut self,
        waker: &Waker,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> core::task::Poll<R> {
        use core::task::Poll;

        // A notification only means that the condition should be checked.
        let mut waits = self.waiting.is_some() && !self.waiters.poll(&mut self.waiting, waker);
        loop {
            if let Some(found) = attempt() {
                return Poll::Ready(found);
            }
            if waits {
                return Poll::Pending;
            }
            self.waiting = Some(self.waiters.begin(waker));
            waits = true;
        }
    }
}

impl<const W: usize> Drop for Until<'_, W> {
    fn drop(&mut self) {
        drop(self.waiters.withdraw(&mut self.waiting));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn accepts_1_to_32_places() {
        assert_eq!([0, 1, 32, 33].map(is_possible), [false, true, true, false]);
    }
}
