//! Reads `CLOCK_MONOTONIC`, without entering the kernel if the vDSO allows it.

use punctual_core::Instant;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the current time, in ns since boot (excluding suspend).
#[inline]
pub(crate) fn now() -> Instant {
    Instant::from_ticks(nanos(clock_gettime(ClockId::Monotonic)))
}

/// Returns the CPU time consumed by the calling thread, in ns. Enters the kernel.
pub(crate) fn thread_cpu_time() -> u64 {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// Returns the CPU time consumed by a thread of this process, in ns; `None` if there is no such
/// thread. Enters the kernel.
pub(crate) fn cpu_time_of(thread: u32) -> Option<u64> {
    // As in `clock_getcpuclockid(3)`: the complement of the TID, the flag for a single thread, and
    // the scheduler's clock.
    const PER_THREAD: libc::clockid_t = 4;
    const SCHED: libc::clockid_t = 2;
    let id = !libc::clockid_t::try_from(thread).ok()? << 3 | PER_THREAD | SCHED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live `timespec`.
    match unsafe { libc::clock_gettime(id, &mut time) } {
        0 => Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => None,
    }
}

/// Converts to the kernel's representation.
pub(crate) fn timespec(instant: Instant) -> Timespec {
    let ticks = instant.as_ticks();
    Timespec { tv_sec: (ticks / 1_000_000_000) as i64, tv_nsec: (ticks % 1_000_000_000) as _ }
}

#[inline]
fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
