//! The time: `CLOCK_MONOTONIC`, read without entering the kernel where the vDSO allows it.

use punctual_core::Instant;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Now, in ns since boot (not counting suspend).
#[inline]
pub(crate) fn now() -> Instant {
    Instant::from_ticks(nanos(clock_gettime(ClockId::Monotonic)))
}

/// CPU time consumed by the calling thread, in ns. Enters the kernel.
pub(crate) fn thread_cpu_time() -> u64 {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// The same point in time for the kernel.
pub(crate) fn timespec(instant: Instant) -> Timespec {
    let ticks = instant.as_ticks();
    Timespec { tv_sec: (ticks / 1_000_000_000) as i64, tv_nsec: (ticks % 1_000_000_000) as _ }
}

#[inline]
fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
