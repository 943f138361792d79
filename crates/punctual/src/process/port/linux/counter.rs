//! Timestamps from the processor's counter, for measurements.
//!
//! If the kernel derives `CLOCK_MONOTONIC` from a counter that a process can read, a timestamp
//! takes one reading of the counter and one multiplication, less than half the cost of the vDSO. A
//! thread sets an *anchor*, a reading of the counter together with the clock's value, and
//! extrapolates from it; after [`VALID_NS`] it sets the next one. So the kernel's adjustments of
//! the clock, of at most 500 ppm, take effect soon, and an unreliable counter cannot cause a large
//! error.
//!
//! Such a timestamp differs from the clock by the time between its two readings and by the change
//! of the rate since then: some tens of ns, and at most [`ERROR`]. It is suitable for measuring
//! past events. Releases are decided by the clock.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::{Duration, Instant};

use super::clock;

/// Maximum difference of a timestamp from the clock: the time between two readings, plus 500 ppm of
/// an anchor's validity.
pub(crate) const ERROR: Duration = Duration::from_micros(2);

/// Validity of an anchor, in ns: more than a period of 1 ms, whose every job would otherwise set an
/// anchor.
const VALID_NS: u64 = 2_000_000;
/// Minimum duration of the first rate measurement and of later ones, and the age at which a new
/// measurement starts.
const FIRST_WINDOW_NS: u64 = 4_000_000;
const WINDOW_NS: u64 = 16_000_000;
const MAX_WINDOW_NS: u64 = 1_000_000_000;
/// Number of fraction bits of a rate.
const FRACTION: u32 = 32;
/// Rates of 16 GHz and of 16 MHz.
const RATES: std::ops::RangeInclusive<u64> = 1 << (FRACTION - 4)..=125 << (FRACTION - 1);

/// True if the kernel's clock is the counter, as determined by [`choose`].
static IS_THE_CLOCK: AtomicBool = AtomicBool::new(false);

/// State shared by the threads of this process.
static COUNTER: Counter = Counter::new();

thread_local! {
    static STAMPS: Stamps = const { Stamps::new() };
}

/// Determines for a run whether timestamps can use the counter; if not, returns the reason.
pub(crate) fn choose() -> Result<(), String> {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let allowed = match &source {
        Ok(source) if raw::is_invariant() && raw::SOURCES.contains(&source.trim()) => Ok(()),
        Ok(source) => Err(format!("the kernel's clock source is {}", source.trim())),
        Err(error) => Err(format!("the kernel's clock source is unknown ({error})")),
    };
    IS_THE_CLOCK.store(allowed.is_ok(), Ordering::Relaxed);
    if allowed.is_ok()
        && let Some(sample) = Sample::take().1
    {
        // Well before the first job, so that the first job finds a rate.
        let _ = COUNTER.first.set(sample);
    }
    allowed
}

/// State shared by all threads.
#[derive(Debug)]
struct Counter {
    /// The last measured rate, in 2^-32 ns per count; 0 if unknown.
    rate: AtomicU64,
    first: OnceLock<Sample>,
}

impl Counter {
    const fn new() -> Self {
        Self { rate: AtomicU64::new(0), first: OnceLock::new() }
    }
}

/// Returns the current time, for measurements; see the module.
///
/// Real-time safety: like the clock, and usually faster.
#[inline]
pub(crate) fn now() -> Instant {
    STAMPS.with(Stamps::now)
}

/// Anchor of a thread.
#[derive(Debug)]
struct Stamps {
    counter: Cell<u64>,
    /// In ns.
    time: Cell<u64>,
    /// In 2^-32 ns per count.
    rate: Cell<u64>,
    /// Validity of the anchor in counts; 0 if none exists.
    valid: Cell<u64>,
    /// Start of the rate measurement.
    base: Cell<Option<Sample>>,
}

/// Simultaneous readings of the counter and of the clock, in ns.
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
            // Negative after a move to another CPU or a suspend, and then a huge number.
            let elapsed = raw::read().wrapping_sub(self.counter.get());
            if elapsed < valid {
                // Below 2^53 because of the limit in `valid`.
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
        let (now, sample) = Sample::take();
        if let Some(sample) = sample {
            self.lay(sample, &COUNTER);
        }
        now
    }

    /// Sets the anchor to `sample`, valid once the rate is known.
    fn lay(&self, sample: Sample, shared: &Counter) {
        let first = || shared.first.get().copied().filter(|first| sample.is_soon_after(*first));
        let base =
            self.base.get().filter(|base| sample.counter >= base.counter).or_else(first).unwrap_or(sample);
        self.base.set(Some(base));
        let (known, nanos) = (shared.rate.load(Ordering::Relaxed), sample.time.saturating_sub(base.time));
        let mut rate = known;
        if nanos >= if known == 0 { FIRST_WINDOW_NS } else { WINDOW_NS } {
            rate = sample.rate_since(base);
            // If the counter's rate has changed, or is not between 16 MHz and 16 GHz, then the
            // counter or the clock has stopped at times.
            if !RATES.contains(&rate) || (known != 0 && rate.abs_diff(known) > known / 1024) {
                rate = 0;
            }
            shared.rate.store(rate, Ordering::Relaxed);
            if rate == 0 || nanos > MAX_WINDOW_NS {
                self.base.set(Some(sample));
            }
        }
        self.rate.set(rate);
        self.valid.set((VALID_NS << FRACTION).checked_div(rate).unwrap_or(0));
        self.counter.set(sample.counter);
        self.time.set(sample.time);
    }
}

