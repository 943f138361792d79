//! Until when the clock of a partition of [one thread](crate::OneThread) is not looked at: what whoever arms a timer compares with.
//!
//! On a machine of 32 bits it is in two halves, since 64 bits at once take a loop there, and a
//! [tick](crate::Partition::tick) stores it twice. So a reader may see halves of two times. It rings in vain then, but never fails to ring:
//!
//! * A tick stores [`NEVER`] first, has a fence, looks at what is armed, and stores the time that it has found. Whoever arms a timer has a
//!   fence between saying so and reading this. If it reads a half from before the `NEVER` of a tick, the fences have that tick see
//!   what is armed, and it need not ring for that.
//! * Of the last tick that does not see it, it therefore reads either half or both halves of `NEVER`, or of the time. `NEVER` has all bits
//!   set. So what it puts together is that time or a later one, and it rings for all that are earlier.

#[cfg(all(not(loom), target_pointer_width = "64"))]
use crate::atomic::AtomicU64;
use crate::atomic::Ordering;
#[cfg(any(loom, not(target_pointer_width = "64")))]
use crate::atomic::{AtomicU32, const_new};
use crate::timers::NEVER;

/// A time in ns.
#[derive(Debug)]
pub(crate) struct Alarm(
    // Models have the halves.
    #[cfg(any(loom, not(target_pointer_width = "64")))] [AtomicU32; 2],
    #[cfg(all(not(loom), target_pointer_width = "64"))] AtomicU64,
);

#[cfg(any(loom, not(target_pointer_width = "64")))]
impl Alarm {
    const_new! {
        /// As of a thread that is awake, and has not looked yet.
        pub(crate) fn new() -> Self {
            Self([AtomicU32::new(0), AtomicU32::new(0)])
        }
    }

    /// The time, or a later one if it is being changed.
    #[inline(always)]
    pub(crate) fn time(&self) -> u64 {
        let [low, high] = &self.0;
        u64::from(high.load(Ordering::Relaxed)) << 32 | u64::from(low.load(Ordering::Relaxed))
    }

    /// Changes it, by turns to [`NEVER`] and to a time.
    #[inline(always)]
    pub(crate) fn set(&self, time: u64) {
        let [low, high] = &self.0;
        low.store(time as u32, Ordering::Relaxed);
        high.store((time >> 32) as u32, Ordering::Relaxed);
    }
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
impl Alarm {
    /// As of a thread that is awake, and has not looked yet.
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The time.
    #[inline(always)]
    pub(crate) fn time(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes it.
    #[inline(always)]
    pub(crate) fn set(&self, time: u64) {
        self.0.store(time, Ordering::Relaxed);
    }
}

impl Alarm {
    /// Has everybody ring who arms anything.
    #[inline(always)]
    pub(crate) fn hide(&self) {
        self.set(NEVER);
    }
}
