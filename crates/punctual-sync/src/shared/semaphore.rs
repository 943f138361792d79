//! A counting semaphore: threads acquire and signal units, and a free unit goes to the highest
//! waiting level.
//!
//! ```
//! use punctual_sync::Instant;
//! use punctual_sync::shared::Semaphore;
//!
//! static BUFFERS: Semaphore = Semaphore::new(2);
//!
//! BUFFERS.acquire(3).unwrap();
//! BUFFERS.acquire(1).unwrap();
//! let long_ago = Instant::from_ticks(0);
//! assert!(BUFFERS.acquire_until(5, long_ago).is_err());
//! BUFFERS.signal(1).unwrap();
//! assert!(BUFFERS.try_acquire());
//! ```
//!
//! Only the first thread in line takes a free unit, or as many threads as there are units. So a low
//! level cannot steal a unit from a higher level that has not run yet.
//!
//! An acquired unit is consumed until a thread signals, possibly another one: use this for events.
//! For units that threads use and return, like buffers, use [`hold`](Semaphore::hold): a [`Unit`]
//! is returned when dropped.
//!
//! ```
//! # use punctual_sync::shared::Semaphore;
//! # static BUFFERS: Semaphore = Semaphore::new(2);
//! let buffer = BUFFERS.hold(3).unwrap();
//! assert_eq!(BUFFERS.free(), 1);
//! drop(buffer);
//! assert_eq!(BUFFERS.free(), 2);
//! ```
//!
//! Real-time safety: nothing allocates. `try_acquire` and `signal` are lock-free: an attempt is
//! repeated only if another thread acquired, signaled, or joined or left the line in the meantime.
//! Finding the first in line takes `W²` steps at most. `signal` enters the kernel once for each
//! thread it wakes; `acquire` sleeps there unless a unit is free, and in shared memory checks 20
//! times per second which processes are alive.
//!
//! # When a process dies
//!
//! * A unit is acquired, and returned, in one step. A process that dies at any instruction of
//!   [`Semaphore::acquire`] or [`Semaphore::signal`] has completed the operation, or has not.
//! * A semaphore in shared memory records which process waits in a slot and which one holds a
//!   [`Unit`]. The slots of dead processes are freed and their units returned, each once, by a
//!   thread that waits for longer than 50 ms, finds no slot, or calls [`Semaphore::recover`]. Units
//!   that were acquired, not held, have been consumed: the semaphore cannot know whether the dead
//!   process was to signal them.
//! * A process that dies after it freed a unit, and before it woke the waiters, delays them by up
//!   to 50 ms.
//!
//! # Invariants
//!
//! *S1* Units are neither created nor lost: each is counted as free, or held by the slot whose bit
//! is in the same word as the count, or was acquired. *S2* A free unit and the sleeping thread that
//! is to have it never coexist for long. A thread that adds to the free units, or leaves the line,
//! checks for waiters afterwards; a thread that starts to wait checks the free units afterwards;
//! sequentially consistent fences separate the steps, so that one of them sees the other. `signal`
//! has no fence: its exchange and its load are sequentially consistent themselves. If that load
//! misses the waiter's bit, it precedes the waiter's fence in their single order, and so does the
//! exchange; so the waiter's load, after its fence, finds the unit. *S3* A slot is used by one
//! thread at a time, whose process has the claim. Its bits, for waiting and for holding, are
//! changed only by the holder of the claim.

use core::cmp::Reverse;
use core::fmt;

use super::owner::{Claim, Home};
use super::{AcquireError, Padded, SignalError, sleep};
use crate::Instant;
use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A counting semaphore with slots for `W` threads that wait or hold units, 32 at most.
#[derive(Debug)]
#[repr(C)]
pub struct Semaphore<const W: usize = 16> {
    /// The number of free units; above it one bit for each slot that holds a unit.
    units: Padded<AtomicU64>,
    /// The slots of waiting threads, as bits.
    waiting: Padded<AtomicU32>,
    /// Orders the waiters at one level.
    arrivals: AtomicU32,
    home: Home,
    slots: [Slot; W],
}

/// In `units`: the bits of the number of free units.
const FREE: u64 = u32::MAX as u64;

#[derive(Debug)]
#[repr(C)]
struct Slot {
    claim: Claim,
    /// Set if the slot's thread has been notified to check for a unit. It sleeps on this word while
    /// it is 0.
    is_notified: AtomicU32,
    level: AtomicU32,
    arrival: AtomicU32,
}

