//! The clock of short measurements: the CPU's counter if the kernel trusts it, otherwise
//! `CLOCK_MONOTONIC`.
//!
//! Reading the counter costs about half as much as reading the kernel's clock, and its values can
//! be compared between CPUs exactly where the kernel itself does so. Instants are in *ticks*;
//! [`Clock`] converts differences to time. [`use_best`] must be called once before the first
//! reading, so that all readings use one clock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use punctual_isolate::facts;
use punctual_isolate::tree::Tree;
use rustix::time::ClockId;

/// `true` if [`now`] reads the counter. Written once, before any measurement.
static COUNTER: AtomicBool = AtomicBool::new(false);
static CHOSEN: OnceLock<Clock> = OnceLock::new();

/// The duration for which the counter is compared with the kernel's clock. The readings at both
/// ends are accurate to a microsecond, so the rate is accurate to about 10⁻⁵.
const CALIBRATION: Duration = Duration::from_millis(60);

/// The clock that [`now`] reads, and the length of its ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    name: &'static str,
    ps_per_tick: f64,
}

impl Clock {
    /// Returns the clock's name: `TSC`, `CNTVCT` or `CLOCK_MONOTONIC`.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Converts `ticks` to picoseconds, rounded.
    pub(crate) fn ps(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ps_per_tick).round() as u64
    }

    /// Converts `ticks` to nanoseconds.
    pub(crate) fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ps_per_tick / 1e3
    }

    /// Returns the smallest nonzero difference between two readings: some counters advance by
    /// several ticks at once.
    pub(crate) fn step_ns(&self) -> f64 {
        let steps = (0..2000).map(|_| {
            let from = now();
            // Consecutive readings differ by the cost of a reading; the step appears as the
            // variation of these differences.
            now() - from
        });
        let mut steps: Vec<u64> = steps.collect();
        steps.sort_unstable();
        steps.dedup();
        let between = steps.windows(2).map(|pair| pair[1] - pair[0]);
        self.ns(between.min().unwrap_or(1))
    }

    /// Converts `ns` nanoseconds to ticks, rounded.
    pub(crate) fn ticks(&self, ns: f64) -> u64 {
        (ns * 1e3 / self.ps_per_tick).round() as u64
    }
}

/// Chooses the clock and measures its rate; the first call takes about 60 ms.
pub(crate) fn use_best() -> Clock {
    *CHOSEN.get_or_init(|| {
        let monotonic = Clock { name: "CLOCK_MONOTONIC", ps_per_tick: 1e3 };
        if !kernel_trusts_the_counter() {
            return monotonic;
        }
        let (from_tick, from_ns) = both();
        std::thread::sleep(CALIBRATION);
        let (to_tick, to_ns) = both();
        let (ticks, ns) = (to_tick.wrapping_sub(from_tick), to_ns.saturating_sub(from_ns));
        if ticks == 0 || ns == 0 {
            return monotonic;
        }
        COUNTER.store(true, Ordering::Release);
        Clock { name: counter::NAME, ps_per_tick: ns as f64 * 1e3 / ticks as f64 }
    })
}

/// Returns the current time in ticks, read after all preceding instructions have completed.
///
/// Real-time safety: neither allocates nor blocks, and enters the kernel only if the kernel's clock
/// cannot be read from user space.
#[inline(always)]
pub(crate) fn now() -> u64 {
    // Relaxed: written once before any measurement, before threads are started.
    if COUNTER.load(Ordering::Relaxed) { counter::read() } else { monotonic_ns() }
}

/// Returns `CLOCK_MONOTONIC` in nanoseconds.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Returns the CPU time of the process in nanoseconds.
pub(crate) fn process_time_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

#[inline]
fn read_ns(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns `true` if the kernel uses the counter as its clock source, which requires that the
/// counter has a constant rate, never stops and is synchronized across CPUs.
fn kernel_trusts_the_counter() -> bool {
    let source = facts::clock_source(&Tree::system());
    source.is_some_and(|source| counter::CLOCK_SOURCES.contains(&source.as_str()))
}

/// Returns the counter and the kernel's clock at one instant, from the most precise of several
/// attempts.
fn both() -> (u64, u64) {
    let tries = (0..32).map(|_| {
        let before = counter::read();
        let ns = monotonic_ns();
        let after = counter::read();
        (after.wrapping_sub(before), before.wrapping_add(after.wrapping_sub(before) / 2), ns)
    });
    let (_, tick, ns) = tries.min_by_key(|(width, ..)| *width).expect("there are some tries");
    (tick, ns)
}

#[cfg(target_arch = "x86_64")]
mod counter {
    pub(super) const NAME: &str = "TSC";
    pub(super) const CLOCK_SOURCES: &[&str] = &["tsc"];

    #[inline(always)]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 CPU has SSE2, and Linux permits reading the counter unless a program
        // has disabled it for itself.
        unsafe {
            core::arch::x86_64::_mm_lfence();
            core::arch::x86_64::_rdtsc()
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod counter {
    pub(super) const NAME: &str = "CNTVCT";
    pub(super) const CLOCK_SOURCES: &[&str] = &["arch_sys_counter"];

    #[inline(always)]
    pub(super) fn read() -> u64 {
        let ticks: u64;
        // SAFETY: Linux permits reading the virtual counter, as its own vDSO does; `isb` only
        // synchronizes.
        unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack)) };
        ticks
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod counter {
    pub(super) const NAME: &str = "none";
    pub(super) const CLOCK_SOURCES: &[&str] = &[];

    pub(super) fn read() -> u64 {
        super::monotonic_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_ticks_to_time_and_back() {
        let clock = Clock { name: "test", ps_per_tick: 384.6 };
        assert_eq!(clock.ps(10), 3_846);
        assert_eq!(clock.ticks(clock.ns(1_000_000)), 1_000_000);
    }

    #[test]
    fn clock_is_monotonic() {
        use_best();
        let readings: Vec<u64> = (0..1000).map(|_| now()).collect();
        assert!(readings.is_sorted());
    }
}
