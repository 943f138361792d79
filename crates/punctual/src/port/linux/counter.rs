//! The processor's counter, and times by it for measuring.
//!
//! Where the kernel takes `CLOCK_MONOTONIC` from a counter that a process can read, a time costs one reading of the counter
//! and one multiplication, which is less than half of what the vDSO takes. A thread lays an *anchor*, a reading of the counter
//! and what the clock showed with it, and counts on from there; after [`VALID_NS`] it lays the next one. So what the kernel
//! does to the clock, which is steered by 500 ppm at most, shows at once, and a counter that turns out not to be trusted
//! cannot lead far astray.
//!
//! Such a time lies beside the clock by what lay between its two readings and by what the rate has changed since: some ten
//! ns, and [`ERROR`] whatever happens. That is good for measuring what has happened. What is due is decided by the clock.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::{Duration, Instant};

use super::clock;

/// How far such a time lies beside the clock at most: what lies between two readings, and 500 ppm of what an anchor holds.
pub(crate) const ERROR: Duration = Duration::from_micros(2);

/// How long an anchor holds, in ns.
const VALID_NS: u64 = 1_000_000;
/// How long the rate is looked at before it is first used, and before it is used anew; and when that begins again.
const FIRST_WINDOW_NS: u64 = 4_000_000;
const WINDOW_NS: u64 = 16_000_000;
const LONGEST_WINDOW_NS: u64 = 1_000_000_000;
/// The fraction bits of a rate.
const FRACTION: u32 = 32;

/// Whether the kernel's clock is the counter, as far as [`choose`] has found out.
static IS_THE_CLOCK: AtomicBool = AtomicBool::new(false);

thread_local! {
    static STAMPS: Stamps = const { Stamps::new() };
}

/// Finds out for a run whether times can be taken by the counter; otherwise why not.
pub(crate) fn choose() -> Result<(), String> {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let allowed = match &source {
        Ok(source) if raw::is_invariant() && raw::SOURCES.contains(&source.trim()) => Ok(()),
        Ok(source) => Err(format!("the kernel's clock source is {}", source.trim())),
        Err(error) => Err(format!("the kernel's clock source is unknown ({error})")),
    };
    IS_THE_CLOCK.store(allowed.is_ok(), Ordering::Relaxed);
    allowed
}

/// Now, for measuring; see the module.
///
/// Real-time safety: as the clock, and mostly faster.
#[inline]
pub(crate) fn now() -> Instant {
    STAMPS.with(Stamps::now)
}

/// What a thread counts on from.
#[derive(Debug)]
struct Stamps {
    counter: Cell<u64>,
    /// In ns.
    time: Cell<u64>,
    /// In 2^-32 ns per count.
    rate: Cell<u64>,
    /// For how many counts that holds; 0 as long as nothing is known.
    valid: Cell<u64>,
    /// Where the rate is measured from.
    base: Cell<Option<Sample>>,
}

/// A reading of the counter and of the clock, in ns, at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    counter: u64,
    time: u64,
}

impl Stamps {
    const fn new() -> Self {
        Self {
            counter: Cell::new(0),
            time: Cell::new(0),
            rate: Cell::new(0),
            valid: Cell::new(0),
            base: Cell::new(None),
        }
    }

    #[inline]
    fn now(&self) -> Instant {
        let valid = self.valid.get();
        if valid != 0 {
            // Less than the anchor's on another CPU or after a suspension, and then far too much here.
            let elapsed = raw::read().wrapping_sub(self.counter.get());
            if elapsed < valid {
                // Below 2^53 by what `valid` is made of.
                return Instant::from_ticks(self.time.get() + ((elapsed * self.rate.get()) >> FRACTION));
            }
        }
        self.anchor()
    }

    #[cold]
    #[inline(never)]
    fn anchor(&self) -> Instant {
        if !IS_THE_CLOCK.load(Ordering::Relaxed) {
            self.valid.set(0);
            return clock::now();
        }
        let before = raw::read();
        let now = clock::now();
        let sample = Sample { counter: raw::read(), time: now.as_ticks() };
        // Otherwise something came between, and the next reading tries again.
        if sample.counter.wrapping_sub(before) <= raw::TOGETHER {
            self.lay(sample);
        }
        now
    }

