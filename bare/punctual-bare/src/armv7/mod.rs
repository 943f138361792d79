//! ARMv7-A: the Raspberry Pi 2B, and QEMU's `virt` with a Cortex-A7.

use core::arch::{asm, global_asm};
use core::fmt;

pub(crate) mod mmu;
pub(crate) mod timer;

global_asm!(include_str!("leave.s"), options(raw));
global_asm!(include_str!("start.s"), options(raw));
global_asm!(include_str!("vectors.s"), options(raw));

/// The registers as a fault has left them. Filled in by `vectors.s`.
#[repr(C)]
pub(crate) struct Registers {
    /// r0 to r12.
    general: [u32; 13],
    stack_pointer: u32,
    link: u32,
    program_counter: u32,
    status: u32,
    kind: u32,
}

const _: () = assert!(size_of::<Registers>() == 18 * 4);

impl Registers {
    const KINDS: [&str; 5] =
        ["undefined instruction", "supervisor call", "prefetch abort", "data abort", "fast interrupt"];

    pub(crate) fn cause(&self) -> &'static str {
        Self::KINDS.get(self.kind as usize).copied().unwrap_or("unknown fault")
    }

    /// What was accessed, if the fault is about that.
    pub(crate) fn fault_address(&self) -> Option<usize> {
        let address: usize;
        match self.kind {
            // SAFETY: reading IFAR changes nothing.
            2 => unsafe { asm!("mrc p15, 0, {}, c6, c0, 2", out(reg) address, options(nomem, nostack)) },
            // SAFETY: reading DFAR changes nothing.
            3 => unsafe { asm!("mrc p15, 0, {}, c6, c0, 0", out(reg) address, options(nomem, nostack)) },
            _ => return None,
        }
        Some(address)
    }

    pub(crate) fn program_counter(&self) -> usize {
        self.program_counter as usize
    }

    pub(crate) fn frame_pointer(&self) -> usize {
        self.general[11] as usize
    }
}

impl fmt::Display for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, value) in self.general.iter().enumerate() {
            write!(f, "{}r{i:<3}{value:#010x}", if i % 4 == 0 { "\n    " } else { "  " })?;
        }
        let Self { stack_pointer, link, program_counter, status, .. } = self;
        write!(
            f,
            "  sp  {stack_pointer:#010x}  lr  {link:#010x}  pc  {program_counter:#010x}\n    cpsr {status:#010x}"
        )
    }
}

/// What the vectors call for a fault.
#[unsafe(no_mangle)]
extern "C" fn __punctual_bare_fault(registers: &Registers) -> ! {
    crate::fault::fault(registers)
}

/// The frame of the caller, where frames are linked.
#[inline(always)]
pub(crate) fn frame_pointer() -> usize {
    let frame;
    // SAFETY: copies a register.
    unsafe { asm!("mov {}, r11", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}

/// The number of this core.
#[inline]
pub(crate) fn core() -> u32 {
    let affinity: u32;
    // SAFETY: reading MPIDR changes nothing.
    unsafe {
        asm!("mrc p15, 0, {}, c0, c0, 5", out(reg) affinity, options(pure, nomem, nostack, preserves_flags))
    };
    affinity & 3
}

#[inline]
pub(crate) fn mask_interrupts() {
    // SAFETY: nothing relies on being interrupted.
    unsafe { asm!("cpsid if", options(nostack)) };
}

#[inline]
pub(crate) fn unmask_interrupts() {
    // SAFETY: the vectors preserve all that the interrupted code uses. No `nomem`: memory may change.
    unsafe { asm!("cpsie i", options(nostack)) };
}

#[inline]
pub(crate) fn wait_for_interrupt() {
    // SAFETY: waits, after what was written before has arrived.
    unsafe { asm!("dsb", "wfi", options(nostack)) };
}

/// Sleeps for good.
#[cfg(not(feature = "semihosting"))]
pub(crate) fn halt() -> ! {
    mask_interrupts();
    loop {
        wait_for_interrupt();
    }
}