impl Semaphore {
    crate::atomic::const_new! {
        /// Creates a semaphore with `units` free units and 16 slots.
        pub fn new(units: u32) -> Self {
            Self::with_slots(units)
        }
    }
}

impl<const W: usize> Semaphore<W> {
    const CHECK: () = assert!(is_possible(W), "a semaphore has 1 to 32 slots");

    /// The largest number of free units after [`signal`](Self::signal). Only returned held units
    /// may exceed it.
    pub const MAX: u32 = u32::MAX / 2;

    /// Creates a semaphore with `units` free units.
    ///
    /// # Panics
    /// If `units` is more than [`MAX`](Self::MAX).
    #[cfg(not(loom))]
    pub const fn with_slots(units: u32) -> Self {
        let () = Self::CHECK;
        assert!(units <= Self::MAX, "too many units");
        let (units, waiting) = (Padded(AtomicU64::new(units as u64)), Padded(AtomicU32::new(0)));
        let (arrivals, home) = (AtomicU32::new(0), Home::NOWHERE);
        Self { units, waiting, arrivals, home, slots: [const { Slot::new() }; W] }
    }

    /// Creates a semaphore with `units` free units.
    #[cfg(loom)]
    pub fn with_slots(units: u32) -> Self {
        let () = Self::CHECK;
        let (units, waiting) = (Padded(AtomicU64::new(units.into())), Padded(AtomicU32::new(0)));
        let (arrivals, home) = (AtomicU32::new(0), Home::NOWHERE);
        Self { units, waiting, arrivals, home, slots: core::array::from_fn(|_| Slot::new()) }
    }

    /// Returns the number of free units. A snapshot while others use the semaphore.
    pub fn free(&self) -> u32 {
        (self.units.0.load(Ordering::Relaxed) & FREE) as u32
    }

    /// Returns the number of waiting threads. A snapshot while others use the semaphore.
    pub fn waiting(&self) -> usize {
        self.waiting.0.load(Ordering::Relaxed).count_ones() as usize
    }

