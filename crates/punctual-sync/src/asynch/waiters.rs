//! Waiting tasks, in order of arrival, in a fixed number of places.
//!
//! A list linked through the futures would need a lock to unlink a dropped one, and a task would spin for a preempted
//! holder of the lock. Here the wakers lie in places of the object itself. A future owns a place from the moment it begins
//! to wait until it has been notified or dropped; the notifier owns the waker in it for a moment. All contention is on the
//! place's state:
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
//! No arrow waits for another thread. If the owner finds `WAKING`, it takes the notification and leaves the place to
//! the notifier, which frees it. If a notifier finds `UPDATING`, the owner is being polled and needs no waking.
//!
//! # Invariants
//!
//! *W1* A place's bit in `used` is set by its future owner, and cleared by whoever makes the state `IDLE` at the end.
//! *W2* The waker is touched by the owner in `IDLE` (its bit set), `UPDATING` and `NOTIFIED`, by the notifier in
//! `WAKING` and `LEFT`, by nobody in `WAITING`. Each change of hands is a release and an acquire of the state.
//! *W3* Each notification is taken exactly once: by the owner's [`Waiters::poll`], or by its [`Waiters::withdraw`],
//! which tells the caller to pass it on.
//! *W4* The state carries a generation, so that a choice made for one owner cannot fall to the next.
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel, apart from what the wakers do. Beginning,
//! polling and withdrawing repeat a step at most as often as the state changes under them. Notifying is lock-free: it
//! looks at `W` places, and again only if another thread took the one it chose.

use core::task::Waker;

use crate::atomic::{AtomicU32, Ordering, UnsafeCell, fence};

/// The lower bits of a place's state; above them, its generation.
const STATE: u32 = 7;
const IDLE: u32 = 0;
const UPDATING: u32 = 1;
const WAITING: u32 = 2;
const WAKING: u32 = 3;
const NOTIFIED: u32 = 4;
const LEFT: u32 = 5;
const GENERATION: u32 = 8;

/// Places for `W` waiting tasks.
pub(super) struct Waiters<const W: usize> {
    /// The places in use, as bits.
    used: AtomicU32,
    /// Orders the waiting tasks.
    arrivals: AtomicU32,
    places: [Place; W],
}

struct Place {
    state: AtomicU32,
    arrival: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

const fn is_possible(places: usize) -> bool {
    places >= 1 && places <= 32
}

/// The place of one waiting future. It must come back to [`Waiters::poll`] or [`Waiters::withdraw`].
#[derive(Debug)]
pub(super) struct Waiting(usize);

// SAFETY: the wakers are reached by one thread at a time (W2) and are themselves `Send` and `Sync`.
unsafe impl<const W: usize> Sync for Waiters<W> {}

impl<const W: usize> Waiters<W> {
    const CHECK: () = assert!(is_possible(W), "there are 1 to 32 places for waiting tasks");

    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        let () = Self::CHECK;
        Self { used: AtomicU32::new(0), arrivals: AtomicU32::new(0), places: [const { Place::new() }; W] }
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        let () = Self::CHECK;
        let places = core::array::from_fn(|_| Place::new());
        Self { used: AtomicU32::new(0), arrivals: AtomicU32::new(0), places }
    }

