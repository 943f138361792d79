//! One wait of an async task for something that another thread notices: who is to be woken, and whether it happened.
//!
//! Two threads meet in a slot. The *owner* is whoever has begun the wait and holds its [`Wait`]; it may be another
//! thread each time, but it is one at a time. The *reactor* notices that it has happened and fires. Neither ever waits
//! for the other: what one of them is in the middle of, the other leaves to it.
//!
//! The slot's word is a generation, which every wait counts up, and one of these states:
//!
//! | state | means | leaves it |
//! |---|---|---|
//! | `FREE` | no wait | anybody, to `SETTING` of the next generation |
//! | `SETTING` | the owner has the waker | the owner, to `WAITING` or, at the end, `FREE`; the reactor, to `FIRED` |
//! | `WAITING` | the waker is there for the reactor | the reactor, to `TAKING`; the owner, to `SETTING` |
//! | `TAKING` | the reactor has the waker | the reactor, to `FIRED`; the owner, to `ABANDONED` |
//! | `FIRED` | it has happened | the owner, to `SETTING` or `FREE` |
//! | `ABANDONED` | the owner has gone, the reactor still has the waker | the reactor, to `FREE` |
//!
//! Invariants:
//!
//! * *The waker has one user.* In `SETTING` and `FIRED` it is the owner, in `TAKING` and `ABANDONED` the reactor, in
//!   `FREE` and `WAITING` nobody; who enters one of the first four does so by a compare-and-swap that one thread wins.
//! * *Nothing that happened is lost.* A fire finds the waker and returns it, or leaves `FIRED` for the owner to find:
//!   an owner that sets another waker does not go back to `WAITING` over it.
//! * *Old waits do nothing.* A generation is never used twice, for 61 bits do not run out.
//! * *Every loop ends.* A compare-and-swap fails because the other one took a step, and it has two to take.
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel, but for what the destructor of a waker does.

use crate::atomic::{AtomicU64, Ordering, UnsafeCell, const_new};

const FREE: u64 = 0;
const SETTING: u64 = 1;
const WAITING: u64 = 2;
const TAKING: u64 = 3;
const FIRED: u64 = 4;
const ABANDONED: u64 = 5;

const STATE: u64 = 7;
const GENERATION: u32 = 3;

/// One wait: which generation of its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(u64);

impl Wait {
    /// As a number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// From its number. A number that no wait has is as one of a wait that is over.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The word of this wait in `state`.
    #[inline]
    fn word(self, state: u64) -> u64 {
        self.0 << GENERATION | state
    }

    /// The state that `word` says this wait is in, if it is about this wait.
    #[inline]
    fn state(self, word: u64) -> Option<u64> {
        (word >> GENERATION == self.0).then_some(word & STATE)
    }
}

/// How a wait stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has not happened yet, and the waker is going to be woken.
    Waiting,
    /// It has happened.
    Fired,
    /// The wait is over: it was ended, or its slot was cleared.
    Over,
}

/// Room for one wait, with a waker of type `T`.
#[derive(Debug)]
pub struct WaitSlot<T> {
    word: AtomicU64,
    waker: UnsafeCell<Option<T>>,
}

// SAFETY: the waker has one user at a time, as shown above. It crosses threads: `T: Send`.
unsafe impl<T: Send> Sync for WaitSlot<T> {}

impl<T> Default for WaitSlot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> WaitSlot<T> {
    const_new! {
        /// A free slot.
        pub fn new() -> Self {
            Self { word: AtomicU64::new(FREE), waker: UnsafeCell::new(None) }
        }
    }