    /// Takes a unit if one is free and no thread waits for it.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.waiting() == 0 && self.take_free(0, 0)
    }

    /// Takes a unit, sleeping until there is one for the caller. A higher `level` is served first;
    /// equal levels in order of arrival.
    ///
    /// # Errors
    /// [`AcquireError::Full`] if all `W` slots are in use.
    #[inline]
    pub fn acquire(&self, level: u8) -> Result<(), AcquireError> {
        self.acquire_or(level, None)
    }

    /// Takes a unit like [`acquire`](Self::acquire), but does not sleep past `deadline`.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if there was none for the caller by then, [`AcquireError::Full`]
    /// if all `W` slots are in use.
    pub fn acquire_until(&self, level: u8, deadline: Instant) -> Result<(), AcquireError> {
        self.acquire_or(level, Some(deadline))
    }

    /// Takes a unit like [`acquire`](Self::acquire), to be returned by the caller. Also occupies
    /// one of the `W` slots.
    ///
    /// # Errors
    /// [`AcquireError::Full`] if all `W` slots are in use.
    pub fn hold(&self, level: u8) -> Result<Unit<'_, W>, AcquireError> {
        self.hold_or(level, None)
    }

    /// Takes a unit like [`hold`](Self::hold), but does not sleep past `deadline`.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if there was none for the caller by then, [`AcquireError::Full`]
    /// if all `W` slots are in use.
    pub fn hold_until(&self, level: u8, deadline: Instant) -> Result<Unit<'_, W>, AcquireError> {
        self.hold_or(level, Some(deadline))
    }

    /// Adds `units`, and wakes as many threads, the highest levels first.
    ///
    /// # Errors
    /// [`SignalError`] if more than [`MAX`](Self::MAX) units would be free; then none is added.
    #[inline]
    pub fn signal(&self, units: u32) -> Result<(), SignalError> {
        let mut word = self.units.0.load(Ordering::Relaxed);
        loop {
            let free = (word & FREE) as u32;
            if free.checked_add(units).is_none_or(|sum| sum > Self::MAX) {
                return Err(SignalError { added: units, free });
            }
            let sum = word + u64::from(units);
            // Release: the thread that gets the unit sees the signaler's earlier actions.
            // Sequentially consistent: for the load below.
            match self.units.0.compare_exchange_weak(word, sum, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        // loom treats such an access as acquire and release only, and models the order of fences
        // only.
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        // Sequentially consistent, after an exchange that is: needs no fence in between (S2), which
        // would be a second locked instruction on machines where the exchange is one.
        let waiting = self.waiting.0.load(Ordering::SeqCst);
        if waiting != 0 {
            self.call_first(waiting);
        }
        Ok(())
    }

    /// Returns the units of dead processes and frees their slots. In shared memory, asks the kernel
    /// which processes are alive. Waiting threads do this themselves; call it if you only use
    /// [`try_acquire`](Self::try_acquire).
    #[cold]
    pub fn recover(&self) {
        for (index, slot) in self.slots.iter().enumerate() {
            // This thread now owns the slot, as if its process had waited there or held a unit.
            if slot.claim.inherit(&self.home) {
                self.give_back(index);
                self.leave(index);
            }
        }
        // A dead process may have freed a unit, or left the line, without notifying any waiter.
        self.call();
    }

    #[inline]
    fn acquire_or(&self, level: u8, deadline: Option<Instant>) -> Result<(), AcquireError> {
        if self.try_acquire() { Ok(()) } else { self.acquire_in_line(level, deadline) }
    }

    /// Separate, so that taking a free unit saves no registers for it.
    #[cold]
    fn acquire_in_line(&self, level: u8, deadline: Option<Instant>) -> Result<(), AcquireError> {
        let index = self.claim().ok_or(AcquireError::Full)?;
        let result = self.wait(index, level, deadline, 0);
        self.leave(index);
        result
    }

    fn hold_or(&self, level: u8, deadline: Option<Instant>) -> Result<Unit<'_, W>, AcquireError> {
        let index = self.claim().ok_or(AcquireError::Full)?;
        // Frees the slot in every case.
        let unit = Unit { semaphore: self, index };
        if self.waiting() != 0 || !self.take_free(0, held(index)) {
            self.wait(index, level, deadline, held(index))?;
        }
        Ok(unit)
    }

    /// Waits in the caller's slot for a unit, which gets the bits `mark`, and stops waiting.
    fn wait(
        &self,
        index: usize,
        level: u8,
        deadline: Option<Instant>,
        mark: u64,
    ) -> Result<(), AcquireError> {
        let slot = &self.slots[index];
        let arrival = self.arrivals.fetch_add(1, Ordering::Relaxed);
        slot.level.store(level.into(), Ordering::Relaxed);
        slot.arrival.store(arrival, Ordering::Relaxed);
        // Release: a thread that determines the first in line reads the level and the arrival that
        // belong to the bit.
        self.waiting.0.fetch_or(1 << index, Ordering::Release);
        // A unit may have become free before its signaler could see this slot (S2).
        fence(Ordering::SeqCst);
        let result = loop {
            // Before the check. Acquire: a later notification wakes this thread; an earlier one is
            // seen.
            slot.is_notified.swap(0, Ordering::Acquire);
            if self.take_free(self.ahead_of(index), mark) {
                break Ok(());
            }
            match sleep::wait(&slot.is_notified, 0, deadline, &self.home) {
                Ok(sleep::Woken::Perhaps) => {}
                Ok(sleep::Woken::Late) => self.recover(),
                // A unit that came at the last moment still belongs to this thread.
                Err(_) if self.take_free(self.ahead_of(index), mark) => break Ok(()),
                Err(_) => break Err(AcquireError::TimedOut),
            }
        };
        self.waiting.0.fetch_and(!(1 << index), Ordering::Release);
        // Another thread may be first now (S2).
        self.call();
        result
    }

    /// Takes a free slot.
    fn claim(&self) -> Option<usize> {
        let free = || {
            self.slots.iter().position(|slot| !slot.claim.is_taken() && slot.claim.take(&self.home).is_ok())
        };
        free().or_else(|| {
            if self.home.is_shared() {
                self.recover();
            }
            free()
        })
    }

    /// Frees the caller's slot, in which no thread waits and which holds nothing, or in which a
    /// dead process waited.
    fn leave(&self, index: usize) {
        let bit = 1 << index;
        if self.waiting.0.load(Ordering::Relaxed) & bit != 0 {
            self.waiting.0.fetch_and(!bit, Ordering::Relaxed);
        }
        self.slots[index].claim.give_back(&self.home);
    }

    /// Frees the unit that the caller's slot holds, if any.
    fn give_back(&self, index: usize) {
        let mut word = self.units.0.load(Ordering::Relaxed);
        while word & held(index) != 0 {
            let given = (word & !held(index)) + 1;
            // Release: the next owner of the unit sees the actions of its last holder.
            match self.units.0.compare_exchange_weak(word, given, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Takes one of the free units, the first `ahead` of which belong to others, and sets the bits
    /// `mark` in the same step.
    #[inline]
    fn take_free(&self, ahead: u32, mark: u64) -> bool {
        let mut word = self.units.0.load(Ordering::Relaxed);
        while word & FREE > u64::from(ahead) {
            let taken = (word - 1) | mark;
            // Acquire: pairs with the releases that made units free.
            match self.units.0.compare_exchange_weak(word, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Notifies the threads that may get a unit now.
    #[inline]
    fn call(&self) {
        // Between the caller's change and the checks below (S2).
        fence(Ordering::SeqCst);
        // Relaxed: `ahead_of` acquires the data that belong to the bits.
        let waiting = self.waiting.0.load(Ordering::Relaxed);
        if waiting != 0 {
            self.call_first(waiting);
        }
    }

    #[cold]
    fn call_first(&self, waiting: u32) {
        for index in bits::<W>(waiting) {
            if self.ahead_of(index) < self.free() {
                let is_notified = &self.slots[index].is_notified;
                // Release: the thread sees the change it is notified of. If another thread has
                // notified it and it has not checked yet, it will see this too.
                if is_notified.swap(1, Ordering::Release) == 0 {
                    // The thread may have continued in the meantime, and another may sleep here: it
                    // checks, and sleeps again.
                    sleep::wake(is_notified, 1, &self.home);
                }
            }
        }
    }

    /// Returns the number of waiters ahead of the one in slot `index`.
    fn ahead_of(&self, index: usize) -> u32 {
        // Arrivals are compared by their distance from the latest, so the counter may wrap.
        let latest = self.arrivals.load(Ordering::Relaxed);
        let rank = |index: usize| {
            let slot = &self.slots[index];
            let age = latest.wrapping_sub(slot.arrival.load(Ordering::Relaxed));
            // If an arrival is newer than `latest`, its distance is huge, and it is the youngest.
            let age = if age > u32::MAX / 2 { 0 } else { age };
            (slot.level.load(Ordering::Relaxed), age, Reverse(index))
        };
        // Acquire: the levels and arrivals come with the bits.
        let others = self.waiting.0.load(Ordering::Acquire) & !(1 << index);
        let mine = rank(index);
        bits::<W>(others).filter(|&other| rank(other) > mine).count() as u32
    }
}

const fn is_possible(slots: usize) -> bool {
    slots >= 1 && slots <= 32
}

/// Returns the bit in `units` that marks slot `index` as holding a unit.
const fn held(index: usize) -> u64 {
    1 << (32 + index)
}

/// Returns the indices of the bits. Bits above the number of slots can only result from another
/// process's error.
fn bits<const W: usize>(mut word: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let index = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (index < W).then_some(index)
    })
}

impl Slot {
    crate::atomic::const_new! {
        fn new() -> Self {
            Self {
                claim: Claim::new(),
                is_notified: AtomicU32::new(0),
                level: AtomicU32::new(0),
                arrival: AtomicU32::new(0),
            }
        }
    }
}

/// A unit of a [`Semaphore`] that belongs to its holder. Dropping it, also while a panic unwinds,
/// returns it. If its process dies, others return it. A leaked unit stays taken for the lifetime of
/// its process.
#[must_use]
pub struct Unit<'a, const W: usize = 16> {
    semaphore: &'a Semaphore<W>,
    index: usize,
}

impl<const W: usize> Drop for Unit<'_, W> {
    fn drop(&mut self) {
        let Self { semaphore, index } = *self;
        if semaphore.slots[index].claim.is_own(&semaphore.home) {
            semaphore.give_back(index);
            semaphore.leave(index);
            semaphore.call();
        }
    }
}

impl<const W: usize> fmt::Debug for Unit<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unit").field("semaphore", self.semaphore).finish_non_exhaustive()
    }
}

