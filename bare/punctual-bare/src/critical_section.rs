//! What the crate `critical-section` asks for: interrupts are masked on this core, and one core at a time is inside.
//!
//! For other crates. An app needs none, for its resources have ceilings.

use core::hint;
use core::sync::atomic::{AtomicU32, Ordering};

use critical_section::RawRestoreState;

use crate::arch;

/// The core that is inside.
static OWNER: AtomicU32 = AtomicU32::new(NOBODY);
const NOBODY: u32 = u32::MAX;

/// What was so before: that interrupts were masked, and that this core was inside already.
const MASKED: u8 = 1;
const NESTED: u8 = 2;

struct Masked;
critical_section::set_impl!(Masked);

// SAFETY: while a core is between the two, nothing interrupts it, and no other core is.
unsafe impl critical_section::Impl for Masked {
    unsafe fn acquire() -> RawRestoreState {
        let before = if arch::are_interrupts_masked() { MASKED } else { 0 };
        arch::mask_interrupts();
        let me = arch::core();
        if OWNER.load(Ordering::Relaxed) == me {
            return before | NESTED;
        }
        // Acquire: this core sees what the last one inside did.
        while OWNER.compare_exchange_weak(NOBODY, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            hint::spin_loop();
        }
        before
    }

    unsafe fn release(before: RawRestoreState) {
        if before & NESTED == 0 {
            OWNER.store(NOBODY, Ordering::Release);
        }
        if before & MASKED == 0 {
            arch::unmask_interrupts();
        }
    }
}
