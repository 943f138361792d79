//! A barrier: threads wait for each other, phase by phase.
//!
//! ```
//! use punctual_sync::shared::Barrier;
//!
//! let barrier = Barrier::new(2);
//! assert!(barrier.spin_while(|| false).is_err()); // the only arrival is withdrawn on return
//! let leaders: usize = std::thread::scope(|scope| {
//!     let both = [(); 2].map(|()| scope.spawn(|| usize::from(barrier.wait().unwrap())));
//!     both.into_iter().map(|thread| thread.join().unwrap()).sum()
//! });
//! assert_eq!(leaders, 1);
//! ```
//!
//! The central sense-reversing barrier (J. Mellor-Crummey, M. Scott, "Algorithms for Scalable
//! Synchronization on Shared-Memory Multiprocessors", TOCS 9(1), 1991, section 3.1). The sense is a
//! phase counter in the same word as the arrival count, so that a thread that gives up withdraws
//! only from the phase that it arrived in.
//!
//! Real-time safety: nothing allocates. Arriving is lock-free, and an attempt is repeated only if
//! another member arrived or left in the meantime. The last thread to arrive enters the kernel only
//! if a thread sleeps. `spin` enters it only to read the clock where that takes a system call, and
//! on the first arrival of a process at a barrier in shared memory, to check which processes are
//! alive. `wait` and `wait_until` sleep there, and in shared memory make that check 20 times per
//! second.
//!
//! # When a process dies
//!
//! A barrier in shared memory records which processes have ever arrived. When one of them has died,
//! at any instruction, the barrier is *broken*: all waiting threads get [`BarrierError::PeerDied`],
//! sleeping ones within 50 ms, and so do all that arrive, until a thread calls [`Barrier::repair`].
//! A restarted program is another process: it finds the barrier broken and cannot replace its
//! predecessor before the repair. `spin` does not check which processes are alive; it times out, or
//! fails once another thread has detected the death.
//!
//! A completed phase stays completed: if a process dies after the last thread has arrived, the
//! others pass, and the next phase breaks. A process that dies before its first arrival goes
//! unnoticed.
//!
//! # Invariants
//!
//! *B1* A phase ends with the arrival that completes the count, or by breaking, which changes the
//! era and discards every arrival. So a waiter that finds another phase in the same era has passed,
//! and one that finds another era has not. *B2* A process is among the peers before it arrives for
//! the first time.

use super::BarrierError;
use super::owner::Peers;
use crate::atomic::{AtomicU32, Ordering, const_new, relax};
#[cfg(feature = "std")]
use {
    super::sleep,
    crate::{Duration, Instant, spin},
};

/// The word: 15 bits for arrivals, a bit for "a thread sleeps", 8 bits each for the phase and the
/// era.
const ARRIVED: u32 = 0x7fff;
#[cfg(feature = "std")]
const ASLEEP: u32 = 0x8000;
const PHASE: u32 = 0x00ff_0000;
const ONE_PHASE: u32 = 0x0001_0000;
/// Odd while the barrier is broken.
const ERA: u32 = 0xff00_0000;
const ONE_ERA: u32 = 0x0100_0000;

/// A barrier for a fixed number of threads.
#[derive(Debug)]
#[repr(C)]
pub struct Barrier {
    word: AtomicU32,
    members: u32,
    peers: Peers,
}

impl Barrier {
    const_new! {
        /// Creates a barrier for `members` threads.
        ///
        /// # Panics
        /// If `members` is 0 or more than 32767.
        pub fn new(members: u32) -> Self {
            assert!(members >= 1 && members <= ARRIVED, "a barrier has 1 to 32767 members");
            Self { word: AtomicU32::new(0), members, peers: Peers::new() }
        }
    }

    /// Returns the number of threads that have arrived in the current phase.
    pub fn arrived(&self) -> u32 {
        self.word.load(Ordering::Relaxed) & ARRIVED
    }

    /// Arrives, and spins until all others have, for at most `limit`; see
    /// [Spinning](crate#spinning). Returns `true` to one thread in each phase, the last one.
    /// Afterwards every thread sees what each did before it arrived.
    ///
    /// # Errors
    /// [`BarrierError::TimedOut`] if not all arrived within the limit; the caller then no longer
    /// counts as arrived. [`BarrierError::PeerDied`] if the barrier is broken,
    /// [`BarrierError::Full`] if too many processes use it.
    #[cfg(feature = "std")]
    pub fn spin(&self, limit: Duration) -> Result<bool, BarrierError> {
        self.spin_while(spin::within(limit))
    }

