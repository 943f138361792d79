//! Switching between stacks, and preparing a new one, for each kind of processor. Ports are built
//! from these functions.
//!
//! A switch is a function call, so the caller-saved state is saved. It saves the callee-saved state
//! on the stack that it leaves, with the rounding mode and similar control bits, and loads the same
//! from the other. The flags need not be saved: a call destroys them. An interrupt saves all other
//! state, on the same stack, before it calls the kernel.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm")))]
compile_error!(
    "punctual-kernel: cannot switch threads on this processor: supported are x86-64, aarch64 and arm"
);

use core::arch::naked_asm;

use crate::Port;
use crate::thread::begin;

/// Prepares a new thread: see [`Port::prepare`].
///
/// # Safety
/// As for [`Port::prepare`].
#[inline]
pub unsafe fn prepare(top: *mut u8, entry: unsafe extern "C" fn()) -> *mut u8 {
    // SAFETY: there is enough space below `top`, which is aligned to 16 bytes. The other registers
    // may have any initial value.
    unsafe {
        let context = top.cast::<usize>().sub(FRAME);
        context.add(CONTROL.0).write(CONTROL.1);
        context.add(RETURN).write(entry as usize);
        context.cast()
    }
}

/// The entry point of a thread, with the argument of [`begin`] at the stack pointer.
///
/// # Safety
/// Reached by a switch to a context that [`prepare`] has created.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter<P: Port, A>() {
    // A frame pointer of 0 ends a backtrace. The stack is aligned as required at a call.
    #[cfg(target_arch = "x86_64")]
    naked_asm!("mov rdi, rsp", "xor ebp, ebp", "call {}", "ud2", sym begin::<P, A>);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("mov x0, sp", "mov x29, #0", "bl {}", "brk #1", sym begin::<P, A>);
    #[cfg(target_arch = "arm")]
    naked_asm!("mov r0, sp", "mov r11, #0", "bl {}", "udf #1", sym begin::<P, A>);
}

/// Saves and continues: see [`Port::switch`](crate::Port::switch).
///
/// # Safety
/// As for [`Port::switch`](crate::Port::switch).
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub unsafe extern "C" fn switch(from: *mut *mut u8, to: *mut u8) {
    // rdi = from, rsi = to. In the System V ABI a function preserves rbx, rbp, r12 to r15, the
    // stack pointer and the control bits of MXCSR and of the x87 unit. The status bits of MXCSR are
    // saved too, which is harmless.
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

#[cfg(target_arch = "x86_64")]
mod layout {
    /// The number of words that `switch` loads from the stack.
    pub(super) const FRAME: usize = 8;
    pub(super) const RETURN: usize = 7;
    /// The initial MXCSR and x87 control word of a process: all exceptions masked, round to
    /// nearest, extended precision.
    pub(super) const CONTROL: (usize, usize) = (0, 0x037F_0000_1F80);
}

/// Saves and continues: see [`Port::switch`](crate::Port::switch).
///
/// # Safety
/// As for [`Port::switch`](crate::Port::switch).
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub unsafe extern "C" fn switch(from: *mut *mut u8, to: *mut u8) {
    // x0 = from, x1 = to. In the procedure call standard a function preserves x19 to x29, the stack
    // pointer and d8 to d15; x30 is the return address, and FPCR the rounding mode.
    naked_asm!(
        "sub sp, sp, #176",
        "stp x19, x20, [sp]",
        "stp x21, x22, [sp, #16]",
        "stp x23, x24, [sp, #32]",
        "stp x25, x26, [sp, #48]",
        "stp x27, x28, [sp, #64]",
        "stp x29, x30, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "mrs x2, fpcr",
        "str x2, [sp, #160]",
        "mov x2, sp",
        "str x2, [x0]",
        "mov sp, x1",
        "ldr x2, [sp, #160]",
        "msr fpcr, x2",
        "ldp x19, x20, [sp]",
        "ldp x21, x22, [sp, #16]",
        "ldp x23, x24, [sp, #32]",
        "ldp x25, x26, [sp, #48]",
        "ldp x27, x28, [sp, #64]",
        "ldp x29, x30, [sp, #80]",
        "ldp d8, d9, [sp, #96]",
        "ldp d10, d11, [sp, #112]",
        "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "add sp, sp, #176",
        "ret",
    )
}

#[cfg(target_arch = "aarch64")]
mod layout {
    pub(super) const FRAME: usize = 22;
    /// FPCR: round to nearest, no exceptions.
    pub(super) const CONTROL: (usize, usize) = (20, 0);
    /// x30.
    pub(super) const RETURN: usize = 11;
}

/// Saves and continues: see [`Port::switch`](crate::Port::switch).
///
/// # Safety
/// As for [`Port::switch`](crate::Port::switch).
#[cfg(target_arch = "arm")]
#[unsafe(naked)]
pub unsafe extern "C" fn switch(from: *mut *mut u8, to: *mut u8) {
    // r0 = from, r1 = to. In the procedure call standard a function preserves r4 to r11, the stack
    // pointer and d8 to d15; lr is the return address, and FPSCR, in r3, has the rounding mode. The
    // frame is a multiple of 8 bytes.
    naked_asm!(
        ".fpu vfpv3-d16",
        "vmrs r3, fpscr",
        "vpush {{d8-d15}}",
        "push {{r3-r11, lr}}",
        "str sp, [r0]",
        "mov sp, r1",
        "pop {{r3-r11, lr}}",
        "vpop {{d8-d15}}",
        "vmsr fpscr, r3",
        "bx lr",
    )
}

#[cfg(target_arch = "arm")]
mod layout {
    /// r3 to r11, lr, d8 to d15.
    pub(super) const FRAME: usize = 10 + 16;
    /// r3, for FPSCR: round to nearest, no exceptions.
    pub(super) const CONTROL: (usize, usize) = (0, 0);
    /// lr.
    pub(super) const RETURN: usize = 9;
}

use layout::*;
