//! The clock of an app: the board's. With the feature `virtual-time`, optionally a virtual clock,
//! and a time limit for the app.

#[cfg(feature = "virtual-time")]
use core::sync::atomic::{AtomicU64, Ordering};

use super::board;
#[cfg(feature = "virtual-time")]
use super::{current, stop::StopReason, virtual_time};

/// End of the app, in ns; `u64::MAX` for none.
#[cfg(feature = "virtual-time")]
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Returns the time, in ns.
#[inline(always)]
pub(crate) fn now() -> u64 {
    #[cfg(feature = "virtual-time")]
    if virtual_time::is_on() {
        return virtual_time::now();
    }
    board::now()
}

/// Sets the time of the timer's interrupt, in ns; never if it is `u64::MAX`.
#[inline(always)]
pub(crate) fn alarm(time: u64) {
    #[cfg(feature = "virtual-time")]
    if virtual_time::is_on() {
        // The code that moves the virtual clock checks for due releases.
        return;
    }
    #[cfg(feature = "virtual-time")]
    let time = time.min(limit());
    board::alarm(time);
}

/// Returns the end of the app.
#[cfg(feature = "virtual-time")]
pub(crate) fn limit() -> u64 {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets the end of the app.
#[cfg(feature = "virtual-time")]
pub(crate) fn set_limit(limit: u64) {
    LIMIT.store(limit, Ordering::Relaxed);
}

/// Stops the app if its time limit is reached. For the timer's handler.
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
