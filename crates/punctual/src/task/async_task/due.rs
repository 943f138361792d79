//! Due time of the timer whose wake is in progress.
//!
//! A thread has at most one such timer. On a bare board an interrupt handler may run jobs during a
//! timer's wake, as the same thread. These jobs have higher levels, so the level identifies the
//! wake.

#[cfg(feature = "std")]
use core::cell::Cell;
#[cfg(not(feature = "std"))]
use core::sync::atomic::{Ordering, compiler_fence};

#[cfg(not(feature = "std"))]
use crate::port::board::PerCore;

#[cfg(feature = "std")]
thread_local! {
    /// In ns.
    static TIME: Cell<u64> = const { Cell::new(0) };
    /// The level of the timer; 0 if none exists.
    static LEVEL: Cell<u8> = const { Cell::new(0) };
}
#[cfg(not(feature = "std"))]
static TIME: PerCore<u64> = PerCore::new(0);
#[cfg(not(feature = "std"))]
static LEVEL: PerCore<u8> = PerCore::new(0);

/// Runs `f`, in which a job of `level` is woken by a timer that was due at `time`, in ns.
pub(super) fn during(level: u8, time: u64, f: impl FnOnce()) {
    let _outer = Outer { level: LEVEL.get(), time: TIME.get() };
    set(level, time);
    f();
}

/// Returns whether a wake by a job is a wake by a timer; `level` returns the level of the job.
#[inline]
pub(super) fn is_set(level: impl FnOnce() -> u8) -> bool {
    match LEVEL.get() {
        0 => false,
        of => cfg!(feature = "std") || of == level(),
    }
}

/// Returns the due time, in ns, of a job's wake that comes from a timer. Further wakes by the woken
/// task are not timed.
#[inline]
pub(super) fn take(level: impl FnOnce() -> u8) -> Option<u64> {
    is_set(level).then(|| {
        LEVEL.set(0);
        TIME.get()
    })
}

fn set(level: u8, time: u64) {
    // An interrupt in between finds none, and restores the previous state.
    LEVEL.set(0);
    #[cfg(not(feature = "std"))]
    compiler_fence(Ordering::SeqCst);
    TIME.set(time);
    #[cfg(not(feature = "std"))]
    compiler_fence(Ordering::SeqCst);
    LEVEL.set(level);
}

/// Restores the previous state on return and on unwinding.
struct Outer {
    level: u8,
    time: u64,
}

impl Drop for Outer {
    fn drop(&mut self) {
        set(self.level, self.time);
    }
}
