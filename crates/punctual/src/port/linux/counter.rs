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
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::{Duration, Instant};

use super::clock;

/// How far such a time lies beside the clock at most: what lies between two readings, and 500 ppm of what an anchor holds.
pub(crate) const ERROR: Duration = Duration::from_micros(2);

/// How long an anchor holds, in ns.
const VALID_NS: u64 = 1_000_000;
/// How long the rate is looked at before it is first used, and before it is used anew; and when that begins again.
const FIRST_WINDOW_NS: u64 = 4_000_000;
const WINDOW_NS: u64 = 16_000_000;
const MAX_WINDOW_NS: u64 = 1_000_000_000;
/// The fraction bits of a rate.
const FRACTION: u32 = 32;
/// Those of 16 GHz and of 16 MHz.
const RATES: std::ops::RangeInclusive<u64> = 1 << (FRACTION - 4)..=125 << (FRACTION - 1);

/// Whether the kernel's clock is the counter, as [`choose`] has found out.
static IS_THE_CLOCK: AtomicBool = AtomicBool::new(false);

/// What the threads of this process have found out together.
static COUNTER: Counter = Counter::new();

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
    if allowed.is_ok()
        && let Some(sample) = Sample::take().1
    {
        // Well before the first job, for which it leads to a rate.
        let _ = COUNTER.first.set(sample);
    }
    allowed
}

/// What is the same for all threads.
#[derive(Debug)]
struct Counter {
    /// The rate that was found last, in 2^-32 ns per count; 0 as long as none is known.
    rate: AtomicU64,
    first: OnceLock<Sample>,
}

impl Counter {
    const fn new() -> Self {
        Self { rate: AtomicU64::new(0), first: OnceLock::new() }
    }
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
        let (now, sample) = Sample::take();
        if let Some(sample) = sample {
            self.lay(sample, &COUNTER);
        }
        now
    }

    /// Counts on from `sample`, once the rate is known.
    fn lay(&self, sample: Sample, shared: &Counter) {
        let first = || shared.first.get().copied().filter(|first| sample.is_soon_after(*first));
        let base =
            self.base.get().filter(|base| sample.counter >= base.counter).or_else(first).unwrap_or(sample);
        self.base.set(Some(base));
        let (known, nanos) = (shared.rate.load(Ordering::Relaxed), sample.time.saturating_sub(base.time));
        let mut rate = known;
        if nanos >= if known == 0 { FIRST_WINDOW_NS } else { WINDOW_NS } {
            rate = sample.rate_since(base);
            // A counter that runs otherwise than before, or not between 16 MHz and 16 GHz, has not been running all the time, or
            // the clock has not.
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
    /// Reads the clock, and the counter with it unless something came between.
    fn take() -> (Instant, Option<Self>) {
        let before = raw::read();
        let now = clock::now();
        let sample = Self { counter: raw::read(), time: now.as_ticks() };
        (now, Some(sample).filter(|sample| sample.counter.wrapping_sub(before) <= raw::TOGETHER))
    }

    fn is_soon_after(self, earlier: Self) -> bool {
        self.counter >= earlier.counter && self.time.saturating_sub(earlier.time) <= MAX_WINDOW_NS
    }

    /// In 2^-32 ns per count.
    fn rate_since(self, earlier: Self) -> u64 {
        let (counts, nanos) = (self.counter - earlier.counter, self.time.saturating_sub(earlier.time));
        ((u128::from(nanos) << FRACTION) / u128::from(counts.max(1))) as u64
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
        let (shared, stamps) = (Counter::new(), Stamps::new());
        stamps.lay(at(5 * MS), &shared);
        assert_eq!(shown(&stamps, 15 * MS + 3), None, "the rate is not known");
        stamps.lay(at(9 * MS), &shared);
        assert!(shown(&stamps, 27 * MS + 3_000).unwrap().abs_diff(9 * MS + 1_000) <= 1);
        assert_eq!(shown(&stamps, 3 * (10 * MS + 1_000)), None, "the anchor is too old");
        assert_eq!(shown(&stamps, 27 * MS - 3), None, "the counter has gone back");
        // The clock was set forward by steering; nothing accumulates.
        stamps.lay(Sample { counter: 30 * MS, time: 10 * MS + 500 }, &shared);
        assert!(shown(&stamps, 30 * MS + 3_000).unwrap().abs_diff(10 * MS + 1_500) <= 1);
    }

    #[test]
    fn what_one_thread_has_found_out_another_uses_at_once() {
        let (shared, one, other) = (Counter::new(), Stamps::new(), Stamps::new());
        shared.first.set(at(5 * MS)).unwrap();
        one.lay(at(9 * MS), &shared);
        assert!(shown(&one, 27 * MS + 3_000).is_some(), "it goes by the first sample");
        other.lay(at(10 * MS), &shared);
        assert!(shown(&other, 30 * MS + 3_000).unwrap().abs_diff(10 * MS + 1_000) <= 1);
        // Not by the first sample if that is old: the machine may have slept since.
        let (shared, late) = (Counter::new(), Stamps::new());
        shared.first.set(at(5 * MS)).unwrap();
        late.lay(at(5_000 * MS), &shared);
        assert_eq!(shown(&late, 15_000 * MS + 3), None);
    }

    #[test]
    fn begins_again_when_the_counter_has_not_kept_running() {
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