    /// Begins a wait.
    ///
    /// # Errors
    /// Gives the waker back if the slot is not free.
    pub fn begin(&self, waker: T) -> Result<Wait, T> {
        let word = self.word.load(Ordering::Relaxed);
        let wait = Wait((word >> GENERATION) + 1);
        // Acquire: the users of the waker before this one are done.
        let claim = |to| self.word.compare_exchange(word, to, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if word & STATE != FREE || !claim(wait.word(SETTING)) {
            return Err(waker);
        }
        // SAFETY: this thread has won `SETTING`. Nobody knows the wait yet, and who guesses it does not touch the waker.
        let before = unsafe { self.replace(Some(waker)) };
        debug_assert!(before.is_none(), "a free slot has no waker");
        // Release: who takes the waker sees it whole.
        self.word.store(wait.word(WAITING), Ordering::Release);
        Ok(wait)
    }

    /// How the wait stands, if its owner asks.
    #[inline]
    pub fn standing(&self, wait: Wait) -> Standing {
        match wait.state(self.word.load(Ordering::Acquire)) {
            Some(WAITING) => Standing::Waiting,
            Some(TAKING | FIRED) => Standing::Fired,
            // The owner, who asks, is neither setting nor gone.
            _ => Standing::Over,
        }
    }

    /// Has another waker woken, unless it has happened.
    ///
    /// # Safety
    /// The caller is the owner of the wait, which was begun in this slot.
    pub unsafe fn renew(&self, wait: Wait, waker: T) -> Standing {
        if !self.step(wait, WAITING, SETTING) {
            return self.standing(wait);
        }
        // Dropped last, since that may run code that is not ours.
        // SAFETY: this thread has won `SETTING`.
        let _unused = unsafe { self.replace(Some(waker)) };
        if self.step(wait, SETTING, WAITING) {
            Standing::Waiting
        } else {
            // It has happened meanwhile. The waker stays the owner's, who takes it out when the wait ends.
            Standing::Fired
        }
    }

    /// Ends the wait, whatever has become of it. Whether it was not over.
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
                // Dropped last, since that may run code that is not ours.
                // SAFETY: this thread has won `SETTING`; if the reactor fires now, it does not touch the waker.
                let _unused = unsafe { self.replace(None) };
                // Over whatever is there: the reactor may have fired. Release: who begins the next wait comes after.
                self.word.swap(wait.word(FREE), Ordering::Release);
            }
            return true;
        }
    }

    /// It has happened. Returns whom to wake, if the owner does not see it by itself; for the reactor, which is one
    /// thread.
    pub fn fire(&self, wait: Wait) -> Option<T> {
        loop {
            match wait.state(self.word.load(Ordering::Relaxed)) {
                Some(WAITING) if self.step(wait, WAITING, TAKING) => {
                    // SAFETY: this thread has won `TAKING`.
                    let waker = unsafe { self.replace(None) };
                    // Release: the owner ends the wait after this, and then somebody begins another.
                    let (from, to) = (wait.word(TAKING), wait.word(FIRED));
                    if self.word.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed).is_ok() {
                        return waker;
                    }
                    // Abandoned. Release: who begins the next wait comes after this.
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

    /// Goes from one state to another, if the wait is in the first.
    #[inline]
    fn step(&self, wait: Wait, from: u64, to: u64) -> bool {
        let (from, to) = (wait.word(from), wait.word(to));
        // Acquire: the waker is whole, if there is one. Release: it is whole for the next.
        self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// # Safety
    /// The calling thread is the one that may use the waker.
    #[inline]
    unsafe fn replace(&self, waker: Option<T>) -> Option<T> {
        // SAFETY: this thread alone may use the waker, by this function's contract.
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
    fn a_wait_fires_once() {
        let slot = WaitSlot::new();
        let wait = slot.begin("a").unwrap();
        assert_eq!(slot.begin("b"), Err("b"), "it is taken");
        assert_eq!(slot.standing(wait), Standing::Waiting);
        assert_eq!(slot.fire(wait), Some("a"));
        assert_eq!(slot.fire(wait), None);
        assert_eq!(slot.standing(wait), Standing::Fired);
        assert!(end(&slot, wait));
        assert_eq!((slot.standing(wait), end(&slot, wait)), (Standing::Over, false));
    }

    #[test]
    fn the_last_waker_is_woken() {
        let slot = WaitSlot::new();
        let wait = slot.begin("a").unwrap();
        assert_eq!(renew(&slot, wait, "b"), Standing::Waiting);
        assert_eq!(slot.fire(wait), Some("b"));
        assert_eq!(renew(&slot, wait, "c"), Standing::Fired);
    }

    #[test]
    fn an_old_turn_does_nothing_to_the_next() {
        let slot = WaitSlot::new();
        let old = slot.begin("a").unwrap();
        assert!(end(&slot, old));
        let wait = slot.begin("b").unwrap();
        assert_eq!((slot.fire(old), end(&slot, old), renew(&slot, old, "c")), (None, false, Standing::Over));
        assert_eq!(slot.fire(wait), Some("b"));
    }

    #[test]
    fn no_number_is_that_of_an_earlier_wait() {
        let slot = WaitSlot::new();
        for number in 1..=200 {
            let wait = slot.begin("a").unwrap();
            assert_eq!(wait.number(), number, "so that 61 bits do not run out");
            assert_eq!(slot.fire(wait), Some("a"));
            assert!(end(&slot, wait));
        }
    }

    #[test]
    fn a_cleared_slot_goes_on_counting() {
        let slot = WaitSlot::new();
        let old = slot.begin("a").unwrap();
        // SAFETY: there is no other thread.
        assert_eq!(unsafe { slot.clear() }, Some("a"));
        assert_eq!((slot.standing(old), slot.fire(old)), (Standing::Over, None));
        assert_ne!(slot.begin("b").unwrap(), old);
    }

    #[test]
    fn who_is_abandoned_while_taking_frees_the_slot() {
        let slot = WaitSlot::new();
        let wait = slot.begin("a").unwrap();
        assert!(slot.step(wait, WAITING, TAKING));
        assert_eq!(slot.standing(wait), Standing::Fired);
        assert!(end(&slot, wait));
        assert!(slot.begin("b").is_err(), "its waker is in use");
        assert!(!slot.step(wait, TAKING, FIRED));
    }
}