// SAFETY: `repr(C)`, atomic words without pointers, for which zero means "no waiters", and another
// that is written here only. To S1–S3, which rely on atomics only, two processes are two threads.
#[cfg(not(loom))]
unsafe impl<const W: usize> super::Shareable for Semaphore<W> {
    const KIND: u32 = 6;
    const CAPACITY: usize = W;
    type Element = ();
    type Init = u32;

    unsafe fn write(this: *mut Self, units: u32) {
        let () = Self::CHECK;
        assert!(units <= Self::MAX, "too many units");
        // SAFETY: `this` is valid for writes by the contract of this function.
        unsafe {
            (&raw mut (*this).units).write(Padded(AtomicU64::new(units.into())));
            (&raw mut (*this).home).write(Home::here());
        }
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;

    const PAST: Option<Instant> = Some(Instant::from_ticks(1));

    #[test]
    fn rejects_initial_count_above_maximum() {
        let is_possible = |units| std::panic::catch_unwind(|| Semaphore::<1>::with_slots(units)).is_ok();
        assert_eq!(Semaphore::<1>::MAX, 0x7fff_ffff);
        assert_eq!([0, 0x7fff_ffff, 0x8000_0000].map(is_possible), [true, true, false]);
    }

    #[test]
    fn place_bits_do_not_overlap_count() {
        assert_eq!((0..32).map(held).fold(FREE, |all, bit| all + bit), u64::MAX);
    }

    /// A thread that came first, waits in the slot, and never runs.
    fn wait_forever<const W: usize>(semaphore: &Semaphore<W>, index: usize, level: u32) {
        let slot = &semaphore.slots[index];
        slot.claim.take(&semaphore.home).unwrap();
        slot.level.store(level, Ordering::Relaxed);
        slot.arrival.store(semaphore.arrivals.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        semaphore.waiting.0.fetch_or(1 << index, Ordering::Relaxed);
    }

    #[test]
    fn grants_by_priority_then_arrival() {
        for (level, gets) in [(1, false), (2, false), (3, true)] {
            for index in 0..2 {
                let semaphore = Semaphore::<2>::with_slots(1);
                wait_forever(&semaphore, index, 2);
                assert_eq!(semaphore.acquire_or(level, PAST).is_ok(), gets, "{level} with {index}");
                let semaphore = Semaphore::<2>::with_slots(1);
                wait_forever(&semaphore, index, 2);
                assert_eq!(semaphore.hold_or(level, PAST).is_ok(), gets, "{level} with {index}");
            }
        }
    }

    #[test]
    fn uncounted_arrival_is_youngest() {
        let semaphore = Semaphore::<2>::with_slots(1);
        wait_forever(&semaphore, 1, 2);
        semaphore.slots[1].arrival.store(3, Ordering::Relaxed);
        assert!(semaphore.acquire_or(2, PAST).is_ok());
    }

    #[test]
    fn ignores_bits_above_places() {
        assert!(bits::<2>(0b1111).eq([0, 1]));
        assert!(bits::<32>(1 << 31 | 1).eq([0, 31]));
        assert!(bits::<32>(0).eq([]));
    }

    #[test]
    fn recovery_notifies_waiter_of_a_lost_unit() {
        let semaphore = Semaphore::<2>::with_slots(0);
        wait_forever(&semaphore, 1, 1);
        // Signaled by a thread that died before it notified a waiter.
        semaphore.units.0.fetch_add(1, Ordering::Relaxed);
        semaphore.recover();
        let notified = semaphore.slots.each_ref().map(|slot| slot.is_notified.load(Ordering::Relaxed));
        assert_eq!(notified, [0, 1]);
    }

    /// By one who is preempted before it wakes anybody.
    #[test]
    #[cfg_attr(miri, ignore = "it reads of a thread in /proc")]
    fn takes_timely_unit_without_wake() {
        use crate::Duration;

        // A thread that is kept from its CPU adds the unit too late, and does so again.
        for milliseconds in [2, 20, 200, 2_000, 20_000] {
            let semaphore = Semaphore::<2>::with_slots(0);
            let deadline = crate::now() + Duration::from_millis(milliseconds);
            let (sender, thread) = std::sync::mpsc::channel();
            let (acquired, is_in_time) = std::thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    sender.send(rustix::thread::gettid()).unwrap();
                    semaphore.acquire_until(1, deadline)
                });
                let stat = format!("/proc/self/task/{}/stat", thread.recv().unwrap().as_raw_nonzero());
                let is_asleep = || std::fs::read_to_string(&stat).is_ok_and(|text| text.contains(") S "));
                while !(waiting.is_finished() || semaphore.waiting() == 1 && is_asleep()) {
                    std::thread::yield_now();
                }
                semaphore.units.0.fetch_add(1, Ordering::Release);
                let is_in_time = crate::now() < deadline;
                (waiting.join().unwrap(), is_in_time)
            });
            if is_in_time {
                assert_eq!(acquired, Ok(()));
                return;
            }
        }
        panic!("no unit was added in time");
    }

    #[test]
    fn accepts_1_to_32_places() {
        assert_eq!([0, 1, 32, 33].map(is_possible), [false, true, true, false]);
    }
}
