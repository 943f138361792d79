//! Sleeping and waking by futex.
//!
//! A worker's `signal` is [`AWAKE`], [`ASLEEP`], [`SIGNALLED`] or [`CALLED`]. A wake enters the
//! kernel only if it finds `ASLEEP`; a wake before the sleep leaves `SIGNALLED`, which makes the
//! sleep return. A thread that must not enter the kernel leaves `CALLED` instead, for a background
//! thread that polls for it ([`wake_called`]). Time-outs are absolute on `CLOCK_MONOTONIC`, so
//! preemption does not prolong a worker's sleep.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_core::{Duration, Instant, Stamp, Worker};
use punctual_sync::futex::selector::unwatched;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::thread::{ClockId, clock_nanosleep_absolute};

use super::{clock, counter, polling, stderr, suspension};

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
        // Fails if it has woken by itself in between: then it looks for work anyway.
        let _ = worker.signal.compare_exchange(SIGNALLED, CALLED, Ordering::AcqRel, Ordering::Relaxed);
    } else {
        wake_up_to(&worker.signal, 1);
    }
}

/// Wakes `worker` if a thread that must not enter the kernel has requested it; returns whether it
/// did.
pub(crate) fn wake_called(worker: &Worker) -> bool {
    let called = worker.signal.load(Ordering::Relaxed) == CALLED;
    if called {
        wake(worker);
    }
    called
}

/// Returns whether `worker` sleeps, or is about to, without a pending wake.
pub(crate) fn is_asleep(worker: &Worker) -> bool {
    worker.signal.load(Ordering::Acquire) == ASLEEP
}

/// Returns whether the next [`wait`] of `worker`, the caller, would return at once.
#[inline]
pub(crate) fn is_signalled(worker: &Worker) -> bool {
    worker.signal.load(Ordering::Acquire) != AWAKE
}

/// See [`Port::wait`](punctual_core::Port::wait).
pub(crate) fn wait(worker: &Worker, until: Option<Instant>, now: Stamp) -> bool {
    if until.is_some_and(|until| until <= now.unwrap_or_else(counter::now)) {
        // The kernel would arm a timer, switch to another thread and return.
        return false;
    }
    let signal = &worker.signal;
    let mut expired = false;
    suspension::before_sleeping();
    if signal.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        let timeout = until.map(clock::timespec);
        let slept = unwatched(|| futex::wait_bitset(signal, Flags::PRIVATE, ASLEEP, timeout.as_ref(), ANY));
        // The time has come, on the clock of `clock::now`.
        expired = slept == Err(Errno::TIMEDOUT);
        match slept {
            Ok(()) | Err(Errno::INTR | Errno::TIMEDOUT) => suspension::woke(expired),
            // Woken before it slept.
            Err(Errno::AGAIN) => {}
            Err(error) => refused("FUTEX_WAIT_BITSET", error),
        }
    }
    // Not a store: a store could take effect after the caller has looked for work, and discard a
    // wake whose cause the caller did not see. A wake is either before this exchange, so that the
    // caller sees its cause, or after it, and then it remains for the next wait.
    signal.swap(AWAKE, Ordering::AcqRel);
    expired
}

/// Longest sleep that a wake does not end: it delays the end of an app.
const HEEDLESS: Duration = Duration::from_millis(10);

/// See [`Port::sleep_until`](punctual_core::Port::sleep_until). A sleep without the futex takes the
/// kernel 630 instructions less, since the thread enters no queue.
pub(crate) fn sleep_until(worker: &Worker, until: Instant, now: Stamp) -> bool {
    let now = now.unwrap_or_else(counter::now);
    if until <= now || until > now + HEEDLESS || is_signalled(worker) {
        return wait(worker, Some(until), Some(now));
    }
    suspension::before_sleeping();
    let slept = clock_nanosleep_absolute(ClockId::Monotonic, &clock::timespec(until));
    if slept.is_err_and(|error| error != Errno::INTR) {
        // A seccomp filter that permits only the futex, say.
        return wait(worker, Some(until), None);
    }
    suspension::woke(slept.is_ok());
    slept.is_ok()
}

/// Sleeps while `word` is `value`, or returns at once.
pub(crate) fn wait_while(word: &AtomicU32, value: u32) {
    slept("FUTEX_WAIT", unwatched(|| futex::wait(word, Flags::PRIVATE, value, None)));
}

/// Wakes all threads that wait on `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    wake_up_to(word, i32::MAX as u32);
}

fn wake_up_to(word: &AtomicU32, count: u32) {
    // A waiter that has left counts as woken.
    if let Err(error) = unwatched(|| futex::wake(word, Flags::PRIVATE, count)) {
        refused("FUTEX_WAKE", error);
    }
}

/// Treats a wake, a time-out, an interruption and a changed word equally: the caller checks for
/// itself.
fn slept(what: &str, result: Result<(), Errno>) {
    match result {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => suspension::slept(),
        Err(error) => refused(what, error),
    }
}

/// Ends the process. A thread that cannot sleep would spin at its real-time priority, and one that
/// cannot wake another would leave it asleep forever.
#[cold]
fn refused(what: &str, error: Errno) -> ! {
    stderr::line(format_args!(
        "the kernel refuses futex({what}): {error}; {ADVICE}; the process ends, since its threads can neither wait nor wake"
    ));
    super::end_process(1)
}

