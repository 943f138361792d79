//! The board `amp`: a CPU that Linux gave up, in a machine whose other CPUs run Linux.
//!
//! A kernel module in `punctual-isolate` loads the image into a block of memory and asks the
//! firmware to start the CPU. The image uses only that block, the CPU, the CPU's timers and the
//! CPU's part of the interrupt controller.

pub(crate) mod gic;
pub(crate) mod layout;
mod shared;
mod watch;

use core::arch::asm;
use core::fmt;

pub use gic::ring;
pub(crate) use shared::figures;
pub use shared::{arena, is_to_end, memory};

use shared::shared;

/// PSCI, *Arm Power State Coordination Interface*, DEN 0022, 5.5.
const CPU_OFF: u64 = 0x8400_0002;

/// Returns the number of this CPU in Linux.
#[must_use]
pub fn cpu() -> u32 {
    shared().cpu
}

/// Calls a function with interrupts masked and restores the previous mask.
pub fn uninterrupted(work: &mut dyn FnMut()) {
    let before = crate::arch::mask_interrupts_for_a_while();
    work();
    crate::arch::restore_interrupts(before);
}

/// Reports that the image runs.
///
/// # Safety
/// Called once, with interrupts masked.
pub(crate) unsafe fn init() {
    shared().state.store(shared::RUNS, core::sync::atomic::Ordering::Release);
    watch::begin();
}

/// Ends the program: reports to Linux and turns the CPU off.
pub(crate) fn end(code: i32) -> ! {
    off(if code == crate::end::PANICKED { shared::FAULTED } else { shared::ENDED }, code)
}

fn off(state: u32, code: i32) -> ! {
    crate::arch::mask_interrupts();
    crate::time::disarm();
    watch::end();
    shared::end(state, code);
    gic::ring();
    gic::leave();
    for line in (layout::block()..layout::block() + layout::BLOCK).step_by(16) {
        // SAFETY: cleans and invalidates a cache line of a mapped address; memory keeps its value.
        unsafe { asm!("dc civac, {}", in(reg) line, options(nostack)) };
    }
    // SAFETY: as above; no part of the program continues. The firmware does not return from the
    // call.
    unsafe {
        asm!("dsb sy", "isb", options(nostack));
        if shared().smc != 0 {
            asm!("smc #0", inout("x0") CPU_OFF => _, out("x1") _, out("x2") _, out("x3") _, options(nostack));
        } else {
            asm!("hvc #0", inout("x0") CPU_OFF => _, out("x1") _, out("x2") _, out("x3") _, options(nostack));
        }
    }
    loop {
        crate::arch::wait_for_interrupt();
    }
}

/// The console: a ring of text that Linux reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        shared::write(text.as_bytes());
        Ok(())
    }
}

/// The console of the CPU: text that Linux reads.
pub mod console {
    pub use super::Console;
}

/// The other CPUs, which belong to Linux.
pub mod cores {
    /// No interrupt has this number.
    pub const BELL: u32 = u32::MAX - 1;

    /// Returns the number of this core.
    #[must_use]
    pub fn this() -> u32 {
        crate::arch::core()
    }

    /// Does nothing, because there is no other core. Returns `false`.
    pub fn start(_: u32, _: fn()) -> bool {
        false
    }

    /// Does nothing.
    pub fn ring(_: u32) {}

    /// Does nothing.
    pub(crate) fn ring_all() {}

    /// Does nothing.
    pub fn rung() {}

    /// Returns whether an interrupt is delivered to this core: always, for all interrupts of the
    /// image.
    pub fn route(_: u32, _: u32) -> bool {
        true
    }
}

/// The MMU. The loader of the image builds its tables.
pub(crate) mod mmu {
    use super::layout;

    /// Returns whether every access to an address ends the program.
    pub(crate) fn is_forbidden(address: usize) -> bool {
        layout::guard(address).is_some()
    }
}
