//! The Linux kernel.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::{Errno, Result};
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;

use super::selector::unwatched;
use crate::time::Instant;

const ANY: NonZeroU32 = NonZeroU32::MAX;

std::thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of futex system calls that the calling thread has made through this crate.
/// Never enters the kernel.
pub fn calls() -> u64 {
    CALLS.get()
}

fn count() {
    CALLS.set(CALLS.get() + 1);
}

/// Returns the caller's TID. Makes a system call.
pub(crate) fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

fn timespec(instant: Instant) -> Timespec {
    let ticks = instant.as_ticks();
    Timespec { tv_sec: (ticks / 1_000_000_000) as i64, tv_nsec: (ticks % 1_000_000_000) as _ }
}

/// Sleeps while `word` is `expected`, up to `until`. May return early for any reason: the caller
/// rechecks its condition.
pub(crate) fn wait(word: &AtomicU32, expected: u32, until: Option<Instant>) {
    let timeout = until.map(timespec);
    count();
    // A changed word, a signal and the timeout are all reasons to check again.
    let _ = futex::wait_bitset(word, Flags::PRIVATE, expected, timeout.as_ref(), ANY);
}

/// Wakes up to `threads` threads that sleep on `word`.
pub(crate) fn wake(word: &AtomicU32, threads: u32) {
    count();
    // A waiter that has gone counts as woken.
    let _ = futex::wake(word, Flags::PRIVATE, threads);
}

/// Waits until the calling thread owns `word`, lending its priority to the owner.
pub(crate) fn lock_pi(word: &AtomicU32) -> Result<()> {
    loop {
        count();
        match unwatched(|| futex::lock_pi(word, Flags::PRIVATE, None)) {
            Ok(()) => {
                // The kernel wrote the word, after the previous owner released it.
                word.load(Ordering::Acquire);
                return Ok(());
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(refused) => return Err(refused),
        }
    }
}

/// Passes `word`, which the calling thread owns, to the highest-priority waiter, or frees it.
pub(crate) fn unlock_pi(word: &AtomicU32) -> Result<()> {
    // The kernel writes the word, which publishes all earlier writes. ThreadSanitizer does not see
    // that.
    #[cfg(thread_sanitizer)]
    word.fetch_or(0, Ordering::Release);
    loop {
        count();
        match unwatched(|| futex::unlock_pi(word, Flags::PRIVATE)) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_instant_into_seconds_and_nanoseconds() {
        for (ticks, parts) in [
            (999_999_999, (0, 999_999_999)),
            (1_000_000_000, (1, 0)),
            (5_000_000_000, (5, 0)),
            (1_999_999_999_999, (1_999, 999_999_999)),
        ] {
            let Timespec { tv_sec, tv_nsec } = timespec(Instant::from_ticks(ticks));
            assert_eq!((tv_sec, tv_nsec), parts);
        }
    }
}
