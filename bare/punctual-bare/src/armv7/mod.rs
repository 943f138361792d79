//! ARMv7-A: the Raspberry Pi 2B, and QEMU's `virt` with a Cortex-A7.

use core::arch::{asm, global_asm};
use core::fmt;

pub(crate) mod mmu;
pub(crate) mod timer;

global_asm!(include_str!("leave.s"), options(raw));
global_asm!(include_str!("start.s"), options(raw));
global_asm!(include_str!("vectors.s"), options(raw));

// A core besides the first that is at the beginning of the image, as QEMU brings it there, waits for its mailbox 3 as in the loop of the
// firmware. *ARM Quad A7 core*, 4.8. r4: its number.
#[cfg(feature = "raspi2b")]
global_asm!(
    ".section .text.park, \"ax\"",
    ".arm",
    ".global __punctual_bare_park",
    "__punctual_bare_park:",
    "wfi",
    "ldr r0, =0x400000cc",
    "add r0, r0, r4, lsl #4",
    "ldr r1, [r0]",
    "cmp r1, #0",
    "beq __punctual_bare_park",
    "str r1, [r0]",
    "bx r1",
    ".ltorg",
);

// There it is powered off until it is started.
#[cfg(feature = "virt-a7")]
global_asm!(
    ".section .text.park, \"ax\"",
    ".arm",
    ".global __punctual_bare_park",
    "__punctual_bare_park:",
    "wfi",
    "b __punctual_bare_park",
);

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

/// What [`set_own`] was last called with on this core.
#[inline(always)]
pub(crate) fn own() -> *const () {
    let own;
    // SAFETY: reading TPIDRPRW changes nothing. It is read each time, since it differs between cores and changes.
    unsafe { asm!("mrc p15, 0, {}, c13, c0, 4", out(reg) own, options(nomem, nostack, preserves_flags)) };
    own
}

/// Keeps a pointer for this core, in a register that has no other use.
pub(crate) fn set_own(own: *const ()) {
    // SAFETY: TPIDRPRW has no meaning to the core. Not `nomem`: what it points to is in memory.
    unsafe { asm!("mcr p15, 0, {}, c13, c0, 4", in(reg) own, options(nostack, preserves_flags)) };
}

/// Has what was written so far seen by devices and other cores before what follows.
#[inline]
pub(crate) fn data_barrier() {
    // SAFETY: a barrier.
    unsafe { asm!("dsb", options(nostack, preserves_flags)) };
}

/// Has another core begin at `entry`.
#[cfg(feature = "raspi2b")]
pub(crate) fn power_on(core: u32, entry: usize) -> bool {
    /// Core 0: mailbox 3, which the loop of the firmware looks at. *ARM Quad A7 core*, 4.8.
    const MAILBOX: usize = 0x4000_008C;
    /// Core 0: that mailbox 0 interrupts it, so that the bell wakes a core that sleeps in `__punctual_bare_park`. *The same*, 4.7.
    const MAILBOX_CONTROL: usize = 0x4000_0050;
    let mailbox = (MAILBOX + 0x10 * core as usize) as *mut u32;
    let control = (MAILBOX_CONTROL + 4 * core as usize) as *mut u32;
    // SAFETY: the registers are there on this board; the core begins at the entry that is meant for it.
    unsafe {
        control.write_volatile(1);
        mailbox.write_volatile(entry as u32);
        asm!("dsb", "sev", options(nostack));
    }
    true
}

/// Has another core begin at `entry`: PSCI's CPU_ON. *Arm Power State Coordination Interface*, DEN 0022, 5.6.
#[cfg(feature = "virt-a7")]
pub(crate) fn power_on(core: u32, entry: usize) -> bool {
    const CPU_ON: u32 = 0x8400_0003;
    let result: i32;
    // SAFETY: the firmware changes no other registers than these; the core begins at the entry that is meant for it.
    unsafe {
        asm!(
            ".arch_extension virt",
            "hvc #0",
            inout("r0") CPU_ON => result,
            inout("r1") core => _,
            inout("r2") entry => _,
            inout("r3") 0 => _,
            options(nostack),
        );
    }
    result == 0
}

#[inline]
pub(crate) fn mask_interrupts() {
    // SAFETY: nothing relies on being interrupted.
    unsafe { asm!("cpsid if", options(nostack)) };
}

/// Whether they are masked.
#[cfg(feature = "critical-section")]
#[inline]
pub(crate) fn are_interrupts_masked() -> bool {
    let status: u32;
    // SAFETY: reading CPSR changes nothing.
    unsafe { asm!("mrs {}, cpsr", out(reg) status, options(nomem, nostack, preserves_flags)) };
    status & 1 << 7 != 0
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
