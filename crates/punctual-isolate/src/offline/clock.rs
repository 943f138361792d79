//! The clock of the CPU without Linux, related to `CLOCK_MONOTONIC`.
//!
//! Both are made of the counter of the machine, which every CPU reads alike. The relation changes
//! while Linux steers its clock.

use rustix::time::{ClockId, clock_gettime};

/// The time by `CLOCK_MONOTONIC`, in ns.
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Difference to add to a time of the other CPU, modulo 2^64, to get one of `CLOCK_MONOTONIC`;
/// `None` if this machine has no such counter.
pub(super) fn offset() -> Option<u64> {
    let readings = (0..8).map(|_| {
        let before = counter()?;
        let clock = now();
        let after = counter()?;
        Some((after - before, clock.wrapping_sub(before + (after - before) / 2)))
    });
    // The reading with the shortest distance is the most precise.
    readings.collect::<Option<Vec<_>>>()?.into_iter().min().map(|(_, offset)| offset)
}

/// The clock of the other CPU, as `punctual-bare` computes it: the counter in ns.
#[cfg(target_arch = "aarch64")]
fn counter() -> Option<u64> {
    let (count, frequency): (u64, u64);
    // SAFETY: Linux lets every process read both registers, which changes nothing. The barrier
    // keeps the counter from being read early.
    unsafe {
        std::arch::asm!("isb", "mrs {}, cntvct_el0", "mrs {}, cntfrq_el0", out(reg) count, out(reg) frequency,
            options(nomem, nostack));
    }
    // With the other CPU's rounding error, which grows with the time since power-on.
    let nanos_per_count = (1_000_000_000_u64 << 32).checked_div(frequency)?;
    Some(((u128::from(count) * u128::from(nanos_per_count)) >> 32) as u64)
}

/// No other processor runs programs without Linux.
#[cfg(not(target_arch = "aarch64"))]
fn counter() -> Option<u64> {
    None
}
