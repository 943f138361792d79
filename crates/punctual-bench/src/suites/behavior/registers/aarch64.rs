//! AArch64: condition flags, eight general registers, the rounding mode, and sixteen vector
//! registers.

use std::arch::asm;
use std::sync::atomic::AtomicU64;

use super::Damage;

pub(super) const IS_KNOWN: bool = true;
pub(super) const TEXT: &str =
    "flags, general and vector registers and the rounding mode survive a preemption";

/// Negative, zero, carry and overflow. `cmp` of 5 with 5 sets zero and carry.
const ZERO_AND_CARRY: u64 = 0x6000_0000;

/// Rounding toward zero, in the floating-point control register.
const TOWARDS_ZERO: u64 = 3 << 22;

/// Waits, with known values in all registers, until `flag` is nonzero, and returns the registers
/// that have changed.
pub(super) fn hold_until(flag: &AtomicU64) -> Damage {
    let (flags, general, vector, rounding): (u64, u64, u64, u64);
    // SAFETY: the block reads `flag`, which outlives it. Every register that it changes is
    // declared, and the rounding mode is restored before the end.
    unsafe {
        asm!(
            "mrs {saved}, fpcr",
            "msr fpcr, {mode}",
            "movi v0.16b, #0x5a", "movi v1.16b, #0x5a", "movi v2.16b, #0x5a", "movi v3.16b, #0x5a",
            "movi v4.16b, #0x5a", "movi v5.16b, #0x5a", "movi v6.16b, #0x5a", "movi v7.16b, #0x5a",
            "movi v16.16b, #0x5a", "movi v17.16b, #0x5a", "movi v18.16b, #0x5a", "movi v19.16b, #0x5a",
            "movi v20.16b, #0x5a", "movi v21.16b, #0x5a", "movi v22.16b, #0x5a", "movi v23.16b, #0x5a",
            "mov x9, #9", "mov x10, #10", "mov x11, #11", "mov x12, #12", "mov x13, #13", "mov x14, #14",
            "mov x15, #15", "mov x8, #5",
            "cmp x8, #5",
            "2:",
            "ldr {seen}, [{flag}]",
            "cbz {seen}, 2b",
            "mrs {flags}, nzcv",
            "mrs {rounding}, fpcr",
            "msr fpcr, {saved}",
            "sub x8, x8, #5", "sub x9, x9, #9", "sub x10, x10, #10", "sub x11, x11, #11", "sub x12, x12, #12",
            "sub x13, x13, #13", "sub x14, x14, #14", "sub x15, x15, #15",
            "orr x8, x8, x9", "orr x8, x8, x10", "orr x8, x8, x11", "orr x8, x8, x12", "orr x8, x8, x13",
            "orr x8, x8, x14", "orr {general}, x8, x15",
            // The difference from the pattern in any of them.
            "movi v24.16b, #0x5a",
            "eor v0.16b, v0.16b, v24.16b", "eor v1.16b, v1.16b, v24.16b", "eor v2.16b, v2.16b, v24.16b",
            "eor v3.16b, v3.16b, v24.16b", "eor v4.16b, v4.16b, v24.16b", "eor v5.16b, v5.16b, v24.16b",
            "eor v6.16b, v6.16b, v24.16b", "eor v7.16b, v7.16b, v24.16b", "eor v16.16b, v16.16b, v24.16b",
            "eor v17.16b, v17.16b, v24.16b", "eor v18.16b, v18.16b, v24.16b", "eor v19.16b, v19.16b, v24.16b",
            "eor v20.16b, v20.16b, v24.16b", "eor v21.16b, v21.16b, v24.16b", "eor v22.16b, v22.16b, v24.16b",
            "eor v23.16b, v23.16b, v24.16b",
            "orr v0.16b, v0.16b, v1.16b", "orr v0.16b, v0.16b, v2.16b", "orr v0.16b, v0.16b, v3.16b",
            "orr v0.16b, v0.16b, v4.16b", "orr v0.16b, v0.16b, v5.16b", "orr v0.16b, v0.16b, v6.16b",
            "orr v0.16b, v0.16b, v7.16b", "orr v0.16b, v0.16b, v16.16b", "orr v0.16b, v0.16b, v17.16b",
            "orr v0.16b, v0.16b, v18.16b", "orr v0.16b, v0.16b, v19.16b", "orr v0.16b, v0.16b, v20.16b",
            "orr v0.16b, v0.16b, v21.16b", "orr v0.16b, v0.16b, v22.16b", "orr v0.16b, v0.16b, v23.16b",
            "umaxv b0, v0.16b",
            "fmov {vector:w}, s0",
            saved = out(reg) _,
            seen = out(reg) _,
            mode = in(reg) TOWARDS_ZERO,
            flag = in(reg) flag.as_ptr(),
            flags = out(reg) flags,
            rounding = out(reg) rounding,
            general = out(reg) general,
            vector = out(reg) vector,
            out("x8") _, out("x9") _, out("x10") _, out("x11") _, out("x12") _, out("x13") _, out("x14") _,
            out("x15") _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v16") _, out("v17") _, out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _,
            out("v23") _, out("v24") _,
            options(nostack),
        );
    }
    Damage {
        flags: flags != ZERO_AND_CARRY,
        general: general != 0,
        vector: vector & 0xff != 0,
        rounding: rounding & TOWARDS_ZERO != TOWARDS_ZERO,
    }
}

/// Overwrites all of these registers with other values.
pub(super) fn overwrite() {
    // SAFETY: every register that is changed is declared, and no memory is accessed.
    unsafe {
        asm!(
            "mov x8, #-1", "mov x9, #-1", "mov x10, #-1", "mov x11, #-1", "mov x12, #-1", "mov x13, #-1",
            "mov x14, #-1", "mov x15, #-1",
            "movi v0.16b, #1", "movi v1.16b, #1", "movi v2.16b, #1", "movi v3.16b, #1", "movi v4.16b, #1",
            "movi v5.16b, #1", "movi v6.16b, #1", "movi v7.16b, #1", "movi v16.16b, #1", "movi v17.16b, #1",
            "movi v18.16b, #1", "movi v19.16b, #1", "movi v20.16b, #1", "movi v21.16b, #1", "movi v22.16b, #1",
            "movi v23.16b, #1",
            // The comparison with the opposite result.
            "mov x8, #5",
            "cmp x8, #4",
            out("x8") _, out("x9") _, out("x10") _, out("x11") _, out("x12") _, out("x13") _, out("x14") _,
            out("x15") _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v16") _, out("v17") _, out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _,
            out("v23") _,
            options(nomem, nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_registers_without_preemption() {
        let flag = AtomicU64::new(1);
        assert_eq!(hold_until(&flag), Damage::default());
        overwrite();
        assert_eq!(hold_until(&flag), Damage::default());
    }
}
