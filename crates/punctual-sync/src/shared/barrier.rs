//! "Everybody has arrived": threads wait for each other, phase after phase.
//!
//! ```
//! use punctual_sync::shared::Barrier;
//!
//! let barrier = Barrier::new(2);
//! assert!(barrier.spin(10).is_err()); // nobody came, and the caller does not count as arrived any more
//! let leaders: usize = std::thread::scope(|scope| {
//!     let both = [(); 2].map(|()| scope.spawn(|| usize::from(barrier.wait())));
//!     both.into_iter().map(|thread| thread.join().unwrap()).sum()
//! });
//! assert_eq!(leaders, 1);
//! ```
//!
//! The central sense-reversing barrier (J. Mellor-Crummey, M. Scott, "Algorithms for Scalable Synchronization on
//! Shared-Memory Multiprocessors", TOCS 9(1), 1991, section 3.1). The sense is a counter of phases in the same
//! word as the count of arrivals, so that a thread that gives up leaves only the phase that it arrived in.
//!
//! Real-time safety: nothing allocates. Arriving is lock-free, and an attempt is repeated only if another member
//! arrived or left meanwhile. The last to arrive enters the kernel only if a thread sleeps. `spin` never enters it
//! and ends by count; `wait` and `wait_until` sleep there.

use super::TimedOut;
use crate::atomic::{AtomicU32, Ordering, const_new, relax};
use crate::seed::seeded;
#[cfg(feature = "std")]
use {super::sleep, crate::Instant};

/// The word: 15 bits for arrivals, a bit for "somebody sleeps", 16 bits for the phase.
const ARRIVED: u32 = 0x7fff;
#[cfg(feature = "std")]
const ASLEEP: u32 = 0x8000;
const PHASE: u32 = 0xffff_0000;
const ONE_PHASE: u32 = 0x1_0000;

/// A barrier for a fixed number of threads.
#[derive(Debug)]
#[repr(C)]
pub struct Barrier {
    word: AtomicU32,
    members: u32,
}

impl Barrier {
    const_new! {
        /// A barrier for `members` threads.
        ///
        /// # Panics
        /// If `members` is 0 or more than 32767.
        pub fn new(members: u32) -> Self {
            assert!(members >= 1 && members <= ARRIVED, "a barrier has 1 to 32767 members");
            Self { word: AtomicU32::new(0), members }
        }
    }

    /// How many threads have arrived in the current phase.
    pub fn arrived(&self) -> u32 {
        self.word.load(Ordering::Relaxed) & ARRIVED
    }

    /// Arrives, and waits for the others for at most `turns` turns of a loop, without entering the kernel. For one
    /// thread in each phase, the last one, it gives `true`. Everybody then sees what each did before it arrived.
    ///
    /// # Errors
    /// [`TimedOut`] if not all arrived meanwhile; the caller then does not count as arrived.
    pub fn spin(&self, turns: u32) -> Result<bool, TimedOut> {
        let Some(phase) = self.arrive() else { return Ok(true) };
        for _ in 0..turns {
            if self.is_over(phase) {
                return Ok(false);
            }
            relax();
        }
        self.leave(phase)
    }

    /// Arrives, and sleeps until everybody has. For one thread in each phase, the last one, it gives `true`.
    #[cfg(feature = "std")]
    pub fn wait(&self) -> bool {
        self.sleep(None).expect("only a deadline ends a sleep before everybody has arrived")
    }

    /// Arrives, and sleeps until everybody has, but not past `deadline`; otherwise like [`wait`](Self::wait).
    ///
    /// # Errors
    /// [`TimedOut`] if not all arrived by then; the caller then does not count as arrived.
    #[cfg(feature = "std")]
    pub fn wait_until(&self, deadline: Instant) -> Result<bool, TimedOut> {
        self.sleep(Some(deadline))
    }

    #[cfg(feature = "std")]
    fn sleep(&self, deadline: Option<Instant>) -> Result<bool, TimedOut> {
        let Some(phase) = self.arrive() else { return Ok(true) };
        // The order of the test and the mark does not matter: the last to arrive changes the word, and the kernel
        // does not let a thread sleep on a word that changed.
        loop {
            let word = self.word.load(Ordering::Acquire);
            if word & PHASE != phase {
                return Ok(false);
            }
            let marked = word | ASLEEP;
            let exchange = self.word.compare_exchange(word, marked, Ordering::Relaxed, Ordering::Relaxed);
            if exchange.is_ok() && sleep::wait(&self.word, marked, deadline).is_err() {
                return self.leave(phase);
            }
        }
    }

    /// Counts the caller; gives the phase, or `None` if the caller was the last and ended it.
    fn arrive(&self) -> Option<u32> {
        let mut word = self.word.load(Ordering::Relaxed);
        let relaxed = seeded!("seed-barrier-arrive-relaxed");
        // Release: whoever sees the end of the phase sees what this thread did. The chain of exchanges passes it on.
        // Acquire: the last one sees what everybody did.
        let order = if relaxed { Ordering::Relaxed } else { Ordering::AcqRel };
        loop {
            let last = (word & ARRIVED) + 1 == self.members;
            let arrived = if last { (word & PHASE).wrapping_add(ONE_PHASE) } else { word + 1 };
            match self.word.compare_exchange_weak(word, arrived, order, Ordering::Relaxed) {
                Ok(_) if !last => return Some(word & PHASE),
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        #[cfg(feature = "std")]
        if word & ASLEEP != 0 {
            sleep::wake(&self.word, u32::MAX);
        }
        None
    }

    /// Takes the caller's arrival in `phase` back, unless the phase is over.
    fn leave(&self, phase: u32) -> Result<bool, TimedOut> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if word & PHASE != phase && !seeded!("seed-barrier-leave-blindly") {
                return Ok(false);
            }
            // The count is at least 1: in this phase the caller is among the arrivals. Acquire on failure: as in
            // `is_over`.
            match self.word.compare_exchange_weak(word, word - 1, Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => return Err(TimedOut),
                Err(now) => word = now,
            }
        }
    }

    fn is_over(&self, phase: u32) -> bool {
        // Acquire: pairs with the releases of all arrivals.
        self.word.load(Ordering::Acquire) & PHASE != phase
    }
}

// SAFETY: `repr(C)`, two words without pointers; `members` is written here and never again.
#[cfg(not(loom))]
unsafe impl super::Shareable for Barrier {
    const KIND: u32 = 4;
    type Element = ();
    type Init = u32;

    unsafe fn write(this: *mut Self, members: u32) {
        // SAFETY: `this` is valid for writes by the contract of this function.
        unsafe { this.write(Self::new(members)) };
    }
}
