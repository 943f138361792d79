//! x86-64: flags, the general registers that the loop does not need, the rounding mode, and all
//! `xmm` registers.

use std::arch::asm;
use std::sync::atomic::AtomicU64;

use super::Damage;

pub(super) const IS_KNOWN: bool = true;
pub(super) const TEXT: &str =
    "flags, general and vector registers and the rounding mode survive a preemption";

/// Carry, parity, zero, sign and overflow. `cmp` of 5 with 5 sets zero and parity.
const FLAGS: u64 = 0x8c5;
const ZERO_AND_PARITY: u64 = 0x44;

/// Rounding toward zero, which is not used otherwise; all exceptions are masked, as in the default.
const TOWARDS_ZERO: u32 = 0x7f80;

/// Waits, with known values in all registers, until `flag` is nonzero, and returns the registers
/// that have changed.
pub(super) fn hold_until(flag: &AtomicU64) -> Damage {
    let pattern = [0x5ca1_ab1e_0000_0001_u64, 0xdead_10cc_0000_0002];
    let (flags, general, vector): (u64, u64, u64);
    let mut saved = 0_u32;
    let mut control = TOWARDS_ZERO;
    // SAFETY: the block reads `flag` and `pattern` and writes `saved` and `control`, all of which
    // outlive it, and the stack below the stack pointer, which the block may use. Every register
    // that it changes is declared. The rounding mode is restored before the end.
    unsafe {
        asm!(
            "stmxcsr [{saved}]",
            "ldmxcsr [{control}]",
            // The same pattern in all vector registers, another one in each general register.
            "movdqu xmm0, [{pattern}]",
            "movdqa xmm1, xmm0", "movdqa xmm2, xmm0", "movdqa xmm3, xmm0", "movdqa xmm4, xmm0",
            "movdqa xmm5, xmm0", "movdqa xmm6, xmm0", "movdqa xmm7, xmm0", "movdqa xmm8, xmm0",
            "movdqa xmm9, xmm0", "movdqa xmm10, xmm0", "movdqa xmm11, xmm0", "movdqa xmm12, xmm0",
            "movdqa xmm13, xmm0", "movdqa xmm14, xmm0", "movdqa xmm15, xmm0",
            "mov r8, 8", "mov r9, 9", "mov r10, 10", "mov rdx, 2",
            // The comparison whose result must survive, and a loop that does not change it.
            "mov eax, 5",
            "cmp eax, 5",
            "2:",
            "mov rcx, [{flag}]",
            "jrcxz 2b",
            "pushfq",
            "pop {flags}",
            // The changes in the general registers.
            "xor r8, 8", "xor r9, 9", "xor r10, 10", "xor rdx, 2", "xor rax, 5",
            "or r8, r9", "or r8, r10", "or r8, rdx", "or r8, rax",
            "mov {general}, r8",
            // A lane of ones for each vector register that still equals the pattern, combined by
            // `and`.
            "pcmpeqd xmm1, xmm0", "pcmpeqd xmm2, xmm0", "pcmpeqd xmm3, xmm0", "pcmpeqd xmm4, xmm0",
            "pcmpeqd xmm5, xmm0", "pcmpeqd xmm6, xmm0", "pcmpeqd xmm7, xmm0", "pcmpeqd xmm8, xmm0",
            "pcmpeqd xmm9, xmm0", "pcmpeqd xmm10, xmm0", "pcmpeqd xmm11, xmm0", "pcmpeqd xmm12, xmm0",
            "pcmpeqd xmm13, xmm0", "pcmpeqd xmm14, xmm0", "pcmpeqd xmm15, xmm0",
            "pand xmm1, xmm2", "pand xmm1, xmm3", "pand xmm1, xmm4", "pand xmm1, xmm5",
            "pand xmm1, xmm6", "pand xmm1, xmm7", "pand xmm1, xmm8", "pand xmm1, xmm9",
            "pand xmm1, xmm10", "pand xmm1, xmm11", "pand xmm1, xmm12", "pand xmm1, xmm13",
            "pand xmm1, xmm14", "pand xmm1, xmm15",
            // All of them equal the first, and the first equals the pattern in memory.
            "movdqu xmm2, [{pattern}]",
            "pcmpeqd xmm0, xmm2",
            "pand xmm1, xmm0",
            "pmovmskb ecx, xmm1",
            "mov {vector}, rcx",
            "stmxcsr [{control}]",
            "ldmxcsr [{saved}]",
            saved = in(reg) &raw mut saved,
            control = in(reg) &raw mut control,
            pattern = in(reg) pattern.as_ptr(),
            flag = in(reg) flag.as_ptr(),
            flags = out(reg) flags,
            general = out(reg) general,
            vector = out(reg) vector,
            out("rax") _, out("rcx") _, out("rdx") _, out("r8") _, out("r9") _, out("r10") _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
        );
    }
    Damage {
        flags: flags & FLAGS != ZERO_AND_PARITY,
        general: general != 0,
        vector: vector != 0xffff,
        // The lowest bits are exception flags, not modes.
        rounding: (control ^ TOWARDS_ZERO) & !0x3f != 0,
    }
}

/// Overwrites all of these registers with other values.
pub(super) fn overwrite() {
    // SAFETY: every register that is changed is declared, and no memory is accessed. The rounding
    // mode is not changed: this thread has a different one anyway.
    unsafe {
        asm!(
            "mov rax, -1", "mov rcx, -1", "mov rdx, -1", "mov rsi, -1", "mov rdi, -1", "mov r8, -1", "mov r9, -1",
            "mov r10, -1", "mov r11, -1", "mov r12, -1", "mov r13, -1", "mov r14, -1", "mov r15, -1",
            "pcmpeqd xmm0, xmm0", "pcmpeqd xmm1, xmm1", "pcmpeqd xmm2, xmm2", "pcmpeqd xmm3, xmm3",
            "pcmpeqd xmm4, xmm4", "pcmpeqd xmm5, xmm5", "pcmpeqd xmm6, xmm6", "pcmpeqd xmm7, xmm7",
            "pcmpeqd xmm8, xmm8", "pcmpeqd xmm9, xmm9", "pcmpeqd xmm10, xmm10", "pcmpeqd xmm11, xmm11",
            "pcmpeqd xmm12, xmm12", "pcmpeqd xmm13, xmm13", "pcmpeqd xmm14, xmm14", "pcmpeqd xmm15, xmm15",
            // The comparison with the opposite result.
            "mov eax, 5",
            "cmp eax, 4",
            out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _, out("r8") _, out("r9") _,
            out("r10") _, out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nomem, nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn keeps_registers_without_preemption() {
        let flag = AtomicU64::new(1);
        assert_eq!(hold_until(&flag), Damage::default());
        overwrite();
        assert_eq!(hold_until(&flag), Damage::default());
        assert_eq!(flag.load(Ordering::Relaxed), 1);
    }
}
