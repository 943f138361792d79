//! A number of units that threads acquire and signal; a unit goes to the highest level that waits.
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
//! A unit is handed over: the signaller chooses the waiter, and the unit is the waiter's before it runs. So a thread of
//! a low level cannot snatch it, and a thread that times out at that moment still has it.
//!
//! The structure follows the semaphores that pass the baton (G. Andrews, "Concurrent Programming", 1991, section 4.4),
//! with a set of places instead of a queue so that nobody ever waits for a preempted thread.
//!
//! Real-time safety: nothing allocates. `try_acquire` and `signal` are lock-free: an attempt is repeated only if
//! another thread acquired, signalled, came or went meanwhile. One handover looks at `W` places at most. `signal` enters
//! the kernel once for each thread it wakes; `acquire` sleeps there unless a unit is free.
//!
//! # Invariants
//!
//! *S1* Units are neither made nor lost: each is counted in `free`, is in the hands of one thread inside
//! [`Semaphore::hand_on`], or lies in one `GRANTED` place until its owner takes it.
//! *S2* A free unit and a waiting thread never stay together. Whoever adds to `free` looks for waiters afterwards;
//! whoever starts to wait looks at `free` afterwards; sequentially consistent fences stand between, so that one of them
//! sees the other.
//! *S3* A place is used by one thread at a time. Its state carries a generation, so that a choice made for one thread
//! cannot fall to the next user of the place.

use core::cmp::Reverse;

use super::{AcquireError, Padded, SignalError, sleep};
use crate::Instant;
use crate::atomic::{AtomicU32, Ordering, fence};
use crate::seed::seeded;

/// The lower bits of a place's state; above them, its generation.
const STATE: u32 = 3;
const IDLE: u32 = 0;
const WAITING: u32 = 1;
const GRANTED: u32 = 2;
const GENERATION: u32 = 4;

/// A counting semaphore with places for `W` waiting threads, 32 at most.
#[derive(Debug)]
#[repr(C)]
pub struct Semaphore<const W: usize = 16> {
    free: Padded<AtomicU32>,
    /// The places in use, as bits.
    used: Padded<AtomicU32>,
    /// Orders those who wait at the same level.
    arrivals: AtomicU32,
    places: [Place; W],
}

#[derive(Debug)]
#[repr(C)]
struct Place {
    /// What the place's thread sleeps on.
    state: AtomicU32,
    level: AtomicU32,
    arrival: AtomicU32,
}

impl Semaphore {
    /// A semaphore with `units` free units and 16 places.
    #[cfg(not(loom))]
    pub const fn new(units: u32) -> Self {
        Self::with_places(units)
    }

    /// A semaphore with `units` free units and 16 places.
    #[cfg(loom)]
    pub fn new(units: u32) -> Self {
        Self::with_places(units)
    }
}

impl<const W: usize> Semaphore<W> {
    const CHECK: () = assert!(W >= 1 && W <= 32, "a semaphore has 1 to 32 places");

    /// The most units that can be free at once. Higher counts are left to the units in threads' hands.
    pub const MAX: u32 = u32::MAX / 2;

    /// A semaphore with `units` free units.
    ///
    /// # Panics
    /// If `units` is more than [`MAX`](Self::MAX).
    #[cfg(not(loom))]
    pub const fn with_places(units: u32) -> Self {
        let () = Self::CHECK;
        assert!(units <= Self::MAX, "too many units");
        let (free, used) = (Padded(AtomicU32::new(units)), Padded(AtomicU32::new(0)));
        Self { free, used, arrivals: AtomicU32::new(0), places: [const { Place::new() }; W] }
    }

    /// A semaphore with `units` free units.
    #[cfg(loom)]
    pub fn with_places(units: u32) -> Self {
        let () = Self::CHECK;
        let (free, used) = (Padded(AtomicU32::new(units)), Padded(AtomicU32::new(0)));
        Self { free, used, arrivals: AtomicU32::new(0), places: core::array::from_fn(|_| Place::new()) }
    }

    /// Units that are free, as far as one can tell while others use the semaphore.
    pub fn free(&self) -> u32 {
        self.free.0.load(Ordering::Relaxed)
    }

    /// Threads that wait, as far as one can tell while others use the semaphore.
    pub fn waiting(&self) -> usize {
        self.waiters().count()
    }