    /// Arrives, and spins until all others have, while `go_on`, called before each check, returns
    /// `true`.
    ///
    /// # Errors
    /// Those of [`BarrierError`]: if not all arrived, the caller no longer counts as arrived.
    pub fn spin_while(&self, mut go_on: impl FnMut() -> bool) -> Result<bool, BarrierError> {
        let Some(phase) = self.arrive()? else { return Ok(true) };
        let unwinding = LeaveOnUnwind { barrier: self, phase };
        let mut is_over = Ok(false);
        while is_over == Ok(false) && go_on() {
            is_over = self.is_over(self.word.load(Ordering::Acquire), phase);
            relax();
        }
        core::mem::forget(unwinding);
        if is_over? { Ok(false) } else { self.leave(phase) }
    }

    /// Arrives, and sleeps until every member has. Returns `true` to one thread in each phase, the
    /// last one.
    ///
    /// # Errors
    /// [`BarrierError::PeerDied`] if the barrier is broken, [`BarrierError::Full`] if too many
    /// processes use it.
    #[cfg(feature = "std")]
    pub fn wait(&self) -> Result<bool, BarrierError> {
        self.sleep(None)
    }

    /// Arrives, and sleeps until every member has, but not past `deadline`; otherwise like
    /// [`wait`](Self::wait).
    ///
    /// # Errors
    /// [`BarrierError::TimedOut`] if not all arrived by then; the caller then no longer counts as
    /// arrived. [`BarrierError::PeerDied`] if the barrier is broken, [`BarrierError::Full`] if too
    /// many processes use it.
    #[cfg(feature = "std")]
    pub fn wait_until(&self, deadline: Instant) -> Result<bool, BarrierError> {
        self.sleep(Some(deadline))
    }

    /// Makes a barrier usable again after the death of a process, and forgets dead processes:
    /// arriving threads wait for all members again. Returns `true` if the barrier was broken, or
    /// would have been because of a death not detected yet.
    ///
    /// All threads waiting at that time get [`BarrierError::PeerDied`]. So call it when the missing
    /// member has been replaced, or from the replacement.
    pub fn repair(&self) -> bool {
        self.check_peers();
        let word = self.word.load(Ordering::Relaxed);
        if word & ONE_ERA == 0 {
            return false;
        }
        self.peers.dead().for_each(|dead| self.peers.forget(dead));
        // Fails if another process has repaired the barrier. Acquire: the members' actions before
        // they arrived, which the exchanges since have passed on. Release: a thread that arrives
        // from now on sees the caller's actions.
        let next = word.wrapping_add(ONE_ERA);
        let _ = self.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Relaxed);
        true
    }

    #[cfg(feature = "std")]
    fn sleep(&self, deadline: Option<Instant>) -> Result<bool, BarrierError> {
        let Some(phase) = self.arrive()? else { return Ok(true) };
        // The order of the test and the flag does not matter: the last thread to arrive changes the
        // word, and the kernel does not let a thread sleep on a word that changed.
        loop {
            let word = self.word.load(Ordering::Acquire);
            if self.is_over(word, phase)? {
                return Ok(false);
            }
            let marked = word | ASLEEP;
            let exchange = self.word.compare_exchange(word, marked, Ordering::Relaxed, Ordering::Relaxed);
            if exchange.is_err() {
                continue;
            }
            match sleep::wait(&self.word, marked, deadline, self.peers.home()) {
                Ok(sleep::Woken::Perhaps) => {}
                Ok(sleep::Woken::Late) => self.check_peers(),
                Err(_) => return self.leave(phase),
            }
        }
    }

    /// Counts the caller; returns the phase, or `None` if the caller was the last and ended the
    /// phase.
    fn arrive(&self) -> Result<Option<u32>, BarrierError> {
        // A newcomer may replace a dead process, which must no longer count then.
        if self.peers.me(|| self.check_peers()).is_none() {
            return Err(BarrierError::Full);
        }
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & ONE_ERA != 0 {
                return Err(BarrierError::PeerDied);
            }
            let last = (word & ARRIVED) + 1 == self.members;
            let arrived = if last { word & ERA | word.wrapping_add(ONE_PHASE) & PHASE } else { word + 1 };
            // Release: a thread that sees the end of the phase sees what this thread did. The chain
            // of exchanges passes it on. Acquire: the last thread sees what every member did.
            match self.word.compare_exchange_weak(word, arrived, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if !last => return Ok(Some(word & (PHASE | ERA))),
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        self.wake(word);
        Ok(None)
    }

    /// Withdraws the caller's arrival in `phase`, unless the phase is over.
    fn leave(&self, phase: u32) -> Result<bool, BarrierError> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if self.is_over(word, phase)? {
                return Ok(false);
            }
            // The count is at least 1: in this phase the caller is among the arrivals. Acquire on
            // failure: as in `is_over`.
            match self.word.compare_exchange_weak(word, word - 1, Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => return Err(BarrierError::TimedOut),
                Err(now) => word = now,
            }
        }
    }

    /// Returns `true` if `phase` has ended because every member arrived. `word` was loaded with
    /// acquire, which pairs with the releases of all arrivals.
    fn is_over(&self, word: u32, phase: u32) -> Result<bool, BarrierError> {
        match (word ^ phase) & ERA {
            0 => Ok(word & PHASE != phase & PHASE),
            _ => Err(BarrierError::PeerDied),
        }
    }

    /// Breaks the barrier if a process that has used it is dead.
    #[cold]
    fn check_peers(&self) {
        loop {
            // Before the check. Acquire: in the era after a repair, the processes that it forgot
            // are no longer found.
            let word = self.word.load(Ordering::Acquire);
            if word & ONE_ERA != 0 || self.peers.dead().next().is_none() || self.break_up(word) {
                return;
            }
        }
    }

    /// Breaks the barrier if its era is still that of `word`, and whole; otherwise another thread
    /// has broken it, and the death that the caller detected may have been repaired since.
    fn break_up(&self, mut word: u32) -> bool {
        let era = word & ERA;
        while word & ERA == era {
            let broken = era.wrapping_add(ONE_ERA);
            // Relaxed: an exchange passes on what the arrivals before it released.
            match self.word.compare_exchange_weak(word, broken, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    self.wake(word);
                    return true;
                }
                Err(now) => word = now,
            }
        }
        false
    }

    /// Wakes the threads that slept when the word was `word`. If the caller dies before this, they
    /// wake by their timeout.
    #[cfg_attr(not(feature = "std"), allow(unused_variables, reason = "no thread sleeps"))]
    fn wake(&self, word: u32) {
        #[cfg(feature = "std")]
        if word & ASLEEP != 0 {
            sleep::wake(&self.word, u32::MAX, self.peers.home());
        }
    }
}

