//! The cycle counter of the core. In QEMU on counted time, it counts instructions.

use core::arch::asm;

/// Enables the counter.
pub fn enable() {
    // SAFETY: nothing else uses the performance monitor.
    unsafe {
        #[cfg(target_arch = "arm")]
        asm!(
            "mcr p15, 0, {one}, c9, c12, 0", // PMCR: enabled
            "mcr p15, 0, {counter}, c9, c12, 1", // PMCNTENSET: the cycle counter
            "mcr p15, 0, {select}, c9, c12, 5", // PMSELR: its filter
            "isb",
            "mcr p15, 0, {none}, c9, c13, 1", // PMXEVTYPER: counts at every level
            "isb",
            one = in(reg) 1,
            counter = in(reg) 1 << 31,
            select = in(reg) 31,
            none = in(reg) 0,
            options(nostack),
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            "msr pmccfiltr_el0, xzr", // counts at every level
            "msr pmcr_el0, {one}",
            "msr pmcntenset_el0, {counter}",
            "isb",
            one = in(reg) 1_u64 | 1 << 6, // of 64 bits
            counter = in(reg) 1_u64 << 31,
            options(nostack),
        );
    }
}

/// Returns the frequency of the counter in Hz: on counted time, each instruction takes a
/// nanosecond. `None` if the firmware does not report that of the cores.
#[must_use]
pub fn frequency() -> Option<u32> {
    if cfg!(feature = "semihosting") {
        return Some(1_000_000_000);
    }
    #[cfg(feature = "raspberry-pi")]
    return punctual_bare::raspberry_pi::clocks().arm;
    #[cfg(not(feature = "raspberry-pi"))]
    None
}

/// Returns the counter.
#[inline(always)]
pub fn count() -> u32 {
    // SAFETY: reading the counter changes nothing. The read is not reordered with memory accesses.
    unsafe {
        #[cfg(target_arch = "arm")]
        {
            let count: u32;
            asm!("mrc p15, 0, {}, c9, c13, 0", out(reg) count, options(nostack, preserves_flags));
            count
        }
        #[cfg(target_arch = "aarch64")]
        {
            let count: u64;
            asm!("mrs {}, pmccntr_el0", out(reg) count, options(nostack, preserves_flags));
            count as u32
        }
    }
}

/// Returns the cycles since the counter had the value `begin`. Computations with `begin` happen
/// after the read.
#[inline(always)]
pub fn since(mut begin: u32) -> u32 {
    // SAFETY: as in `count`.
    unsafe {
        #[cfg(target_arch = "arm")]
        {
            let count: u32;
            asm!("mrc p15, 0, {}, c9, c13, 0 @ {}", out(reg) count, inout(reg) begin, options(nostack, preserves_flags));
            count.wrapping_sub(begin)
        }
        #[cfg(target_arch = "aarch64")]
        {
            let count: u64;
            asm!("mrs {}, pmccntr_el0 // {:w}", out(reg) count, inout(reg) begin, options(nostack, preserves_flags));
            (count as u32).wrapping_sub(begin)
        }
    }
}

/// Returns the counter of the generic timer, and the cycle counter one instruction later.
#[inline(always)]
pub fn timer_and_count() -> (u64, u32) {
    // SAFETY: as in `count`.
    unsafe {
        #[cfg(target_arch = "arm")]
        {
            let (low, high, count): (u32, u32, u32);
            asm!(
                "isb", "mrrc p15, 1, {}, {}, c14", "mrc p15, 0, {}, c9, c13, 0",
                out(reg) low, out(reg) high, out(reg) count, options(nostack, preserves_flags),
            );
            (u64::from(high) << 32 | u64::from(low), count)
        }
        #[cfg(target_arch = "aarch64")]
        {
            let (timer, count): (u64, u64);
            asm!(
                "isb", "mrs {}, cntvct_el0", "mrs {}, pmccntr_el0",
                out(reg) timer, out(reg) count, options(nostack, preserves_flags),
            );
            (timer, count as u32)
        }
    }
}
