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

/// CPU time consumed by a thread of this process, in ns; `None` if there is no such thread. Enters the kernel.
pub(crate) fn cpu_time_of(thread: u32) -> Option<u64> {
    // `clock_getcpuclockid(3)`: the complement of the thread's number, whether it is about one thread, and the scheduler's clock.
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

/// The same point in time for the kernel.
pub(crate) fn timespec(instant: Instant) -> Timespec {
    let ticks = instant.as_ticks();
    Timespec { tv_sec: (ticks / 1_000_000_000) as i64, tv_nsec: (ticks % 1_000_000_000) as _ }
}

#[inline]
fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
