//! The virtual timer of the core. *Arm Architecture Reference Manual for A-profile architecture*,
//! D12.

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{CNTFRQ_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, CNTVCT_EL0, Readable, Writeable};

/// In Hz.
pub(crate) fn frequency() -> u32 {
    CNTFRQ_EL0.get() as u32
}

/// Returns the counter.
#[inline]
pub(crate) fn count() -> u64 {
    // The barrier keeps the counter from being read early.
    barrier::isb(barrier::SY);
    CNTVCT_EL0.get()
}

/// Makes the interrupt pending from this count on.
#[inline]
pub(crate) fn arm(count: u64) {
    CNTV_CVAL_EL0.set(count);
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::SET);
    barrier::isb(barrier::SY);
}

/// Makes the interrupt not pending.
#[inline]
pub(crate) fn disarm() {
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::CLEAR);
    barrier::isb(barrier::SY);
}
