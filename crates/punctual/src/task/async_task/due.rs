//! Due time of the timer whose wake is in progress.
//!
//! A thread has at most one such timer. On a bare board an interrupt handler may run jobs during a
//! timer's wake, as the same thread. These jobs have higher levels, so the level identifies the
//! wake.

use core::sync::atomic::{Ordering, compiler_fence};

use crate::port::per_thread;

per_thread! {
    /// In ns.
    static TIME: u64 = 0;
    /// The level of the timer; 0 if none exists.
    static LEVEL: u8 = 0;
}

/// True if a handler may run jobs as the thread that it has interrupted.
const IS_INTERRUPTED: bool = cfg!(not(feature = "std"));

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
        of => !IS_INTERRUPTED || of == level(),
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
    let fence = || {
        if IS_INTERRUPTED {
            compiler_fence(Ordering::SeqCst);
        }
    };
    LEVEL.set(0);
    fence();
    TIME.set(time);
    fence();
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
