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

#[cfg(not(loom))]
use crate::atomic::Halves as Number;
// Models have the halves on every machine.
#[cfg(loom)]
use crate::atomic::Split as Number;
use crate::atomic::const_new;
use crate::timers::NEVER;

/// A time in ns.
#[derive(Debug)]
pub(crate) struct Alarm(Number);

impl Alarm {
    const_new! {
        /// As of a thread that is awake, and has not looked yet.
        pub(crate) fn new() -> Self {
            Self(Number::new(0))
        }
    }

    /// The time, or a later one if it is being changed.
    #[inline(always)]
    pub(crate) fn time(&self) -> u64 {
        self.0.load()
    }

    /// Changes it, by turns to [`NEVER`] and to a time.
    #[inline(always)]
    pub(crate) fn set(&self, time: u64) {
        self.0.store(time);
    }

    /// Has everybody ring who arms anything.
    #[inline(always)]
    pub(crate) fn hide(&self) {
        self.set(NEVER);
    }
}
