//! A flag: one thread sets it, any number of threads wait for it.
//!
//! ```
//! use punctual_sync::shared::Flag;
//!
//! static READY: Flag = Flag::new();
//!
//! assert!(READY.spin_while(|| false).is_err());
//! READY.set();
//! assert!(READY.spin_while(|| false).is_ok());
//! READY.clear();
//! ```
//!
//! Setting increments a count. A waiter compares the count, so a flag that is set and cleared while
//! a thread waits releases that thread, however late it runs.
//!
//! Real-time safety: nothing allocates. `set`, `clear` and `is_set` are lock-free: an attempt is
//! repeated only if another thread changed the flag in the meantime. `set` enters the kernel only
//! if a thread sleeps. `spin` enters it only to read the clock where that takes a system call;
//! `wait` and `wait_until` sleep there. In shared memory a sleeper also checks the flag 20 times
//! per second.
//!
//! # When a process dies
//!
//! A flag has no owner. Setting it is one step: a process that dies at any instruction has set it
//! or has not, and if it dies before waking the sleepers, they notice within 50 ms. A flag does not
//! know which process will set it, so it cannot detect that none is left: across processes, wait
//! with a deadline, or at a [`Barrier`](super::Barrier), which knows its members.

use super::TimedOut;
use super::owner::Home;
use crate::atomic::{AtomicU32, Ordering, const_new, relax};
#[cfg(feature = "std")]
use {
    super::sleep,
    crate::{Duration, Instant, spin},
};

/// The word is the number of times the flag was set, times four, plus these bits.
const SET: u32 = 1;
/// A thread sleeps, or is about to. Never set together with `SET`.
const ASLEEP: u32 = 2;
const ONCE: u32 = 4;

/// A flag to set and wait for.
#[derive(Debug)]
#[repr(C)]
pub struct Flag {
    word: AtomicU32,
    home: Home,
}

impl Flag {
    const_new! {
        /// Creates a flag that is not set.
        pub fn new() -> Self {
            Self { word: AtomicU32::new(0), home: Home::NOWHERE }
        }
    }

    /// Sets the flag and releases every waiter. A released thread sees what the caller did before.
    pub fn set(&self) {
        let mut word = self.word.load(Ordering::Relaxed);
        // Release: pairs with the acquire in `has_happened`. A flag that is set already is still
        // written, so that a waiter sees this caller's actions too.
        loop {
            let set = if word & SET != 0 { word } else { (word & !ASLEEP).wrapping_add(ONCE) | SET };
            match self.word.compare_exchange_weak(word, set, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if word & ASLEEP != 0 {
            #[cfg(feature = "std")]
            sleep::wake(&self.word, u32::MAX, &self.home);
        }
    }

    /// Clears the flag. Waiting threads continue to wait, unless it was set since they began.
    pub fn clear(&self) {
        // An atomic instruction even where a store would do: it preserves the sleepers' flag, and
        // waiters that only see the count grow still see what the setter did. Relaxed: the caller
        // does not learn whether the flag was set.
        self.word.fetch_and(!SET, Ordering::Relaxed);
    }

    /// Returns `true` if the flag is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.word.load(Ordering::Acquire) & SET != 0
    }

    /// Spins until the flag is set, for at most `limit`; see [Spinning](crate#spinning).
    ///
    /// # Errors
    /// [`TimedOut`] if the flag was not set within the limit.
    #[cfg(feature = "std")]
    pub fn spin(&self, limit: Duration) -> Result<(), TimedOut> {
        self.spin_while(spin::within(limit))
    }

    /// Spins until the flag is set, while `go_on`, called before each check, returns `true`.
    ///
    /// # Errors
    /// [`TimedOut`] if the flag was not set.
    pub fn spin_while(&self, mut go_on: impl FnMut() -> bool) -> Result<(), TimedOut> {
        let begin = self.word.load(Ordering::Acquire);
        let mut word = begin;
        while go_on() {
            if has_happened(begin, word) {
                return Ok(());
            }
            relax();
            word = self.word.load(Ordering::Acquire);
        }
        if has_happened(begin, word) { Ok(()) } else { Err(TimedOut) }
    }

    /// Sleeps until the flag is set; forever, if no thread is left to set it.
    #[cfg(feature = "std")]
    pub fn wait(&self) {
        self.sleep(None).expect("only a deadline ends a sleep before the flag is set");
    }

    /// Sleeps until the flag is set, but not past `deadline`.
    ///
    /// # Errors
    /// [`TimedOut`] if the flag was not set by then.
    #[cfg(feature = "std")]
    pub fn wait_until(&self, deadline: Instant) -> Result<(), TimedOut> {
        self.sleep(Some(deadline))
    }

    #[cfg(feature = "std")]
    fn sleep(&self, deadline: Option<Instant>) -> Result<(), TimedOut> {
        let begin = self.word.load(Ordering::Acquire);
        let mut word = begin;
        loop {
            if has_happened(begin, word) {
                return Ok(());
            }
            let marked = word | ASLEEP;
            // Relaxed: the flag `ASLEEP` publishes no data. It is set only while `SET` is not, or
            // `set` would not clear it.
            let exchange = self.word.compare_exchange(word, marked, Ordering::Relaxed, Ordering::Acquire);
            match exchange {
                Err(now) => word = now,
                Ok(_) => {
                    // Setting the flag changes the word, so a set between the exchange and this
                    // call is noticed.
                    let slept = sleep::wait(&self.word, marked, deadline, &self.home);
                    word = self.word.load(Ordering::Acquire);
                    if slept.is_err() {
                        return if has_happened(begin, word) { Ok(()) } else { Err(TimedOut) };
                    }
                }
            }
        }
    }
}

impl Default for Flag {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns `true` if the flag is set or was set since the word was `begin`; `word` was loaded with
/// acquire.
fn has_happened(begin: u32, word: u32) -> bool {
    word & SET != 0 || word / ONCE != begin / ONCE
}

// SAFETY: `repr(C)`, an atomic word for which zero means "not set", and another that is written
// here only.
#[cfg(not(loom))]
unsafe impl super::Shareable for Flag {
    const KIND: u32 = 3;
    type Element = ();
    type Init = ();

    unsafe fn write(this: *mut Self, (): ()) {
        // SAFETY: `this` is valid for writes by the contract of this function.
        unsafe { this.write(Self { home: Home::here(), ..Self::new() }) };
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sleeper_wakes_although_flag_was_cleared() {
        let flag = Flag::new();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| flag.wait());
            while flag.word.load(Ordering::Relaxed) & ASLEEP == 0 {
                std::thread::yield_now();
            }
            flag.set();
            flag.clear();
            sleeper.join().unwrap();
        });
        assert!(!flag.is_set());
    }

    #[test]
    fn clearing_keeps_sleepers_and_setting_wakes_them_once() {
        let flag = Flag::new();
        flag.word.store(ASLEEP, Ordering::Relaxed);
        flag.clear();
        let is_asleep = || flag.word.load(Ordering::Relaxed) & ASLEEP != 0;
        assert!(is_asleep(), "the next `set` wakes the sleeper");
        flag.set();
        assert!(!is_asleep(), "no one is left to be woken");
    }
}
