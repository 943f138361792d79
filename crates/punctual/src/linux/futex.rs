//! Sleeping and waking by futex.
//!
//! A worker's `signal` is [`AWAKE`], [`ASLEEP`], [`SIGNALLED`] or [`CALLED`]. A wake enters the kernel only when it
//! finds `ASLEEP`; a wake that comes before the sleep leaves `SIGNALLED`, which makes the sleep return. A thread that must
//! not enter the kernel leaves `CALLED` instead, for a helper thread that looks for it ([`wake_called`]).
//! Time-outs are absolute on `CLOCK_MONOTONIC`, so a preempted worker does not sleep longer for it.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_core::{Instant, Worker};
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use super::{clock, polling, suspension};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const SIGNALLED: u32 = 2;
const CALLED: u32 = 3;

const ANY: NonZeroU32 = NonZeroU32::MAX;

/// See [`Port::wake`](punctual_core::Port::wake).
#[inline]
pub(crate) fn wake(worker: &Worker) {
    if matches!(worker.signal.swap(SIGNALLED, Ordering::AcqRel), ASLEEP | CALLED) {
        wake_sleeping(worker);
    }
}

#[inline(never)]
fn wake_sleeping(worker: &Worker) {
    if polling::is_mine() {
        // Unless it has woken by itself meanwhile, and then it looks.
        let _ = worker.signal.compare_exchange(SIGNALLED, CALLED, Ordering::AcqRel, Ordering::Relaxed);
    } else {
        // Nobody there any more is as good as woken.
        let _ = futex::wake(&worker.signal, Flags::PRIVATE, 1);
    }
}

/// Wakes `worker` if a thread that must not enter the kernel wants it woken; returns whether it did.
pub(crate) fn wake_called(worker: &Worker) -> bool {
    let called = worker.signal.load(Ordering::Relaxed) == CALLED;
    if called {
        wake(worker);
    }
    called
}

/// See [`Port::wait`](punctual_core::Port::wait).
pub(crate) fn wait(worker: &Worker, until: Option<Instant>) {
    let signal = &worker.signal;
    if signal.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        let timeout = until.map(clock::timespec);
        // Whether woken, timed out, interrupted or not even asleep: the caller looks for itself.
        let _ = futex::wait_bitset(signal, Flags::PRIVATE, ASLEEP, timeout.as_ref(), ANY);
        suspension::slept();
    }
    // Not a store, whose effect may come after the caller's look, so that it wipes out a wake that the look did not see
    // yet. A wake is either before this, and the look sees what it was about, or after it, and stays for the next wait.
    signal.swap(AWAKE, Ordering::AcqRel);
}

/// See [`Port::wait_turn`](punctual_core::Port::wait_turn).
pub(crate) fn wait_turn(turn: &AtomicU32, seen: u32) {
    let _ = futex::wait(turn, Flags::PRIVATE, seen, None);
    suspension::slept();
}

/// See [`Port::wake_turn`](punctual_core::Port::wake_turn).
pub(crate) fn wake_turn(turn: &AtomicU32) {
    let _ = futex::wake(turn, Flags::PRIVATE, i32::MAX as u32);
}

/// See [`Port::lend`](punctual_core::Port::lend).
pub(crate) fn lend(lent: &AtomicU32) -> bool {
    loop {
        match futex::lock_pi(lent, Flags::PRIVATE, None) {
            Ok(()) => break,
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The owner is gone, or the kernel has no priority inheritance: wait in the plain way.
            Err(_) => return false,
        }
    }
    suspension::slept();
    true
}

/// See [`Port::repay`](punctual_core::Port::repay).
pub(crate) fn repay(lent: &AtomicU32) {
    // Refused only if a waiter took it back in the meantime; then there is nothing to release.
    let _ = futex::unlock_pi(lent, Flags::PRIVATE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_wait_is_not_lost() {
        let worker = Worker::new(1);
        wake(&worker);
        wait(&worker, None);
        wait(&worker, Some(Instant::from_ticks(1)));
    }

    #[test]
    fn a_wake_at_the_end_of_a_wait_is_not_lost() {
        // To see the bug took some hundred thousand rounds; the stress test makes far more.
        const ROUNDS: u32 = 20_000;
        static WORKER: Worker = Worker::new(1);
        static SAID: AtomicU32 = AtomicU32::new(0);
        static HEARD: AtomicU32 = AtomicU32::new(0);
        let sleeper = std::thread::spawn(|| {
            while HEARD.load(Ordering::Relaxed) < ROUNDS {
                wait(&WORKER, None);
                HEARD.store(SAID.load(Ordering::Acquire), Ordering::Release);
            }
        });
        for round in 1..=ROUNDS {
            // The first wake ends the wait. The second comes somewhere around its end.
            wake(&WORKER);
            (0..round % 1021).for_each(|_| std::hint::spin_loop());
            SAID.store(round, Ordering::Release);
            wake(&WORKER);
            let begun = std::time::Instant::now();
            while HEARD.load(Ordering::Acquire) < round {
                assert!(begun.elapsed().as_secs() < 10, "the sleeper has not been woken in round {round}");
                std::hint::spin_loop();
            }
        }
        sleeper.join().expect("it does not panic");
    }
}
