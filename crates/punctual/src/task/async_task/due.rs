//! When the timer that wakes at this moment was due.
//!
//! A thread has at most one such timer. On a bare board the handler of an interrupt may run jobs in the midst of a timer's wake,
//! as the same thread. These jobs have higher levels, so the level says whose wake it is.

#[cfg(feature = "std")]
use core::cell::Cell;
#[cfg(not(feature = "std"))]
use core::sync::atomic::{Ordering, compiler_fence};

#[cfg(not(feature = "std"))]
use crate::app::per_core::PerCore;

#[cfg(feature = "std")]
thread_local! {
    /// In ns.
    static TIME: Cell<u64> = const { Cell::new(0) };
    /// The level of the timer; 0 if there is none.
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

/// Whether what is woken by a job is woken by a timer; `level` tells that of the job.
#[inline]
pub(super) fn is_set(level: impl FnOnce() -> u8) -> bool {
    match LEVEL.get() {
        0 => false,
        of => cfg!(feature = "std") || of == level(),
    }
}

/// When what is woken by a job was to be woken, in ns, if a timer wakes it. What that wakes in turn is woken now.
#[inline]
pub(super) fn take(level: impl FnOnce() -> u8) -> Option<u64> {
    is_set(level).then(|| {
        LEVEL.set(0);
        TIME.get()
    })
}

fn set(level: u8, time: u64) {
    // An interrupt in between finds none, and leaves behind what it has found.
    LEVEL.set(0);
    #[cfg(not(feature = "std"))]
    compiler_fence(Ordering::SeqCst);
    TIME.set(time);
    #[cfg(not(feature = "std"))]
    compiler_fence(Ordering::SeqCst);
    LEVEL.set(level);
}

/// Restores what was before, on the way out, also of a panic.
struct Outer {
    level: u8,
    time: u64,
}

impl Drop for Outer {
    fn drop(&mut self) {
        set(self.level, self.time);
    }
}