    /// Takes a unit if one is free and nobody waits for it.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.waiters().next().is_none() && self.take_free()
    }

    /// Takes a unit, sleeping until there is one for the caller. A higher `level` is served first; among equals, who
    /// came first.
    ///
    /// # Errors
    /// [`AcquireError::Full`] if `W` threads wait already.
    pub fn acquire(&self, level: u8) -> Result<(), AcquireError> {
        self.acquire_or(level, None)
    }

    /// Takes a unit like [`acquire`](Self::acquire), but sleeps not past `deadline`.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if there was none for the caller by then, [`AcquireError::Full`] if `W` threads
    /// wait already.
    pub fn acquire_until(&self, level: u8, deadline: Instant) -> Result<(), AcquireError> {
        self.acquire_or(level, Some(deadline))
    }

    /// Adds `units`, and wakes as many threads, the highest levels first.
    ///
    /// # Errors
    /// [`SignalError`] if more than [`MAX`](Self::MAX) units would be free; then none is added.
    pub fn signal(&self, units: u32) -> Result<(), SignalError> {
        let mut free = self.free.0.load(Ordering::Relaxed);
        loop {
            let sum = free.checked_add(units).filter(|&sum| sum <= Self::MAX);
            let Some(sum) = sum else { return Err(SignalError { added: units, free }) };
            // Release: whoever gets the unit sees what the signaller did before.
            match self.free.0.compare_exchange_weak(free, sum, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => free = now,
            }
        }
        self.serve();
        Ok(())
    }

    fn acquire_or(&self, level: u8, deadline: Option<Instant>) -> Result<(), AcquireError> {
        if self.try_acquire() {
            return Ok(());
        }
        let index = self.claim().ok_or(AcquireError::Full)?;
        let place = &self.places[index];
        let arrival = self.arrivals.fetch_add(1, Ordering::Relaxed);
        place.level.store(level.into(), Ordering::Relaxed);
        place.arrival.store(arrival, Ordering::Relaxed);
        let idle = place.state.load(Ordering::Relaxed) & !STATE;
        let waiting = idle.wrapping_add(GENERATION) | WAITING;
        // Release: whoever chooses this place reads the level and the arrival that belong to the state.
        place.state.store(waiting, Ordering::Release);
        // A unit may have become free before its signaller could see this place (S2).
        self.serve();

        let mut result = Ok(());
        loop {
            // Acquire: pairs with the release of the grant.
            if place.state.load(Ordering::Acquire) != waiting {
                break;
            }
            // A grant changes the word, so one that comes between the look and the sleep is noticed.
            if sleep::wait(&place.state, waiting, deadline).is_err() {
                let withdrawn = waiting & !STATE | IDLE;
                let exchange = if seeded!("seed-semaphore-leave-blindly") {
                    Ok(place.state.swap(withdrawn, Ordering::Relaxed))
                } else {
                    // Acquire on failure: the unit was granted at the last moment.
                    place.state.compare_exchange(waiting, withdrawn, Ordering::Relaxed, Ordering::Acquire)
                };
                if exchange.is_ok() {
                    result = Err(AcquireError::TimedOut);
                }
                break;
            }
        }
        place.state.store(waiting & !STATE | IDLE, Ordering::Relaxed);
        // Release: the next user of the place finds it idle.
        self.used.0.fetch_and(!(1 << index), Ordering::Release);
        result
    }

    /// Takes a free place.
    fn claim(&self) -> Option<usize> {
        let mut used = self.used.0.load(Ordering::Relaxed);
        loop {
            let index = used.trailing_ones() as usize;
            if index >= W {
                return None;
            }
            // Acquire: the place's last user has finished with it.
            match self.used.0.compare_exchange_weak(
                used,
                used | 1 << index,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(index),
                Err(now) => used = now,
            }
        }
    }

    /// Hands out free units while there are any and somebody waits.
    fn serve(&self) {
        if !seeded!("seed-semaphore-unfenced") {
            // Between what the caller made known and the looks below (S2).
            fence(Ordering::SeqCst);
        }
        while self.waiters().next().is_some() && self.take_free() {
            self.hand_on();
        }
    }

    /// Gives a unit that is in the caller's hands to the first in line, or makes it free.
    fn hand_on(&self) {
        while let Some((index, state)) = self.first() {
            let place = &self.places[index];
            let granted = state & !STATE | GRANTED;
            // Acquire and release: the unit is passed on with what its signaller did.
            let exchange = place.state.compare_exchange(state, granted, Ordering::AcqRel, Ordering::Relaxed);
            if exchange.is_ok() {
                // The thread may have gone on meanwhile, and another may sleep here: it looks, and sleeps again.
                sleep::wake(&place.state, 1);
                return;
            }
        }
        self.free.0.fetch_add(1, Ordering::Release);
        // Somebody may have come who saw no free unit; `serve` looks again, behind a fence (S2).
        fence(Ordering::SeqCst);
    }

    fn take_free(&self) -> bool {
        let mut free = self.free.0.load(Ordering::Relaxed);
        while free > 0 {
            // Acquire: pairs with the releases that made units free.
            match self.free.0.compare_exchange_weak(free, free - 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => free = now,
            }
        }
        false
    }

    /// The places where threads wait, with their states.
    fn waiters(&self) -> impl Iterator<Item = (usize, u32)> {
        let mut used = self.used.0.load(Ordering::Relaxed);
        core::iter::from_fn(move || {
            while used != 0 {
                let index = used.trailing_zeros() as usize;
                used &= used - 1;
                // A bit beyond the places can only come from another process's error.
                let state = self.places.get(index)?.state.load(Ordering::Acquire);
                if state & STATE == WAITING {
                    return Some((index, state));
                }
            }
            None
        })
    }

    /// The place of the highest level, and among equals the earliest arrival.
    fn first(&self) -> Option<(usize, u32)> {
        // Arrivals are compared by their distance from the latest, so the counter may wrap.
        let latest = self.arrivals.load(Ordering::Relaxed);
        self.waiters().max_by_key(|&(index, _)| {
            let place = &self.places[index];
            let age = latest.wrapping_sub(place.arrival.load(Ordering::Relaxed));
            // If an arrival is newer than `latest`, its distance is huge, and it is the youngest.
            let age = if age > u32::MAX / 2 { 0 } else { age };
            (place.level.load(Ordering::Relaxed), age, Reverse(index))
        })
    }
}

impl Place {
    crate::atomic::const_new! {
        fn new() -> Self {
            Self { state: AtomicU32::new(IDLE), level: AtomicU32::new(0), arrival: AtomicU32::new(0) }
        }
    }
}

// SAFETY: `repr(C)`, atomic words without pointers, for which zero is "nobody waits". Two processes are two threads to
// S1–S3, which rest on atomics alone.
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
        unsafe { (&raw mut (*this).free).write(Padded(AtomicU32::new(units))) };
    }
}
