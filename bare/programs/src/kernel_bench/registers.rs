//! Tests that registers, flags and the rounding mode survive a preemption: a loop of instructions
//! that change no flag waits for it with known values in them, and the preempting thread changes
//! them all.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};

use super::rules::event;
use super::{Kernel, STACKS, Thread};

/// The observation if nothing has changed.
pub(super) const PRESERVED: &str = "all as they were";

static PREEMPTED: AtomicU32 = AtomicU32::new(0);

pub(super) fn survive(_: ()) {
    PREEMPTED.store(0, Ordering::Relaxed);
    let preempts = |()| {
        Thread::sleep_until(Kernel::now() + 20_000).unwrap();
        overwrite();
        PREEMPTED.store(1, Ordering::Relaxed);
    };
    Thread::spawn(6, &STACKS[1], preempts, ()).unwrap();
    let changed = hold_until(&PREEMPTED);
    for (what, changed) in
        ["flags changed", "general registers changed", "vector registers changed", "rounding changed"]
            .into_iter()
            .zip(changed)
    {
        if changed {
            event(what);
        }
    }
    if changed == [false; 4] {
        event(PRESERVED);
    }
}

/// Rounding towards zero.
const ROUNDING: u32 = 0b11 << 22;
/// The flags negative, zero, carry and overflow after a comparison of equals.
const EQUAL: u32 = 0b0110 << 28;

/// Waits with known values until `flag` is not 0. Returns whether the flags, the general registers,
/// the vector registers and the rounding mode have changed.
#[cfg(target_arch = "arm")]
#[inline(never)]
fn hold_until(flag: &AtomicU32) -> [bool; 4] {
    let (flags, general, vector, rounding): (u32, u32, u32, u32);
    // SAFETY: reads the flag, and changes only the named registers and the rounding mode, which is
    // restored at the end. The jump goes to one of the next two instructions, because the flag is 0
    // or 1.
    unsafe {
        asm!(
            "vmsr fpscr, {rounding}",
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vmov d\\n, {value}, {value}",
            ".endr",
            ".irp n,8,9,10,12,14",
            "mov r\\n, {value}",
            ".endr",
            "cmp {value}, {value}",
            "2:",
            "ldr {t}, [{flag}]",
            "add {t}, pc, {t}, lsl #2",
            "bx {t}",
            "b 2b",
            "mrs {flags}, apsr",
            "mov {t}, #0",
            ".irp n,8,9,10,12,14",
            "eor r\\n, r\\n, {value}",
            "orr {t}, {t}, r\\n",
            ".endr",
            "mov r8, {t}",
            "mov r9, #0",
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vmov r10, r12, d\\n",
            "eor r10, r10, {value}",
            "eor r12, r12, {value}",
            "orr r9, r9, r10",
            "orr r9, r9, r12",
            ".endr",
            "vmrs {rounding}, fpscr",
            "mov {t}, #0",
            "vmsr fpscr, {t}",
            value = in(reg) 0x5A5A_1234,
            flag = in(reg) flag.as_ptr(),
            t = out(reg) _,
            flags = out(reg) flags,
            rounding = inout(reg) ROUNDING => rounding,
            out("r8") general, out("r9") vector, out("r10") _, out("r12") _, out("r14") _,
            out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _, out("d5") _, out("d6") _, out("d7") _,
            out("d8") _, out("d9") _, out("d10") _, out("d11") _, out("d12") _, out("d13") _, out("d14") _, out("d15") _,
            options(nostack),
        );
    }
    [flags & 0xF << 28 != EQUAL, general != 0, vector != 0, rounding & ROUNDING != ROUNDING]
}

/// Overwrites all of these with other values.
#[cfg(target_arch = "arm")]
fn overwrite() {
    // SAFETY: changes only the named registers.
    unsafe {
        asm!(
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vmov d\\n, {value}, {value}",
            ".endr",
            ".irp n,8,9,10,12,14",
            "mov r\\n, {value}",
            ".endr",
            "cmp {value}, #0",
            value = in(reg) 7,
            out("r8") _, out("r9") _, out("r10") _, out("r12") _, out("r14") _,
            out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _, out("d5") _, out("d6") _, out("d7") _,
            out("d8") _, out("d9") _, out("d10") _, out("d11") _, out("d12") _, out("d13") _, out("d14") _, out("d15") _,
            options(nostack, nomem),
        );
    }
}

