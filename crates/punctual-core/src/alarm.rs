//! The time until which a partition of [one thread](crate::OneThread) need not check its clock. A
//! thread that arms a timer compares with it.
//!
//! On 32-bit machines the time is stored as two words, since a 64-bit store requires a loop there,
//! and a [tick](crate::Partition::tick) stores it twice. So a reader may see words of two different
//! times. This can cause a spurious doorbell, but never a missed one:
//!
//! * A tick stores [`NEVER`], executes a fence, reads the armed timers, and stores the earliest
//!   time. A thread that arms a timer executes a fence between publishing the timer and reading the
//!   alarm. If it reads a word from before the `NEVER` of a tick, the fences guarantee that this
//!   tick sees the timer, and no doorbell is needed.
//! * Of the last tick that does not see the timer, it therefore reads each word either from `NEVER`
//!   or from the stored time. `NEVER` has all bits set. So the combined value is that time or a
//!   later one, and the doorbell rings for every earlier timer.

#[cfg(not(loom))]
use crate::atomic::Halves as Number;
// The models use two words on every machine.
#[cfg(loom)]
use crate::atomic::Split as Number;
use crate::atomic::const_new;
use crate::timers::NEVER;

/// A time in ns.
#[derive(Debug)]
pub(crate) struct Alarm(Number);

impl Alarm {
    const_new! {
        /// The initial state: the thread is awake and has not checked its timers yet.
        pub(crate) fn new() -> Self {
            Self(Number::new(0))
        }
    }

    /// Returns the time, or a later one if it is being changed.
    #[inline(always)]
    pub(crate) fn time(&self) -> u64 {
        self.0.load()
    }

    /// Sets the time. Calls alternate between [`NEVER`] and a time.
    #[inline(always)]
    pub(crate) fn set(&self, time: u64) {
        self.0.store(time);
    }

    /// Makes every thread that arms a timer ring the doorbell.
    #[inline(always)]
    pub(crate) fn hide(&self) {
        self.set(NEVER);
    }
}
