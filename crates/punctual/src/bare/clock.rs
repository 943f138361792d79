//! The clock of an app: the board's. With the feature `virtual-time`, one that jumps if the app's configuration says so, and one that
//! ends the app at a time.

#[cfg(feature = "virtual-time")]
use core::sync::atomic::{AtomicU64, Ordering};

use super::board;
#[cfg(feature = "virtual-time")]
use super::{current, stop::StopReason, virtual_time};

/// When the app ends, in ns; `u64::MAX` if it does not.
#[cfg(feature = "virtual-time")]
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// The time, in ns.
#[inline(always)]
pub(crate) fn now() -> u64 {
    #[cfg(feature = "virtual-time")]
    if virtual_time::is_on() {
        return virtual_time::now();
    }
    board::now()
}

/// Has the timer's handler called at a time, in ns; never if it is `u64::MAX`.
#[inline(always)]
pub(crate) fn alarm(time: u64) {
    #[cfg(feature = "virtual-time")]
    if virtual_time::is_on() {
        // Whoever moves the clock looks what is due.
        return;
    }
    #[cfg(feature = "virtual-time")]
    let time = time.min(limit());
    board::alarm(time);
}

/// When the app ends.
#[cfg(feature = "virtual-time")]
pub(crate) fn limit() -> u64 {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets that.
#[cfg(feature = "virtual-time")]
pub(crate) fn set_limit(limit: u64) {
    LIMIT.store(limit, Ordering::Relaxed);
}

/// Stops the app if its time is up. For the handler of the timer.
#[inline(always)]
pub(crate) fn look_at_limit() {
    #[cfg(feature = "virtual-time")]
    if limit() <= now()
        && let Some(partition) = current::partition()
    {
        set_limit(u64::MAX);
        partition.runtime.stop(&StopReason::TimeUp);
    }
}
