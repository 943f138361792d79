//! Noticing jobs that suspend themselves.
//!
//! The kernel counts a thread's voluntary context switches. The runtime's own sleeps are taken out by reading the count
//! after each, and its waits for locks by counting them. What remains at the end of a job is the job's doing: a blocking
//! system call, a page read from disk, a foreign lock. Reading the count costs a system call, so it is skipped after a job
//! too short to have slept and woken.

use std::cell::Cell;

use punctual_core::Duration;

/// No kernel switches away from a thread and back in less; measured 1.9 µs one way on a virtual machine.
pub(crate) const MIN_SWITCH_TIME: Duration = Duration::from_micros(2);

thread_local! {
    static ACCOUNTED: Cell<i64> = const { Cell::new(0) };
}

/// Accounts for all switches of this thread so far: the runtime itself slept.
pub(crate) fn slept() {
    ACCOUNTED.set(voluntary_switches());
}

/// The number of voluntary switches of this thread since the last call of this or of [`slept`].
pub(crate) fn since() -> u64 {
    let now = voluntary_switches();
    (now - ACCOUNTED.replace(now)).max(0) as u64
}

/// Accounts for the next `count` switches of this thread: it has waited for locks of the app, which is blocking.
pub(crate) fn blocked(count: u32) {
    ACCOUNTED.set(ACCOUNTED.get() + i64::from(count));
}

fn voluntary_switches() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live `rusage`, which the call fills; all-zero is a valid one besides.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nvcsw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yielding_to_the_kernel_is_noticed_and_computing_is_not() {
        slept();
        assert_eq!(since(), 0);
        // A time-out in the past may sleep for an instant; one in the future surely sleeps.
        let _ = rustix::thread::nanosleep(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 1_000 });
        assert!(since() >= 1);
        assert_eq!(since(), 0);
    }
}
