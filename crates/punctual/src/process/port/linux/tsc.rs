//! `CLOCK_MONOTONIC` from the processor's time-stamp counter: for threads that must not enter the
//! kernel, and faster than the vDSO.
//!
//! The kernel continuously adjusts `CLOCK_MONOTONIC` by up to 500 ppm, so measuring the rate once
//! is not enough. A background thread periodically sets an [`Anchor`]: a reading of the counter, a
//! time, and a rate that leads from there to the expected clock at the next anchor. Each anchor
//! begins at the time that the previous one has reached, so the time never goes backwards.
//!
//! Readers never wait for that thread. There are two anchors, of which it writes the unused one; a
//! reader that finds the number of the anchor changed retries, and the number changes at most every
//! [`INTERVAL`].
//!
//! ```text
//! now = anchor.time + (counter - anchor.counter) * anchor.rate
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration as StdDuration;

use punctual_core::Instant;

use super::clock;
use super::counter::raw as counter;

/// Intended validity of an anchor.
pub(crate) const INTERVAL: StdDuration = StdDuration::from_millis(20);

/// Number of fraction bits of a rate.
const FRACTION: u32 = 32;

/// Maximum relative change of the rate to follow the clock: 1/1024, twice the kernel's limit.
const BEND: u64 = 1024;

/// Simultaneous readings of the counter and of the clock, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    counter: u64,
    time: u64,
}

#[derive(Debug)]
struct Anchor {
    counter: AtomicU64,
    /// In ns.
    time: AtomicU64,
    /// In 2^-32 ns per count.
    rate: AtomicU64,
}

/// The anchors of this process; number `n` is at index `n % 2`.
#[derive(Debug)]
pub(crate) struct Tsc {
    number: AtomicU32,
    anchors: [Anchor; 2],
}

/// The clock of this machine, once [`start`] has been called.
pub(crate) static TSC: Tsc = Tsc::new();

impl Tsc {
    const fn new() -> Self {
        const fn anchor() -> Anchor {
            Anchor { counter: AtomicU64::new(0), time: AtomicU64::new(0), rate: AtomicU64::new(0) }
        }
        Self { number: AtomicU32::new(0), anchors: [anchor(), anchor()] }
    }

    /// Returns whether this machine has a counter with a constant rate in all processor states, on
    /// all CPUs.
    pub(crate) fn is_there() -> bool {
        counter::is_invariant()
    }

    /// Returns the current time.
    ///
    /// Real-time safety: some tens of ns; does not enter the kernel, and does not wait for
    /// [`steer`].
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        loop {
            // Acquire: the anchor with this number has been written.
            let number = self.number.load(Ordering::Acquire);
            let (counter, time, rate) = self.read(number);
            let elapsed = counter::read().saturating_sub(counter);
            // The acquire above and the loads of the anchor precede the next load: if the number is
            // unchanged, the anchor had not been overwritten, which takes two increments.
            std::sync::atomic::fence(Ordering::Acquire);
            if self.number.load(Ordering::Relaxed) == number {
                return Instant::from_ticks(time + scaled(elapsed, rate));
            }
        }
    }

    #[inline]
    fn read(&self, number: u32) -> (u64, u64, u64) {
        let anchor = &self.anchors[number as usize % 2];
        let [counter, time, rate] = [&anchor.counter, &anchor.time, &anchor.rate];
        (counter.load(Ordering::Relaxed), time.load(Ordering::Relaxed), rate.load(Ordering::Relaxed))
    }

    fn lay(&self, at: Sample, rate: u64) {
        let number = self.number.load(Ordering::Relaxed).wrapping_add(1);
        let anchor = &self.anchors[number as usize % 2];
        // A reader that sees one of these stores sees at least the preceding number, and retries.
        std::sync::atomic::fence(Ordering::Release);
        anchor.counter.store(at.counter, Ordering::Relaxed);
        anchor.time.store(at.time, Ordering::Relaxed);
        anchor.rate.store(rate, Ordering::Relaxed);
        self.number.store(number, Ordering::Release);
    }
}

/// State for setting the anchors of a [`Tsc`].
#[derive(Debug)]
struct Steering {
    last: Sample,
}

impl Steering {
    const fn new() -> Self {
        Self { last: Sample { counter: 0, time: 0 } }
    }

    /// Measures the rate, which takes a moment, and sets the first anchor of a run.
    fn start(&mut self, tsc: &Tsc) {
        self.last = Sample::take();
        std::thread::sleep(INTERVAL / 2);
        self.steer(tsc);
    }

    fn steer(&mut self, tsc: &Tsc) {
        let now = Sample::take();
        let (counter, time, old) = tsc.read(tsc.number.load(Ordering::Relaxed));
        let shown = time + scaled(now.counter.saturating_sub(counter), old);
        let (at, rate) = bent(self.last, now, shown);
        tsc.lay(at, rate);
        self.last = now;
    }
}