    /// Begins to wait. The caller then has to look once more whether it must, see [`Self::wake_all`].
    ///
    /// # Panics
    /// If every place is taken.
    pub(super) fn begin(&self, waker: &Waker) -> Waiting {
        // Cloned before the place is taken: it is foreign code, and may panic.
        let waker = waker.clone();
        let Some(index) = self.claim() else {
            panic!("more tasks wait than there are places ({W}): raise `W` of the type")
        };
        let place = &self.places[index];
        place.waker.with_mut(|cell| {
            // SAFETY: the place is idle and its bit was just set: by W2 this thread alone reaches the waker.
            unsafe { *cell = Some(waker) };
        });
        place.arrival.store(self.arrivals.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let generation = (place.state.load(Ordering::Relaxed) & !STATE).wrapping_add(GENERATION);
        // Release: a notifier that sees the state sees the waker and the arrival.
        place.state.store(generation | WAITING, Ordering::Release);
        // Between this and the caller's second look. Pairs with the fences in `Permits::hand_on` and `wake_all`: either
        // the caller sees what they tell about, or they see the place.
        fence(Ordering::SeqCst);
        Waiting(index)
    }

    /// Whether the wait is over; if not, `waker` is the one to be woken. If it is, the place is gone.
    pub(super) fn poll(&self, waiting: &mut Option<Waiting>, waker: &Waker) -> bool {
        let Some(&mut Waiting(index)) = waiting.as_mut() else { return false };
        let place = &self.places[index];
        loop {
            // Acquire: pairs with the notifier's release, so that its doings are seen.
            let state = place.state.load(Ordering::Acquire);
            let generation = state & !STATE;
            match state & STATE {
                // In `UPDATING` the clone of an earlier poll panicked, and the waker is still the one before.
                WAITING | UPDATING => {
                    if state & STATE == WAITING && !place.change(state, generation | UPDATING) {
                        continue;
                    }
                    place.waker.with_mut(|cell| {
                        // SAFETY: by W2, in `UPDATING` the waker is the owner's.
                        let cell = unsafe { &mut *cell };
                        if !cell.as_ref().is_some_and(|old| old.will_wake(waker)) {
                            // If this panics, the future's drop finds `UPDATING` and withdraws.
                            *cell = Some(waker.clone());
                        }
                    });
                    if place.change(generation | UPDATING, generation | WAITING) {
                        return false;
                    }
                }
                WAKING if place.change(state, generation | LEFT) => {
                    *waiting = None;
                    return true;
                }
                NOTIFIED => {
                    *waiting = None;
                    self.free(index);
                    return true;
                }
                _ => {}
            }
        }
    }

    /// Stops waiting. Returns `true` if a notification had come; the caller passes it on if it was meant for one task.
    pub(super) fn withdraw(&self, waiting: &mut Option<Waiting>) -> bool {
        let Some(Waiting(index)) = waiting.take() else { return false };
        let place = &self.places[index];
        loop {
            let state = place.state.load(Ordering::Acquire);
            let generation = state & !STATE;
            match state & STATE {
                WAITING | UPDATING if place.change(state, generation | IDLE) => {
                    self.free(index);
                    return false;
                }
                WAKING if place.change(state, generation | LEFT) => return true,
                NOTIFIED => {
                    self.free(index);
                    return true;
                }
                _ => {}
            }
        }
    }

    /// Notifies the task that waits longest; `false` if none waits.
    ///
    /// Its owner then has what the caller hands over. No fence: see `Permits::hand_on`.
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
        // Between that store and the look at the places; pairs with the fence in `begin`.
        fence(Ordering::SeqCst);
        for (index, mut state) in self.waiting() {
            // Repeated only while the owner changes the state, and no longer than the same owner waits.
            let generation = state & !STATE;
            while !self.notify(index, state) {
                // Relaxed: `notify` acquires.
                state = self.places[index].state.load(Ordering::Relaxed);
                if state & !STATE != generation || !matches!(state & STATE, WAITING | UPDATING) {
                    break;
                }
            }
        }
    }

