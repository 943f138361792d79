//! One wait of an async task for an event that another thread detects: the waker, and whether the
//! event has occurred.
//!
//! Two threads meet in a slot. The *owner* has begun the wait and holds its [`Wait`]; the owner may
//! be a different thread each time, but only one at a time. The *reactor* detects the event and
//! fires. Neither ever waits for the other: each leaves an operation that the other has started for
//! the other to finish.
//!
//! The slot's word is a generation, which every wait increments, and one of these states:
//!
//! | state | meaning | left by |
//! |---|---|---|
//! | `FREE` | no wait | any thread, to `SETTING` of the next generation |
//! | `SETTING` | the owner uses the waker | the owner, to `WAITING` or, at the end, `FREE`; the reactor, to `FIRED` |
//! | `WAITING` | the waker is available to the reactor | the reactor, to `TAKING`; the owner, to `SETTING` |
//! | `TAKING` | the reactor uses the waker | the reactor, to `FIRED`; the owner, to `ABANDONED` |
//! | `FIRED` | the event has occurred | the owner, to `SETTING` or `FREE` |
//! | `ABANDONED` | the owner has left, the reactor still uses the waker | the reactor, to `FREE` |
//!
//! Invariants:
//!
//! * *The waker has one user.* In `SETTING` and `FIRED` it is the owner, in `TAKING` and
//!   `ABANDONED` the reactor; in `FREE` and `WAITING` there is none. A thread enters one of the
//!   first four states by a compare-and-swap that one thread wins.
//! * *No event is lost.* A fire finds the waker and returns it, or leaves `FIRED` for the owner to
//!   find: an owner that sets another waker does not overwrite `FIRED` with `WAITING`.
//! * *Stale waits have no effect.* A generation is never reused, since 61 bits do not overflow.
//! * *Every loop ends.* A compare-and-swap fails only because the other thread took a step, and
//!   each has at most two to take.
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel, except for the destructor
//! of a waker.

use crate::atomic::{AtomicU64, Ordering, UnsafeCell, const_new};

const FREE: u64 = 0;
const SETTING: u64 = 1;
const WAITING: u64 = 2;
const TAKING: u64 = 3;
const FIRED: u64 = 4;
const ABANDONED: u64 = 5;

const STATE: u64 = 7;
const GENERATION: u32 = 3;

/// One wait: a generation of its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(u64);

impl Wait {
    /// Returns the wait as a number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Creates a wait from its number. A number that belongs to no wait behaves like that of an
    /// ended wait.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Returns the slot's word for this wait in `state`.
    #[inline]
    fn word(self, state: u64) -> u64 {
        self.0 << GENERATION | state
    }

    /// Returns the state of this wait in `word`, or `None` if the word belongs to another wait.
    #[inline]
    fn state(self, word: u64) -> Option<u64> {
        (word >> GENERATION == self.0).then_some(word & STATE)
    }
}

/// The status of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The event has not occurred yet; the waker will be woken.
    Waiting,
    /// The event has occurred.
    Fired,
    /// The wait is over: it was ended, or its slot was cleared.
    Over,
}

/// Storage for one wait, with a waker of type `T`.
#[derive(Debug)]
pub struct WaitSlot<T> {
    word: AtomicU64,
    waker: UnsafeCell<Option<T>>,
}

// SAFETY: the waker has one user at a time, as shown above. It moves between threads: `T: Send`.
unsafe impl<T: Send> Sync for WaitSlot<T> {}

impl<T> Default for WaitSlot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> WaitSlot<T> {
    const_new! {
        /// Creates a free slot.
        pub fn new() -> Self {
            Self { word: AtomicU64::new(FREE), waker: UnsafeCell::new(None) }
        }
    }