static STEERING: Mutex<Steering> = Mutex::new(Steering::new());

/// Starts [`TSC`], which takes about ten ms; [`steer`] has to be called every [`INTERVAL`] from
/// then on.
pub(crate) fn start() {
    STEERING.lock().unwrap_or_else(PoisonError::into_inner).start(&TSC);
}

/// Synchronizes [`TSC`] with the clock. If several threads call it, one is enough.
pub(crate) fn steer() {
    if let Ok(mut steering) = STEERING.try_lock() {
        steering.steer(&TSC);
    }
}

/// Returns the anchor to set at `now`, at which [`TSC`] shows `shown`: from there to the expected
/// clock one [`INTERVAL`] later, with the rate since `last`.
///
/// If the rate change cannot make up for a lag, the time steps forward; it never steps back.
fn bent(last: Sample, now: Sample, shown: u64) -> (Sample, u64) {
    let horizon = INTERVAL.as_nanos() as u64;
    let (rate, most) = (rate(last, now), horizon / BEND);
    if now.time > shown + most {
        return (now, rate);
    }
    let behind = (i128::from(now.time) - i128::from(shown)).max(-i128::from(most));
    let rate = i128::from(rate) + i128::from(rate) * behind / i128::from(horizon);
    (Sample { time: shown, ..now }, rate as u64)
}

/// Converts counts to ns.
#[inline]
fn scaled(counts: u64, rate: u64) -> u64 {
    ((u128::from(counts) * u128::from(rate)) >> FRACTION) as u64
}

/// Returns the rate, in 2^-32 ns per count, between two samples.
fn rate(from: Sample, to: Sample) -> u64 {
    let (counts, nanos) = (to.counter.saturating_sub(from.counter), to.time.saturating_sub(from.time));
    ((u128::from(nanos) << FRACTION) / u128::from(counts.max(1))) as u64
}

impl Sample {
    /// Returns the best of several attempts: the one with the shortest time between its counter
    /// readings.
    fn take() -> Self {
        let tries = (0..8).map(|_| {
            let before = counter::read();
            let time = clock::now().as_ticks();
            let between = counter::read().saturating_sub(before);
            (between, Self { counter: before + between / 2, time })
        });
        tries.min_by_key(|&(between, _)| between).map_or(Self { counter: 0, time: 0 }, |(_, sample)| sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns the time shown by an anchor.
    fn shown((at, rate): (Sample, u64), counter: u64) -> u64 {
        at.time + scaled(counter - at.counter, rate)
    }

    #[test]
    fn converges_to_clock_at_next_anchor() {
        // Three counts per ns, and the time shown is 700 ns behind.
        let (last, now) = (Sample { counter: 0, time: 5 * MS }, Sample { counter: 60 * MS, time: 25 * MS });
        let anchor = bent(last, now, 25 * MS - 700);
        assert_eq!(shown(anchor, 60 * MS), 25 * MS - 700, "it goes on where it was");
        assert!(shown(anchor, 120 * MS).abs_diff(45 * MS) < 3);
        // 700 ns ahead: slower, but never back.
        let anchor = bent(last, now, 25 * MS + 700);
        assert!(shown(anchor, 60 * MS + 30) > 25 * MS + 700);
        assert!(shown(anchor, 120 * MS).abs_diff(45 * MS) < 3);
    }

    #[test]
    fn steps_if_far_behind_and_waits_if_far_ahead() {
        let (last, now) = (Sample { counter: 0, time: 0 }, Sample { counter: 20 * MS, time: 20 * MS });
        assert_eq!(shown(bent(last, now, 12 * MS), 20 * MS), 20 * MS);
        let ahead = bent(last, now, 29 * MS);
        assert!(shown(ahead, 20 * MS) == 29 * MS && shown(ahead, 40 * MS) > 29 * MS);
    }

    #[test]
    fn follows_clock_monotonically() {
        if !Tsc::is_there() {
            return test_skip::skip(
                test_skip::Need::System("an invariant time-stamp counter"),
                "the clock made of it",
            );
        }
        let (tsc, mut steering) = (Tsc::new(), Steering::new());
        steering.start(&tsc);
        let mut before = tsc.now();
        for round in 0..10_000 {
            if round % 1_000 == 0 {
                steering.steer(&tsc);
            }
            let now = tsc.now();
            assert!(now >= before);
            before = now;
        }
        let (early, now, late) = (clock::now().as_ticks(), tsc.now().as_ticks(), clock::now().as_ticks());
        // The thread has not run for long, so the rate may still be adjusted.
        assert!(early < now + MS && now < late + MS, "{early} {now} {late}");
    }
}
