//! ARMv8-A in 64-bit state: the Raspberry Pi 3B and 4B, and QEMU's `virt` with a Cortex-A72.

use core::arch::{asm, global_asm};
use core::fmt;
#[cfg(not(feature = "amp"))]
use core::ops::Range;

use aarch64_cpu::registers::{ESR_EL1, FAR_EL1, MPIDR_EL1, Readable};

#[cfg(not(feature = "amp"))]
use crate::board::{Standalone, This};
#[cfg(not(feature = "amp"))]
use crate::cores::StartCores;

#[cfg(not(feature = "amp"))]
pub(crate) mod mmu;

#[cfg(feature = "amp")]
pub(crate) use crate::amp::mmu;

#[cfg(not(feature = "amp"))]
global_asm!(include_str!("leave.s"), options(raw));
#[cfg(not(feature = "amp"))]
global_asm!(include_str!("start.s"), park = sym <<This as Standalone>::Cores as StartCores>::park);
#[cfg(feature = "amp")]
global_asm!(include_str!("../amp/start.s"), options(raw));
global_asm!(include_str!("vectors.s"), options(raw));

/// The registers at a fault. `vectors.s` fills them in.
#[repr(C)]
pub(crate) struct Registers {
    /// x0 to x29.
    general: [u64; 30],
    link: u64,
    stack_pointer: u64,
    program_counter: u64,
    status: u64,
    kind: u64,
    _alignment: u64,
}

const _: () = assert!(size_of::<Registers>() == 36 * 8);

impl Registers {
    pub(crate) fn cause(&self) -> &'static str {
        match self.kind {
            0 => match ESR_EL1.read_as_enum(ESR_EL1::EC) {
                Some(ESR_EL1::EC::Value::DataAbortCurrentEL) => "data abort",
                Some(ESR_EL1::EC::Value::InstrAbortCurrentEL) => "instruction abort",
                Some(ESR_EL1::EC::Value::PCAlignmentFault) => "misaligned program counter",
                Some(ESR_EL1::EC::Value::SPAlignmentFault) => "misaligned stack pointer",
                Some(ESR_EL1::EC::Value::Brk64) => "breakpoint",
                Some(ESR_EL1::EC::Value::SVC64) => "supervisor call",
                _ => "undefined instruction",
            },
            2 => "fast interrupt",
            3 => "system error: an access failed after its instruction had completed",
            4 => "exception while reporting a fault",
            _ => "exception from a lower level",
        }
    }

    /// Returns the accessed address if the fault has one.
    pub(crate) fn fault_address(&self) -> Option<usize> {
        let aborts = matches!(
            ESR_EL1.read_as_enum(ESR_EL1::EC),
            Some(ESR_EL1::EC::Value::DataAbortCurrentEL | ESR_EL1::EC::Value::InstrAbortCurrentEL)
        );
        (self.kind == 0 && aborts).then(|| FAR_EL1.get() as usize)
    }

    pub(crate) fn program_counter(&self) -> usize {
        self.program_counter as usize
    }

    pub(crate) fn frame_pointer(&self) -> usize {
        self.general[29] as usize
    }
}