impl Sample {
    /// Reads the clock, and the counter unless an interruption separated the readings.
    fn take() -> (Instant, Option<Self>) {
        let before = raw::read();
        let now = clock::now();
        let sample = Self { counter: raw::read(), time: now.as_ticks() };
        (now, Some(sample).filter(|sample| sample.counter.wrapping_sub(before) <= raw::TOGETHER))
    }

    fn is_soon_after(self, earlier: Self) -> bool {
        self.counter >= earlier.counter && self.time.saturating_sub(earlier.time) <= MAX_WINDOW_NS
    }

    /// Returns the rate in 2^-32 ns per count.
    fn rate_since(self, earlier: Self) -> u64 {
        let (counts, nanos) = (self.counter - earlier.counter, self.time.saturating_sub(earlier.time));
        ((u128::from(nanos) << FRACTION) / u128::from(counts.max(1))) as u64
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod raw {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    /// The kernel's clock sources that are this counter.
    pub(super) const SOURCES: &[&str] = &["tsc"];
    /// Maximum counts between the readings of a [`Sample`](super::Sample): half a microsecond or
    /// less.
    pub(super) const TOGETHER: u64 = 512;

    #[inline(always)]
    pub(crate) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction. In a process that may not use it
        // (`PR_SET_TSC`), it raises a signal that ends the process, which is sound.
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
    /// None: the counters of other architectures have not been tested.
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

    /// Returns the timestamp at `counter`, computed as in `now`.
    fn shown(stamps: &Stamps, counter: u64) -> Option<u64> {
        let elapsed = counter.wrapping_sub(stamps.counter.get());
        let holds = elapsed < stamps.valid.get();
        holds.then(|| stamps.time.get() + ((elapsed * stamps.rate.get()) >> FRACTION))
    }

    /// Three counts per ns.
    fn at(time: u64) -> Sample {
        Sample { counter: 3 * time, time }
    }

    #[test]
    fn extrapolates_from_an_anchor_for_two_milliseconds() {
        let (shared, stamps) = (Counter::new(), Stamps::new());
        stamps.lay(at(5 * MS), &shared);
        assert_eq!(shown(&stamps, 15 * MS + 3), None, "the rate is not known");
        stamps.lay(at(9 * MS), &shared);
        assert!(shown(&stamps, 27 * MS + 3_000).unwrap().abs_diff(9 * MS + 1_000) <= 1);
        assert_eq!(shown(&stamps, 3 * (11 * MS + 1_000)), None, "the anchor is too old");
        assert_eq!(shown(&stamps, 27 * MS - 3), None, "the counter has gone back");
        // An adjustment set the clock forward; errors do not accumulate.
        stamps.lay(Sample { counter: 30 * MS, time: 10 * MS + 500 }, &shared);
        assert!(shown(&stamps, 30 * MS + 3_000).unwrap().abs_diff(10 * MS + 1_500) <= 1);
    }

    #[test]
    fn threads_share_measured_latency() {
        let (shared, one, other) = (Counter::new(), Stamps::new(), Stamps::new());
        shared.first.set(at(5 * MS)).unwrap();
        one.lay(at(9 * MS), &shared);
        assert!(shown(&one, 27 * MS + 3_000).is_some(), "it goes by the first sample");
        other.lay(at(10 * MS), &shared);
        assert!(shown(&other, 30 * MS + 3_000).unwrap().abs_diff(10 * MS + 1_000) <= 1);
        // Not from the first sample if that is old: the machine may have been suspended since.
        let (shared, late) = (Counter::new(), Stamps::new());
        shared.first.set(at(5 * MS)).unwrap();
        late.lay(at(5_000 * MS), &shared);
        assert_eq!(shown(&late, 15_000 * MS + 3), None);
    }

    #[test]
    fn restarts_after_counter_gap() {
        let slept = Sample { counter: 60 * MS, time: 60 * MS };
        for sample in
            [Sample { counter: 1, time: 60 * MS }, Sample { counter: u64::MAX / 2, time: 60 * MS }, slept]
        {
            let (shared, stamps) = (Counter::new(), Stamps::new());
            stamps.lay(at(5 * MS), &shared);
            stamps.lay(at(9 * MS), &shared);
            stamps.lay(sample, &shared);
            let ahead = shown(&stamps, sample.counter + 1);
            assert!(ahead.is_none_or(|ahead| ahead - sample.time <= 1), "{sample:?} {ahead:?}");
        }
    }

    #[test]
    fn follows_clock() {
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
