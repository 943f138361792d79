//! Implementation of the crate `critical-section`: interrupts are masked on this core, and one core
//! at a time is inside.
//!
//! For other crates. An app does not need it, because its resources have ceilings.

use core::hint;
use core::sync::atomic::{AtomicU32, Ordering};

use critical_section::RawRestoreState;

use crate::arch;

/// The core that is inside.
static OWNER: AtomicU32 = AtomicU32::new(NO_CORE);
const NO_CORE: u32 = u32::MAX;

/// The state before: interrupts were masked, and this core was inside already.
const MASKED: u8 = 1;
const NESTED: u8 = 2;

struct Masked;
critical_section::set_impl!(Masked);

// SAFETY: between `acquire` and `release`, nothing interrupts the core, and no other core is
// inside.
unsafe impl critical_section::Impl for Masked {
    unsafe fn acquire() -> RawRestoreState {
        let before = if arch::are_interrupts_masked() { MASKED } else { 0 };
        arch::mask_interrupts();
        let me = arch::core();
        if OWNER.load(Ordering::Relaxed) == me {
            return before | NESTED;
        }
        // Acquire: this core sees the writes of the previous core inside.
        while OWNER.compare_exchange_weak(NO_CORE, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            hint::spin_loop();
        }
        before
    }

    unsafe fn release(before: RawRestoreState) {
        if before & NESTED == 0 {
            OWNER.store(NO_CORE, Ordering::Release);
        }
        if before & MASKED == 0 {
            arch::unmask_interrupts();
        }
    }
}