/// Withdraws an arrival when dropped: while a panic of the caller's `go_on` unwinds.
struct LeaveOnUnwind<'a> {
    barrier: &'a Barrier,
    phase: u32,
}

impl Drop for LeaveOnUnwind<'_> {
    #[cold]
    fn drop(&mut self) {
        let _ = self.barrier.leave(self.phase);
    }
}

// SAFETY: `repr(C)`, words without pointers; `members` is written here only.
#[cfg(not(loom))]
unsafe impl super::Shareable for Barrier {
    const KIND: u32 = 4;
    type Element = ();
    type Init = u32;

    unsafe fn write(this: *mut Self, members: u32) {
        // SAFETY: `this` is valid for writes by the contract of this function.
        unsafe { this.write(Self { peers: Peers::shared(), ..Self::new(members) }) };
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn accepts_1_to_32767_members() {
        let is_possible = |members| std::panic::catch_unwind(|| Barrier::new(members)).is_ok();
        assert_eq!([0, 1, 32767, 32768].map(is_possible), [false, true, true, false]);
    }

    /// Eras 0 and 2 are whole, and era 1 is broken.
    #[test]
    fn ends_wait_of_an_earlier_era() {
        let barrier = Barrier::new(2);
        assert_eq!(barrier.arrive(), Ok(Some(0)));
        let seen = barrier.word.load(Ordering::Relaxed);
        assert!(barrier.break_up(seen));
        assert!(barrier.repair());
        assert!(!barrier.break_up(seen), "another thread found the same process dead");
        let word = barrier.word.load(Ordering::Relaxed);
        assert_eq!(word, 2 * ONE_ERA, "whole, and no member has arrived");
        assert_eq!(barrier.is_over(word, 0), Err(BarrierError::PeerDied));
        assert_eq!(barrier.arrive(), Ok(Some(2 * ONE_ERA)));
        assert_eq!(barrier.arrive(), Ok(None), "the last one");
        let word = barrier.word.load(Ordering::Relaxed);
        assert_eq!(barrier.is_over(word, 2 * ONE_ERA), Ok(true), "the era goes on");
    }
}
