//! Sleeping on a word until another thread or process changes it.
//!
//! These are kernel futexes without the private flag if the word is in memory shared by processes,
//! and with it otherwise, which spares the kernel the page lookup; `futex::calls` counts those in
//! `crate::futex` only. The kernel compares the word and queues the sleeper in one step, so a
//! change between the caller's check of the word and its sleep is not missed. Under loom, the
//! model's own queue replaces the kernel.
//!
//! A process may die before it wakes a sleeper. So in shared memory a thread sleeps for at most
//! [`NAP`] before it checks the word and the processes again.

use super::TimedOut;
use super::owner::Home;
use crate::Instant;
use crate::atomic::AtomicU32;

/// The longest single sleep in shared memory.
#[cfg(not(loom))]
const NAP: crate::Duration = crate::Duration::from_millis(50);

/// The reason a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// The word differs from the expected value, or the wake-up is spurious.
    Perhaps,
    /// The sleep timed out, so the sleeper should check which processes are alive.
    Late,
}

/// Sleeps while `word` is `expected`, but not past `deadline` (`CLOCK_MONOTONIC`). May return
/// early.
///
/// # Errors
/// [`TimedOut`] if the deadline passed.
#[cfg(not(loom))]
pub(super) fn wait(
    word: &AtomicU32,
    expected: u32,
    deadline: Option<Instant>,
    home: &Home,
) -> Result<Woken, TimedOut> {
    use core::num::NonZeroU32;
    use rustix::io::Errno;
    use rustix::thread::futex;

    let nap = home.is_shared().then(|| crate::now() + NAP);
    let until = deadline.into_iter().chain(nap).min();
    let timespec = until.map(timespec);
    match futex::wait_bitset(word, flags(home), expected, timespec.as_ref(), NonZeroU32::MAX) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(Woken::Perhaps),
        Err(Errno::TIMEDOUT) if until != deadline => Ok(Woken::Late),
        Err(Errno::TIMEDOUT) => Err(TimedOut),
        Err(error) => panic!("the kernel refuses to wait on a futex: {error}"),
    }
}

/// Converts an instant to the kernel's format. Every number of ns fits, since the kernel counts
/// signed seconds in 64 bits.
#[cfg(not(loom))]
fn timespec(instant: Instant) -> rustix::thread::futex::Timespec {
    const NS: u64 = 1_000_000_000;
    rustix::thread::futex::Timespec {
        tv_sec: (instant.as_ticks() / NS) as i64,
        tv_nsec: (instant.as_ticks() % NS) as _,
    }
}

/// Wakes up to `count` threads that sleep on `word` with this `home`.
#[cfg(not(loom))]
pub(super) fn wake(word: &AtomicU32, count: u32, home: &Home) {
    // The kernel takes a signed count. It fails only for an unreadable address, which is impossible
    // here.
    let _ = rustix::thread::futex::wake(word, flags(home), count.min(i32::MAX as u32));
}

/// Returns the flags, the same for sleeping and waking: the kernel identifies a private futex by
/// its address in the process, any other by its page.
#[cfg(not(loom))]
fn flags(home: &Home) -> rustix::thread::futex::Flags {
    use rustix::thread::futex::Flags;

    if home.is_private() { Flags::PRIVATE } else { Flags::empty() }
}

#[cfg(loom)]
pub(super) use model::{asleep, wait, wake};

#[cfg(loom)]
mod model {
    use loom::sync::{Condvar, Mutex};

    use super::{AtomicU32, Home, Instant, TimedOut, Woken};
    use crate::atomic::Ordering;

    #[derive(Default)]
    struct Sleepers {
        /// The word and the number of the sleep.
        asleep: Vec<(usize, u32)>,
        sleeps: u32,
    }

    loom::lazy_static! {
        static ref KERNEL: (Mutex<Sleepers>, Condvar) = (Mutex::new(Sleepers::default()), Condvar::new());
    }

    fn key(word: &AtomicU32) -> usize {
        core::ptr::from_ref(word).addr()
    }

    /// A deadline has always just passed: loom tries it at every moment.
    pub(in super::super) fn wait(
        word: &AtomicU32,
        expected: u32,
        deadline: Option<Instant>,
        home: &Home,
    ) -> Result<Woken, TimedOut> {
        let mut sleepers = KERNEL.0.lock().unwrap();
        if word.load(Ordering::Relaxed) != expected {
            return Ok(Woken::Perhaps);
        }
        if deadline.is_some() {
            return Err(TimedOut);
        }
        if home.is_shared() {
            // The same holds for naps: each one has just passed.
            drop(sleepers);
            loom::thread::yield_now();
            return Ok(Woken::Late);
        }
        sleepers.sleeps += 1;
        let me = (key(word), sleepers.sleeps);
        sleepers.asleep.push(me);
        while sleepers.asleep.contains(&me) {
            sleepers = KERNEL.1.wait(sleepers).unwrap();
        }
        Ok(Woken::Perhaps)
    }

    pub(in super::super) fn wake(word: &AtomicU32, count: u32, _: &Home) {
        let mut sleepers = KERNEL.0.lock().unwrap();
        let mut left = count;
        sleepers.asleep.retain(|sleeper| {
            let woken = sleeper.0 == key(word) && left > 0;
            left -= u32::from(woken);
            !woken
        });
        KERNEL.1.notify_all();
    }

    /// Returns the number of sleeping threads.
    pub(crate) fn asleep() -> usize {
        KERNEL.0.lock().unwrap().asleep.len()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn joins_seconds_and_nanoseconds_to_instant() {
        for ns in [0, 1, 999_999_999, 1_000_000_000, 17_000_000_001, u64::MAX] {
            let spec = timespec(Instant::from_ticks(ns));
            assert!((0..1_000_000_000).contains(&spec.tv_nsec));
            assert_eq!(spec.tv_sec as u64 * 1_000_000_000 + spec.tv_nsec as u64, ns);
        }
    }
}
