//! ARMv7-A: the Raspberry Pi 2B, and QEMU's `virt` with a Cortex-A7.

use core::arch::{asm, global_asm};
use core::fmt;
#[cfg(feature = "raspberry-pi")]
use core::ops::Range;

use crate::board::{Standalone, This};
use crate::cores::StartCores;

pub(crate) mod mmu;

global_asm!(include_str!("leave.s"), options(raw));
global_asm!(include_str!("start.s"), park = sym <<This as Standalone>::Cores as StartCores>::park);
global_asm!(include_str!("vectors.s"), options(raw));

/// Kind of a fault: see `vectors.s`.
const DATA_ABORT: u32 = 3;

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
        if self.is_asynchronous() {
            return "asynchronous data abort: an access failed after its instruction had completed";
        }
        Self::KINDS.get(self.kind as usize).copied().unwrap_or("unknown fault")
    }

    /// Returns whether the fault is a data abort that belongs to an earlier instruction.
    fn is_asynchronous(&self) -> bool {
        /// DFSR: the bits of the status, and its values for external aborts and parity errors.
        const STATUS: u32 = 1 << 10 | 0xF;
        const ASYNCHRONOUS: [u32; 2] = [1 << 10 | 0b0110, 1 << 10 | 0b1000];
        let status: u32;
        // SAFETY: reading DFSR changes nothing.
        unsafe { asm!("mrc p15, 0, {}, c5, c0, 0", out(reg) status, options(nomem, nostack)) };
        self.kind == DATA_ABORT && ASYNCHRONOUS.contains(&(status & STATUS))
    }

    /// Returns the accessed address if the fault has one.
    pub(crate) fn fault_address(&self) -> Option<usize> {
        let address: usize;
        match self.kind {
            // SAFETY: reading IFAR changes nothing.
            2 => unsafe { asm!("mrc p15, 0, {}, c6, c0, 2", out(reg) address, options(nomem, nostack)) },
            // SAFETY: reading DFAR changes nothing.
            DATA_ABORT if !self.is_asynchronous() => unsafe {
                asm!("mrc p15, 0, {}, c6, c0, 0", out(reg) address, options(nomem, nostack))
            },
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

/// Writes a range of addresses back to memory and removes it from the data caches.
#[cfg(feature = "raspberry-pi")]
pub(crate) fn flush(range: Range<usize>) {
    /// The size of the smallest cache line in bytes.
    const CACHE_LINE: usize = 32;
    data_barrier();
    for line in (range.start & !(CACHE_LINE - 1)..range.end).step_by(CACHE_LINE) {
        // SAFETY: DCCIMVAC changes no value.
        unsafe { asm!("mcr p15, 0, {}, c7, c14, 1", in(reg) line, options(nostack)) };
    }
    data_barrier();
}

#[inline]
pub(crate) fn mask_interrupts() {
    // SAFETY: nothing relies on being interrupted.
    unsafe { asm!("cpsid if", options(nostack)) };
}

/// Unmasks asynchronous aborts on this core: a bus reports a failed write, and on some cores a
/// failed read, only after the instruction has completed. The vectors must be installed, and the
/// console must be able to print the report.
pub(crate) fn unmask_errors() {
    // SAFETY: the handler of an abort does not return.
    unsafe { asm!("cpsie a", options(nostack)) };
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
    // Asynchronous aborts as well, which an interrupt has masked.
    // SAFETY: the vectors preserve all that the interrupted code uses. Not `nomem`, because
    // handlers may change memory.
    unsafe { asm!("cpsie ai", options(nostack)) };
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

/// The virtual timer of the core. *ARM Architecture Reference Manual, ARMv7-A and ARMv7-R edition*,
/// B8.
pub(crate) mod timer {
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
        // SAFETY: reading CNTVCT changes nothing. The barrier keeps the counter from being read
        // early.
        unsafe {
            asm!("isb", "mrrc p15, 1, {}, {}, c14", out(reg) low, out(reg) high, options(nomem, nostack))
        };
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
}