/// The remedy.
pub(crate) const ADVICE: &str =
    "if a seccomp filter does (a container's, say), have it allow the system call futex";

/// Tries every operation that a run needs; returns the refused one with its error.
pub(crate) fn probe() -> Result<(), Refused> {
    let word = AtomicU32::new(AWAKE);
    let refused = |what| move |error| Refused { what, error };
    // The word has another value, so the call does not sleep.
    match futex::wait(&word, Flags::PRIVATE, ASLEEP, None) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
        Err(error) => return Err(refused("FUTEX_WAIT")(error)),
    }
    match futex::wait_bitset(&word, Flags::PRIVATE, ASLEEP, None, ANY) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
        Err(error) => return Err(refused("FUTEX_WAIT_BITSET")(error)),
    }
    futex::wake(&word, Flags::PRIVATE, 1).map_err(refused("FUTEX_WAKE"))?;
    futex::lock_pi(&word, Flags::PRIVATE, None).map_err(refused("FUTEX_LOCK_PI"))?;
    futex::unlock_pi(&word, Flags::PRIVATE).map_err(refused("FUTEX_UNLOCK_PI"))
}

/// The operation that [`probe`] was refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refused {
    pub(crate) what: &'static str,
    pub(crate) error: Errno,
}

/// See [`Port::boost`](punctual_core::Port::boost).
pub(crate) fn boost(boost: &AtomicU32) -> bool {
    loop {
        match unwatched(|| futex::lock_pi(boost, Flags::PRIVATE, None)) {
            Ok(()) => break,
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The owner has exited, or the kernel has no priority inheritance: wait without it.
            Err(_) => return false,
        }
    }
    suspension::slept();
    true
}

/// See [`Port::unboost`](punctual_core::Port::unboost).
pub(crate) fn unboost(boost: &AtomicU32) {
    let mut last = Errno::PERM;
    for _ in 0..UNBOOST_ATTEMPTS {
        let Err(error) = unwatched(|| futex::unlock_pi(boost, Flags::PRIVATE)) else { return };
        // If a waiter has reset the word in between, there is nothing to release, unless another
        // waiter has written this thread's TID again since.
        if boost.load(Ordering::Relaxed) & libc::FUTEX_TID_MASK != super::kernel_thread() {
            return;
        }
        last = error;
    }
    refused("FUTEX_UNLOCK_PI", last);
}

/// Bounds the retries in [`unboost`], each of which takes a waiter that resets the word and another
/// that sets it again.
const UNBOOST_ATTEMPTS: usize = 1000;

#[cfg(test)]
mod tests {
    use punctual_core::Duration;

    use super::*;

    #[test]
    fn wake_before_wait_is_not_lost() {
        let worker = Worker::new(1);
        wake(&worker);
        assert!(!wait(&worker, None, None));
        let past = Some(Instant::from_ticks(1));
        assert!(!wait(&worker, past, None) && !wait(&worker, past, past), "the kernel was not asked");
    }

    #[test]
    fn distinguishes_reasons_of_a_wakeup() {
        let worker = Worker::new(1);
        let until = clock::now() + Duration::from_millis(1);
        // A wake may come too early, or not at all.
        while !wait(&worker, Some(until), None) {}
        assert!(clock::now() >= until);
        let hour = Duration::from_secs(3600);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| wait(&worker, Some(until + hour), Some(until)));
            while !is_asleep(&worker) {
                std::thread::yield_now();
            }
            wake(&worker);
            assert!(!sleeper.join().unwrap());
        });
    }

    #[test]
    fn only_near_times_end_a_sleep_alone() {
        let worker = Worker::new(1);
        let until = clock::now() + Duration::from_millis(1);
        // A signal may interrupt it.
        while !sleep_until(&worker, until, None) {}
        assert!(clock::now() >= until);
        assert!(!sleep_until(&worker, until, None), "the time has come");
        wake(&worker);
        assert!(!sleep_until(&worker, until + HEEDLESS, Some(until)), "a wake preceded the sleep");
        let hour = Duration::from_secs(3600);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| sleep_until(&worker, until + hour, Some(until)));
            while !is_asleep(&worker) {
                std::thread::yield_now();
            }
            wake(&worker);
            assert!(!sleeper.join().unwrap());
        });
    }

    #[test]
    fn wake_at_end_of_wait_is_not_lost() {
        // The bug appeared after some hundred thousand rounds; the stress test runs far more.
        const ROUNDS: u32 = 20_000;
        static WORKER: Worker = Worker::new(1);
        static SAID: AtomicU32 = AtomicU32::new(0);
        static HEARD: AtomicU32 = AtomicU32::new(0);
        let sleeper = std::thread::spawn(|| {
            while HEARD.load(Ordering::Relaxed) < ROUNDS {
                wait(&WORKER, None, None);
                HEARD.store(SAID.load(Ordering::Acquire), Ordering::Release);
            }
        });
        for round in 1..=ROUNDS {
            // The first wake ends the wait. The second comes around its end.
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