    /// Whether nobody waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting().next().is_none()
    }

    /// Notifies the owner of a place, if the state still is the one that was seen.
    fn notify(&self, index: usize, state: u32) -> bool {
        let place = &self.places[index];
        let generation = state & !STATE;
        if state & STATE == UPDATING {
            return place.change(state, generation | NOTIFIED);
        }
        // Acquire: the waker. Release: the owner sees what it is notified of, also if it finds `WAKING`.
        let waking = generation | WAKING;
        if !place.change(state, waking) {
            return false;
        }
        // SAFETY: by W2, in `WAKING` and `LEFT` the waker is this notifier's.
        let waker = place.waker.with_mut(|cell| unsafe { (*cell).take() });
        if !place.change(waking, generation | NOTIFIED) {
            // The owner has left with its notification; it runs, or needs nothing any more.
            self.free(index);
            return true;
        }
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Makes a place free. The caller owns it: the state is one in which nobody else touches it (W2).
    fn free(&self, index: usize) {
        let place = &self.places[index];
        // SAFETY: by W2 the caller alone reaches the waker. There is one left if nobody had to be woken.
        let waker = place.waker.with_mut(|cell| unsafe { (*cell).take() });
        let generation = place.state.load(Ordering::Relaxed) & !STATE;
        place.state.store(generation | IDLE, Ordering::Relaxed);
        // Release: the next owner finds the place idle and without a waker.
        self.used.fetch_and(!(1 << index), Ordering::Release);
        // Last: dropping it is foreign code.
        drop(waker);
    }

    /// Takes a free place.
    fn claim(&self) -> Option<usize> {
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let index = used.trailing_ones() as usize;
            if index >= W {
                return None;
            }
            let claimed = used | 1 << index;
            // Acquire: the last owner has finished with the place.
            match self.used.compare_exchange_weak(used, claimed, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(index),
                Err(now) => used = now,
            }
        }
    }

    /// The places where tasks wait to be notified, with their states.
    #[inline]
    fn waiting(&self) -> impl Iterator<Item = (usize, u32)> {
        let mut used = self.used.load(Ordering::Relaxed);
        core::iter::from_fn(move || {
            while used != 0 {
                let index = used.trailing_zeros() as usize;
                used &= used - 1;
                let state = self.places[index].state.load(Ordering::Acquire);
                if matches!(state & STATE, WAITING | UPDATING) {
                    return Some((index, state));
                }
            }
            None
        })
    }

    /// The place whose task waits longest.
    fn first(&self) -> Option<(usize, u32)> {
        // Arrivals are compared by their distance from the latest, so the counter may wrap. One that is newer than
        // `latest` is the youngest.
        let latest = self.arrivals.load(Ordering::Relaxed);
        self.waiting().max_by_key(|&(index, _)| {
            let age = latest.wrapping_sub(self.places[index].arrival.load(Ordering::Relaxed));
            if age > u32::MAX / 2 { 0 } else { age }
        })
    }
}

impl Place {
    crate::atomic::const_new! {
        fn new() -> Self {
            Self { state: AtomicU32::new(IDLE), arrival: AtomicU32::new(0), waker: UnsafeCell::new(None) }
        }
    }

    /// Acquire: what the last one to change the state did. Release: what the caller did.
    fn change(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// A wait that ends when a condition holds, for objects that notify everybody.
pub(super) struct Until<'a, const W: usize> {
    waiters: &'a Waiters<W>,
    waiting: Option<Waiting>,
}

impl<'a, const W: usize> Until<'a, W> {
    pub(super) fn new(waiters: &'a Waiters<W>) -> Self {
        Self { waiters, waiting: None }
    }

    /// Completes with what `look` returns, as soon as that is something. Then `look` is dropped, and nothing waits any more.
    pub(super) fn poll<R>(
        &mut self,
        waker: &Waker,
        mut look: impl FnMut() -> Option<R>,
    ) -> core::task::Poll<R> {
        use core::task::Poll;

        // A notification says only that it is time to look.
        let mut waits = self.waiting.is_some() && !self.waiters.poll(&mut self.waiting, waker);
        loop {
            if let Some(found) = look() {
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
        self.waiters.withdraw(&mut self.waiting);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn there_are_1_to_32_places() {
        assert_eq!([0, 1, 32, 33].map(is_possible), [false, true, true, false]);
    }
}