impl fmt::Display for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, value) in self.general.iter().enumerate() {
            write!(f, "{}x{i:<3}{value:#018x}", if i % 3 == 0 { "\n    " } else { "  " })?;
        }
        let Self { link, stack_pointer, program_counter, status, .. } = self;
        write!(f, "\n    lr  {link:#018x}  sp  {stack_pointer:#018x}  pc  {program_counter:#018x}")?;
        write!(f, "\n    spsr {status:#010x}  esr {:#010x}", ESR_EL1.get())
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
    unsafe { asm!("mov {}, x29", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}

/// Returns the number of this core.
#[inline]
pub(crate) fn core() -> u32 {
    (MPIDR_EL1.get() & 3) as u32
}

/// Returns the last value passed to [`set_own`] on this core.
#[inline(always)]
pub(crate) fn own() -> *const () {
    let own;
    // SAFETY: reading TPIDR_EL1 changes nothing. It is read each time, because it differs between
    // cores and changes.
    unsafe { asm!("mrs {}, tpidr_el1", out(reg) own, options(nomem, nostack, preserves_flags)) };
    own
}

/// Stores a pointer for this core in a register that has no other use.
pub(crate) fn set_own(own: *const ()) {
    // SAFETY: TPIDR_EL1 has no meaning to the core. Not `nomem`, because the pointer refers to
    // memory.
    unsafe { asm!("msr tpidr_el1, {}", in(reg) own, options(nostack, preserves_flags)) };
}

#[cfg(not(feature = "amp"))]
/// Makes all prior writes visible to devices and other cores before the code that follows.
#[inline]
pub(crate) fn data_barrier() {
    // SAFETY: a barrier.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
}

/// Writes a range of addresses back to memory and removes it from the data caches.
#[cfg(not(feature = "amp"))]
pub(crate) fn flush(range: Range<usize>) {
    data_barrier();
    for line in (range.start & !(CACHE_LINE - 1)..range.end).step_by(CACHE_LINE) {
        // SAFETY: DC CIVAC changes no value.
        unsafe { asm!("dc civac, {}", in(reg) line, options(nostack)) };
    }
    data_barrier();
}

/// The size of the smallest cache line in bytes.
#[cfg(not(feature = "amp"))]
const CACHE_LINE: usize = 32;

#[inline]
pub(crate) fn mask_interrupts() {
    // SAFETY: nothing relies on being interrupted.
    unsafe { asm!("msr daifset, #3", options(nostack)) };
}

/// Unmasks system errors on this core: a bus reports a failed write, and on some cores a failed
/// read, only after the instruction has completed. The vectors must be installed, and the console
/// must be able to print the report.
pub(crate) fn unmask_errors() {
    // SAFETY: the handler of a system error does not return.
    unsafe { asm!("msr daifclr, #4", options(nostack)) };
}

/// Returns whether interrupts are masked.
#[cfg(feature = "critical-section")]
#[inline]
pub(crate) fn are_interrupts_masked() -> bool {
    let masked: u64;
    // SAFETY: reading DAIF changes nothing.
    unsafe { asm!("mrs {}, daif", out(reg) masked, options(nomem, nostack, preserves_flags)) };
    masked & 1 << 7 != 0
}

/// Masks interrupts and returns the previous mask.
#[cfg(feature = "amp")]
pub(crate) fn mask_interrupts_for_a_while() -> u64 {
    let before;
    // SAFETY: nothing relies on being interrupted.
    unsafe { asm!("mrs {}, daif", "msr daifset, #3", out(reg) before, options(nostack)) };
    before
}

/// Restores the mask that [`mask_interrupts_for_a_while`] returned.
#[cfg(feature = "amp")]
pub(crate) fn restore_interrupts(before: u64) {
    // SAFETY: code that ran with interrupts unmasked before could be interrupted.
    unsafe { asm!("msr daif, {}", in(reg) before, options(nostack)) };
}

#[inline]
pub(crate) fn unmask_interrupts() {
    // System errors as well, which an interrupt has masked.
    // SAFETY: the vectors preserve all that the interrupted code uses. Not `nomem`, because
    // handlers may change memory.
    unsafe { asm!("msr daifclr, #6", options(nostack)) };
}

#[inline]
pub(crate) fn wait_for_interrupt() {
    // SAFETY: waits, after all prior writes have completed.
    unsafe { asm!("dsb sy", "wfi", options(nostack)) };
}

/// Sleeps forever.
#[cfg(not(any(feature = "semihosting", feature = "amp")))]
pub(crate) fn halt() -> ! {
    mask_interrupts();
    loop {
        wait_for_interrupt();
    }
}

/// The virtual timer of the core. *Arm Architecture Reference Manual for A-profile architecture*,
/// D12.
pub(crate) mod timer {
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
}