    /// Counts on from `sample`, once the rate is known.
    fn lay(&self, sample: Sample) {
        let begin_again = || {
            self.base.set(Some(sample));
            self.valid.set(0);
        };
        let Some(base) = self.base.get() else { return begin_again() };
        let known = self.valid.get() != 0;
        let (Some(counts), Some(nanos)) =
            (sample.counter.checked_sub(base.counter), sample.time.checked_sub(base.time))
        else {
            return begin_again();
        };
        if nanos >= if known { WINDOW_NS } else { FIRST_WINDOW_NS } {
            let rate = (u128::from(nanos) << FRACTION) / u128::from(counts.max(1));
            // Less than 16 MHz or more than 16 GHz is no counter that has kept running.
            if !(1 << (FRACTION - 4)..1 << (FRACTION + 6)).contains(&rate) {
                return begin_again();
            }
            self.rate.set(rate as u64);
            self.valid.set((VALID_NS << FRACTION) / rate as u64);
            if nanos > LONGEST_WINDOW_NS {
                self.base.set(Some(sample));
            }
        }
        self.counter.set(sample.counter);
        self.time.set(sample.time);
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod raw {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    /// The clock sources of the kernel that are this counter.
    pub(super) const SOURCES: &[&str] = &["tsc"];
    /// The counts between the readings of a [`Sample`](super::Sample) at most: half a microsecond or less.
    pub(super) const TOGETHER: u64 = 512;

    #[inline(always)]
    pub(crate) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction. Where a process may not use it (`PR_SET_TSC`), it ends by a
        // signal, which is sound.
        unsafe { _rdtsc() }
    }

    /// Intel SDM 17.17.1, AMD APM 3 E.4.7: "invariant TSC".
    pub(crate) fn is_invariant() -> bool {
        let (highest, invariant) = (__cpuid(0x8000_0000).eax, 0x8000_0007);
        highest >= invariant && __cpuid(invariant).edx & 1 << 8 != 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) mod raw {
    /// None: others have counters too, but none has been tried.
    pub(super) const SOURCES: &[&str] = &[];
    pub(super) const TOGETHER: u64 = 0;

    pub(crate) fn read() -> u64 {
        0
    }

    pub(crate) fn is_invariant() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// What is shown at `counter`, as `now` does it.
    fn shown(stamps: &Stamps, counter: u64) -> Option<u64> {
        let elapsed = counter.wrapping_sub(stamps.counter.get());
        let holds = elapsed < stamps.valid.get();
        holds.then(|| stamps.time.get() + ((elapsed * stamps.rate.get()) >> FRACTION))
    }

    /// Three counts a ns.
    fn at(time: u64) -> Sample {
        Sample { counter: 3 * time, time }
    }

    #[test]
    fn counts_on_from_the_last_anchor_for_a_millisecond() {
        let stamps = Stamps::new();
        stamps.lay(at(5 * MS));
        assert_eq!(shown(&stamps, 15 * MS + 3), None, "the rate is not known");
        stamps.lay(at(9 * MS));
        assert!(shown(&stamps, 27 * MS + 3_000).unwrap().abs_diff(9 * MS + 1_000) <= 1);
        assert_eq!(shown(&stamps, 3 * (10 * MS + 1_000)), None, "the anchor is too old");
        assert_eq!(shown(&stamps, 27 * MS - 3), None, "the counter has gone back");
        // The clock was set forward by steering; nothing accumulates.
        stamps.lay(Sample { counter: 30 * MS, time: 10 * MS + 500 });
        assert!(shown(&stamps, 30 * MS + 3_000).unwrap().abs_diff(10 * MS + 1_500) <= 1);
    }

    #[test]
    fn begins_again_when_the_counter_has_not_kept_running() {
        for sample in [Sample { counter: 1, time: 60 * MS }, Sample { counter: u64::MAX / 2, time: 60 * MS }]
        {
            let stamps = Stamps::new();
            stamps.lay(at(5 * MS));
            stamps.lay(at(9 * MS));
            stamps.lay(sample);
            assert_eq!(shown(&stamps, sample.counter + 1), None, "{sample:?}");
        }
    }

    #[test]
    fn keeps_to_the_clock() {
        let _ = choose();
        let stamps = Stamps::new();
        let (mut beside, mut by_counter) = (0, 0);
        for _ in 0..300_000 {
            let early = clock::now().as_ticks();
            by_counter += u32::from(stamps.valid.get() != 0);
            let now = stamps.now().as_ticks();
            let late = clock::now().as_ticks();
            beside = beside.max(early.saturating_sub(now)).max(now.saturating_sub(late));
        }
        assert!(beside < 20_000, "{beside} ns beside the clock");
        if IS_THE_CLOCK.load(Ordering::Relaxed) {
            assert!(by_counter > 0, "the counter has never been used");
        }
    }
}