    /// Begins a wait.
    ///
    /// # Errors
    /// Returns the waker if the slot is not free.
    pub fn begin(&self, waker: T) -> Result<Wait, T> {
        let word = self.word.load(Ordering::Relaxed);
        let wait = Wait((word >> GENERATION) + 1);
        // Acquire: the previous users of the waker are done.
        let claim = |to| self.word.compare_exchange(word, to, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if word & STATE != FREE || !claim(wait.word(SETTING)) {
            return Err(waker);
        }
        // SAFETY: this thread has won `SETTING`. No other thread has the wait yet, and a thread
        // that guesses it does not access the waker.
        let before = unsafe { self.replace(Some(waker)) };
        debug_assert!(before.is_none(), "a free slot has no waker");
        // Release: the thread that takes the waker sees it complete.
        self.word.store(wait.word(WAITING), Ordering::Release);
        Ok(wait)
    }

    /// Returns the status of the wait, for its owner.
    #[inline]
    pub fn standing(&self, wait: Wait) -> Standing {
        match wait.state(self.word.load(Ordering::Acquire)) {
            Some(WAITING) => Standing::Waiting,
            Some(TAKING | FIRED) => Standing::Fired,
            // The caller is the owner, so the state is neither `SETTING` nor `ABANDONED`.
            _ => Standing::Over,
        }
    }

    /// Replaces the waker, unless the event has occurred.
    ///
    /// # Safety
    /// The caller is the owner of the wait, which was begun in this slot.
    pub unsafe fn renew(&self, wait: Wait, waker: T) -> Standing {
        if !self.step(wait, WAITING, SETTING) {
            return self.standing(wait);
        }
        // Dropped last, since dropping may run foreign code.
        // SAFETY: this thread has won `SETTING`.
        let _unused = unsafe { self.replace(Some(waker)) };
        if self.step(wait, SETTING, WAITING) {
            Standing::Waiting
        } else {
            // The event has occurred in the meantime. The owner retains the waker and removes it
            // when the wait ends.
            Standing::Fired
        }
    }

    /// Ends the wait, regardless of its outcome. Returns `true` if it was not over.
    ///
    /// # Safety
    /// The caller is the owner of the wait, which was begun in this slot.
    pub unsafe fn end(&self, wait: Wait) -> bool {
        loop {
            // Relaxed: `step` acquires.
            let state = wait.state(self.word.load(Ordering::Relaxed));
            let (from, to) = match state {
                Some(WAITING) => (WAITING, SETTING),
                Some(TAKING) => (TAKING, ABANDONED),
                Some(FIRED) => (FIRED, SETTING),
                _ => return false,
            };
            if !self.step(wait, from, to) {
                continue;
            }
            if to == SETTING {
                // Dropped last, since dropping may run foreign code.
                // SAFETY: this thread has won `SETTING`; a reactor that fires now does not access
                // the waker.
                let _unused = unsafe { self.replace(None) };
                // Unconditional: the reactor may have fired. Release: the next wait begins after
                // this.
                self.word.swap(wait.word(FREE), Ordering::Release);
            }
            return true;
        }
    }

    /// Records that the event has occurred. Returns the waker to wake, unless the owner will see
    /// the event without it; for the reactor, a single thread.
    pub fn fire(&self, wait: Wait) -> Option<T> {
        loop {
            match wait.state(self.word.load(Ordering::Relaxed)) {
                Some(WAITING) if self.step(wait, WAITING, TAKING) => {
                    // SAFETY: this thread has won `TAKING`.
                    let waker = unsafe { self.replace(None) };
                    // Release: the owner ends the wait after this, and only then can another wait
                    // begin.
                    let (from, to) = (wait.word(TAKING), wait.word(FIRED));
                    if self.word.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed).is_ok() {
                        return waker;
                    }
                    // Abandoned. Release: the next wait begins after this.
                    self.word.store(wait.word(FREE), Ordering::Release);
                    return None;
                }
                Some(SETTING) if self.step(wait, SETTING, FIRED) => return None,
                Some(WAITING | SETTING) => {}
                _ => return None,
            }
        }
    }