/// Waits with known values until `flag` is not 0. Returns whether the flags, the general registers,
/// the vector registers and the rounding mode have changed.
#[cfg(target_arch = "aarch64")]
#[inline(never)]
fn hold_until(flag: &AtomicU32) -> [bool; 4] {
    let (flags, general, vector, rounding): (u64, u64, u64, u64);
    // SAFETY: reads the flag, and changes only the named registers and the rounding mode, which is
    // restored at the end.
    unsafe {
        asm!(
            "msr fpcr, {rounding}",
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            "dup v\\n\\().2d, {value}",
            ".endr",
            ".irp n,9,10,11,12,13,14,15,20,21,22,23,24,25,26,27,28",
            "mov x\\n, {value}",
            ".endr",
            "cmp {value}, {value}",
            "2:",
            "ldr {t:w}, [{flag}]",
            "cbz {t:w}, 2b",
            "mrs {flags}, nzcv",
            "mov {t}, #0",
            ".irp n,9,10,11,12,13,14,15,20,21,22,23,24,25,26,27,28",
            "eor x\\n, x\\n, {value}",
            "orr {t}, {t}, x\\n",
            ".endr",
            "mov x9, {t}",
            "mov x10, #0",
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            "mov x11, v\\n\\().d[0]",
            "mov x12, v\\n\\().d[1]",
            "eor x11, x11, {value}",
            "eor x12, x12, {value}",
            "orr x10, x10, x11",
            "orr x10, x10, x12",
            ".endr",
            "mrs {rounding}, fpcr",
            "msr fpcr, xzr",
            value = in(reg) 0x5A5A_1234_0F0F_8765_u64,
            flag = in(reg) flag.as_ptr(),
            t = out(reg) _,
            flags = out(reg) flags,
            rounding = inout(reg) u64::from(ROUNDING) => rounding,
            out("x9") general, out("x10") vector, out("x11") _, out("x12") _, out("x13") _, out("x14") _, out("x15") _,
            out("x20") _, out("x21") _, out("x22") _, out("x23") _, out("x24") _, out("x25") _, out("x26") _,
            out("x27") _, out("x28") _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v8") _, out("v9") _, out("v10") _, out("v11") _, out("v12") _, out("v13") _, out("v14") _, out("v15") _,
            out("v16") _, out("v17") _, out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _, out("v23") _,
            out("v24") _, out("v25") _, out("v26") _, out("v27") _, out("v28") _, out("v29") _, out("v30") _, out("v31") _,
            options(nostack),
        );
    }
    let is_changed = |value: u64, mask: u32, expected: u32| value as u32 & mask != expected;
    [is_changed(flags, 0xF << 28, EQUAL), general != 0, vector != 0, is_changed(rounding, ROUNDING, ROUNDING)]
}

/// Overwrites all of these with other values.
#[cfg(target_arch = "aarch64")]
fn overwrite() {
    // SAFETY: changes only the named registers.
    unsafe {
        asm!(
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            "dup v\\n\\().2d, {value}",
            ".endr",
            ".irp n,9,10,11,12,13,14,15,20,21,22,23,24,25,26,27,28",
            "mov x\\n, {value}",
            ".endr",
            "cmp {value}, #0",
            value = in(reg) 7_u64,
            out("x9") _, out("x10") _, out("x11") _, out("x12") _, out("x13") _, out("x14") _, out("x15") _,
            out("x20") _, out("x21") _, out("x22") _, out("x23") _, out("x24") _, out("x25") _, out("x26") _,
            out("x27") _, out("x28") _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v8") _, out("v9") _, out("v10") _, out("v11") _, out("v12") _, out("v13") _, out("v14") _, out("v15") _,
            out("v16") _, out("v17") _, out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _, out("v23") _,
            out("v24") _, out("v25") _, out("v26") _, out("v27") _, out("v28") _, out("v29") _, out("v30") _, out("v31") _,
            options(nostack, nomem),
        );
    }
}
