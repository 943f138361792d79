//! The virtual timer of the core. *ARM Architecture Reference Manual, ARMv7-A and ARMv7-R edition*,
//! B8.

use core::arch::asm;

/// CNTV_CTL: on, and not masked.
const ENABLE: u32 = 1;

/// In Hz.
pub(crate) fn frequency() -> u32 {
    let frequency;
    // SAFETY: reading CNTFRQ changes nothing.
    unsafe { asm!("mrc p15, 0, {}, c14, c0, 0", out(reg) frequency, options(nomem, nostack)) };
    frequency
}

/// Returns the counter.
#[inline]
pub(crate) fn count() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reading CNTVCT changes nothing. The barrier keeps the counter from being read early.
    unsafe { asm!("isb", "mrrc p15, 1, {}, {}, c14", out(reg) low, out(reg) high, options(nomem, nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Makes the interrupt pending from this count on.
#[inline]
pub(crate) fn arm(count: u64) {
    // SAFETY: setting CNTV_CVAL and CNTV_CTL affects only the interrupt of this timer.
    unsafe {
        asm!(
            "mcrr p15, 3, {low}, {high}, c14",
            "mcr p15, 0, {enable}, c14, c3, 1",
            "isb",
            low = in(reg) count as u32,
            high = in(reg) (count >> 32) as u32,
            enable = in(reg) ENABLE,
            options(nostack),
        );
    }
}

/// Makes the interrupt not pending.
#[inline]
pub(crate) fn disarm() {
    // SAFETY: as in `arm`.
    unsafe { asm!("mcr p15, 0, {}, c14, c3, 1", "isb", in(reg) 0, options(nostack)) };
}
