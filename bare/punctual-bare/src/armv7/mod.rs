//! ARMv7-A: the Raspberry Pi 2B, and QEMU's `virt` with a Cortex-A7.

use core::arch::{asm, global_asm};
use core::fmt;

pub(crate) mod mmu;
pub(crate) mod timer;

global_asm!(include_str!("leave.s"), options(raw));
global_asm!(include_str!("start.s"), options(raw));
global_asm!(include_str!("vectors.s"), options(raw));

// A secondary core that QEMU starts at the beginning of the image waits for its mailbox 3, as in
// the firmware's loop. *ARM Quad A7 core*, 4.8. r4 is the number of the core.
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

// On this board, a secondary core is powered off until it is started.
#[cfg(feature = "virt-a7")]
global_asm!(
    ".section .text.park, \"ax\"",
    ".arm",
    ".global __punctual_bare_park",
    "__punctual_bare_park:",
    "wfi",
    "b __punctual_bare_park",
);

/// The registers at a fault. `vectors.s` fills them in.
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

    /// Returns the accessed address if the fault has one.
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

/// Entry point of the vectors for faults.
#[unsafe(no_mangle)]
extern "C" fn __punctual_bare_fault(registers: &Registers) -> ! {
    crate::fault::fault(registers)
}

/// Returns the frame of the caller if frames are linked.
#[inline(always)]
pub(crate) fn frame_pointer() -> usize {
    let frame;
    // SAFETY: copies a register.
    unsafe { asm!("mov {}, r11", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}

/// Returns the number of this core.
#[inline]
pub(crate) fn core() -> u32 {
    let affinity: u32;
    // SAFETY: reading MPIDR changes nothing.
    unsafe {
        asm!("mrc p15, 0, {}, c0, c0, 5", out(reg) affinity, options(pure, nomem, nostack, preserves_flags))
    };
    affinity & 3
}

/// Returns the last value passed to [`set_own`] on this core.
#[inline(always)]
pub(crate) fn own() -> *const () {
    let own;
    // SAFETY: reading TPIDRPRW changes nothing. It is read each time, because it differs between
    // cores and changes.
    unsafe { asm!("mrc p15, 0, {}, c13, c0, 4", out(reg) own, options(nomem, nostack, preserves_flags)) };
    own
}

/// Stores a pointer for this core in a register that has no other use.
pub(crate) fn set_own(own: *const ()) {
    // SAFETY: TPIDRPRW has no meaning to the core. Not `nomem`, because the pointer refers to
    // memory.
    unsafe { asm!("mcr p15, 0, {}, c13, c0, 4", in(reg) own, options(nostack, preserves_flags)) };
}

/// Makes all prior writes visible to devices and other cores before the code that follows.
#[inline]
pub(crate) fn data_barrier() {
    // SAFETY: a barrier.
    unsafe { asm!("dsb", options(nostack, preserves_flags)) };
}

/// Starts another core at `entry`.
#[cfg(feature = "raspi2b")]
pub(crate) fn power_on(core: u32, entry: usize) -> bool {
    /// Core 0: mailbox 3, which the firmware's loop polls. *ARM Quad A7 core*, 4.8.
    const MAILBOX: usize = 0x4000_008C;
    /// Core 0: enables the interrupt of mailbox 0, so that the doorbell wakes a core that sleeps in
    /// `__punctual_bare_park`. *ARM Quad A7 core*, 4.7.
    const MAILBOX_CONTROL: usize = 0x4000_0050;
    let mailbox = (MAILBOX + 0x10 * core as usize) as *mut u32;
    let control = (MAILBOX_CONTROL + 4 * core as usize) as *mut u32;
    // SAFETY: the registers exist on this board, and the core starts at an entry for secondary
    // cores.
    unsafe {
        control.write_volatile(1);
        mailbox.write_volatile(entry as u32);
        asm!("dsb", "sev", options(nostack));
    }
    true
}

/// Starts another core at `entry`: PSCI's CPU_ON. *Arm Power State Coordination Interface*, DEN
/// 0022, 5.6.
#[cfg(feature = "virt-a7")]
pub(crate) fn power_on(core: u32, entry: usize) -> bool {
    const CPU_ON: u32 = 0x8400_0003;
    let result: i32;
    // SAFETY: the firmware changes only these registers, and the core starts at an entry for
    // secondary cores.
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

/// Returns whether interrupts are masked.
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
    // SAFETY: the vectors preserve all that the interrupted code uses. Not `nomem`, because
    // handlers may change memory.
    unsafe { asm!("cpsie i", options(nostack)) };
}

#[inline]
pub(crate) fn wait_for_interrupt() {
    // SAFETY: waits, after all prior writes have completed.
    unsafe { asm!("dsb", "wfi", options(nostack)) };
}

/// Sleeps forever.
#[cfg(not(feature = "semihosting"))]
pub(crate) fn halt() -> ! {
    mask_interrupts();
    loop {
        wait_for_interrupt();
    }
}