    /// Frees the slot between two runs; returns the waker that was in it.
    ///
    /// # Safety
    /// No other thread uses the slot.
    pub unsafe fn clear(&self) -> Option<T> {
        let word = self.word.load(Ordering::Acquire);
        self.word.store(word & !STATE | FREE, Ordering::Relaxed);
        // SAFETY: no other thread uses the slot, by this function's contract.
        unsafe { self.replace(None) }
    }

    /// Changes the state from `from` to `to`, if the wait is in `from`.
    #[inline]
    fn step(&self, wait: Wait, from: u64, to: u64) -> bool {
        let (from, to) = (wait.word(from), wait.word(to));
        // Acquire: the waker, if any, is complete. Release: it is complete for the next user.
        self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// # Safety
    /// The calling thread is the current user of the waker.
    #[inline]
    unsafe fn replace(&self, waker: Option<T>) -> Option<T> {
        // SAFETY: this thread is the only user of the waker, by this function's contract.
        self.waker.with_mut(|cell| core::mem::replace(unsafe { &mut *cell }, waker))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn renew(slot: &WaitSlot<&'static str>, wait: Wait, waker: &'static str) -> Standing {
        // SAFETY: the test is the owner.
        unsafe { slot.renew(wait, waker) }
    }

    fn end(slot: &WaitSlot<&'static str>, wait: Wait) -> bool {
        // SAFETY: the test is the owner.
        unsafe { slot.end(wait) }
    }

    #[test]
    fn wait_fires_once() {
        let slot = WaitSlot::new();
        let wait = slot.begin("a").unwrap();
        assert_eq!(slot.begin("b"), Err("b"), "the slot is taken");
        assert_eq!(slot.standing(wait), Standing::Waiting);
        assert_eq!(slot.fire(wait), Some("a"));
        assert_eq!(slot.fire(wait), None);
        assert_eq!(slot.standing(wait), Standing::Fired);
        assert!(end(&slot, wait));
        assert_eq!((slot.standing(wait), end(&slot, wait)), (Standing::Over, false));
    }

    #[test]
    fn wakes_last_waker() {
        let slot = WaitSlot::new();
        let wait = slot.begin("a").unwrap();
        assert_eq!(renew(&slot, wait, "b"), Standing::Waiting);
        assert_eq!(slot.fire(wait), Some("b"));
        assert_eq!(renew(&slot, wait, "c"), Standing::Fired);
    }

    #[test]
    fn old_wait_does_not_affect_next() {
        let slot = WaitSlot::new();
        let old = slot.begin("a").unwrap();
        assert!(end(&slot, old));
        let wait = slot.begin("b").unwrap();
        assert_eq!((slot.fire(old), end(&slot, old), renew(&slot, old, "c")), (None, false, Standing::Over));
        assert_eq!(slot.fire(wait), Some("b"));
    }

    #[test]
    fn wait_numbers_are_unique() {
        let slot = WaitSlot::new();
        for number in 1..=200 {
            let wait = slot.begin("a").unwrap();
            assert_eq!(wait.number(), number, "numbers are consecutive");
            assert_eq!(slot.fire(wait), Some("a"));
            assert!(end(&slot, wait));
        }
    }

    #[test]
    fn cleared_slot_keeps_its_count() {
        let slot = WaitSlot::new();
        let old = slot.begin("a").unwrap();
        // SAFETY: there is no other thread.
        assert_eq!(unsafe { slot.clear() }, Some("a"));
        assert_eq!((slot.standing(old), slot.fire(old)), (Standing::Over, None));
        assert_ne!(slot.begin("b").unwrap(), old);
    }

    #[test]
    fn abandoned_taker_frees_the_slot() {
        let slot = WaitSlot::new();
        let wait = slot.begin("a").unwrap();
        assert!(slot.step(wait, WAITING, TAKING));
        assert_eq!(slot.standing(wait), Standing::Fired);
        assert!(end(&slot, wait));
        assert!(slot.begin("b").is_err(), "its waker is in use");
        assert!(!slot.step(wait, TAKING, FIRED));
    }
}
