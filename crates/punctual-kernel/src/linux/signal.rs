//! The signal that preempts: its handler, and how a thread goes on that it has interrupted.
//!
//! # Where the state of a preempted thread is
//!
//! Linux saves everything that the interrupted code uses in the signal's frame, below the red zone of the stack that is current:
//! registers, flags and, by XSAVE or its like, the FPU. The handler runs as a function on the same stack, and a switch in it is
//! one between functions. The frame stays where it is until the thread is continued: then `rt_sigreturn` restores it. Linux
//! keeps nothing about signals that have not returned, so they may return in any order.
//!
//! # Why frames do not pile up
//!
//! A thread must not be interrupted again by a signal that needs a frame of its own before it is rid of the last. Neither of two
//! ways of keeping a signal out does for that alone. Blocked by Linux, it would stay so for a thread to which the handler
//! switches, and to unblock it takes a system call, which a voluntary switch must not need. Kept out by a flag that the handler
//! looks at, it comes in between where the flag is cleared and where `rt_sigreturn` takes effect, once or, if signals come as fast
//! as they are dealt with, each time again, one frame below the other.
//!
//! So the two take turns, and the end is a section that is begun again:
//!
//! 1. Linux blocks the signal as it enters the handler. If interrupts are masked, the handler notes that there is something to
//!    be done and returns: whoever masks them does it when he stops to.
//! 2. Otherwise the handler masks interrupts, and only then unblocks the signal. From here on every thread runs with the signal
//!    unblocked, so no switch has to change that.
//! 3. It does what interrupts ask for, and switches, maybe for long. The mask of interrupts goes from thread to thread as in any
//!    switch: whoever is continued is in a masked section, and ends it.
//! 4. When the thread is continued it is in [`resume`], which allows interrupts, looks whether something has been noted meanwhile,
//!    and has Linux restore the frame. A signal between those steps finds, by the address of the instruction that it has
//!    interrupted, that nothing has been lost yet: the frame is whole, and the stack pointer is at it. Instead of beginning anew
//!    below, it masks interrupts and sends the thread back to the beginning of [`resume`], which does what is to be done.
//!    After the system call the thread is where it was before step 1, with the mask of signals that it had there.
//!
//! So at every instant there is at most one frame in which a thread waits, and one of a handler that only looks (steps 1 and 4) and
//! is not interrupted by this signal. That bounds what preemption takes of a stack, however fast signals come.
//!
//! Handlers of other signals on this thread have to block this one (`sa_mask`): what they interrupt is no thread of the kernel's.

use core::arch::naked_asm;
use core::ops::Range;
use core::sync::atomic::{Ordering, compiler_fence};
use core::{mem, ptr};
use std::io;

use super::{HAS_TRAPPED, IS_KERNELS, IS_MASKED, IS_PENDING, Linux, serve};
use crate::Port;

/// What preempts. By default it does nothing, is not queued, and programs hardly use it.
pub(super) const SIGNAL: i32 = libc::SIGURG;

/// What a perf event sends besides. Where this says "the signal", it is both: each is blocked while the other is handled.
const TRAP: i32 = libc::SIGTRAP;

/// What interrupts of the program need at least, besides frames of signals.
const HANDLERS: usize = 8 * 1024;

/// Has Linux call the handler, also for traps of a perf event.
pub(super) fn handle(traps: bool) -> io::Result<()> {
    // SAFETY: asks. The answer is 0 where Linux does not know.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    if 2 * frame + HANDLERS > Linux::MIN_STACK {
        return Err(io::Error::other(std::format!(
            "a signal takes {frame} bytes on this processor, more than stacks of this port have room for: use Preemption::Polled"
        )));
    }
    // SAFETY: zeroed it is an action without flags and mask; what it is set to are valid values, and the handler is argued above.
    let outcome = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        if traps {
            action.sa_mask = both();
        }
        match libc::sigaction(SIGNAL, &action, ptr::null_mut()) {
            0 if traps => libc::sigaction(TRAP, &action, ptr::null_mut()),
            outcome => outcome,
        }
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The handler. The signal is blocked until it returns or unblocks it.
pub(super) extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // Somebody may send it to the process, and Linux choose another thread.
    if !IS_KERNELS.get() {
        return;
    }
    if signal == TRAP {
        HAS_TRAPPED.store(true, Ordering::Relaxed);
    }
    IS_PENDING.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    if IS_MASKED.load(Ordering::Relaxed) {
        return;
    }
    IS_MASKED.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the context of what was interrupted, which is this handler's until it returns.
    let instruction = unsafe { &mut *instruction(context) };
    if resume_code().contains(&(*instruction as usize)) {
        *instruction = resume_code().start as _;
        return;
    }
    unblock();
    // SAFETY: interrupts are masked and the signal is not blocked; the frame is that of this call. What this function has on the
    // stack is below it and needs no drop.
    unsafe { resume_at(info, context) }
}

/// Unblocks the signal. `errno` stays as it is.
fn unblock() {
    // SAFETY: a set that is filled in; the mask may be changed in a handler.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &both(), ptr::null_mut()) };
}

fn both() -> libc::sigset_t {
    // SAFETY: a set that is filled in.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, SIGNAL);
        libc::sigaddset(&mut set, TRAP);
        set
    }
}

/// What is done on the frame of an interrupted thread. `errno` is its own.
extern "C" fn serve_interrupted() {
    // SAFETY: the place of this thread's `errno`: the thread of Linux is the same throughout.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        serve();
        *errno = kept;
    }
}

/// How many bytes of code [`resume`] has.
const RESUME_SIZE: usize = 64;

/// Where the instructions of [`resume`] are.
pub(super) fn resume_code() -> Range<usize> {
    let start = resume as *const () as usize;
    start..start + RESUME_SIZE
}

#[cfg(target_arch = "x86_64")]
unsafe fn instruction(context: *mut libc::ucontext_t) -> *mut libc::greg_t {
    // SAFETY: a place in it.
    unsafe { &raw mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize] }
}

#[cfg(target_arch = "aarch64")]
unsafe fn instruction(context: *mut libc::ucontext_t) -> *mut libc::c_ulonglong {
    // SAFETY: a place in it.
    unsafe { &raw mut (*context).uc_mcontext.pc }
}

/// The stack pointer of what was interrupted.
///
/// # Safety
/// The context is that of a handler that runs.
pub(super) unsafe fn stack_pointer(context: *const libc::ucontext_t) -> usize {
    // SAFETY: a place in it.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        return (*context).uc_mcontext.gregs[libc::REG_RSP as usize] as usize;
        #[cfg(target_arch = "aarch64")]
        return (*context).uc_mcontext.sp as usize;
    }
}

/// Continues in [`resume`], with the stack pointer where `rt_sigreturn` expects it.
///
/// # Safety
/// Interrupts are masked and the signal is not blocked; both arguments are those of the handler that calls.
unsafe fn resume_at(info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) -> ! {
    // The handler of x86-64 would return to an address just below the context, and on aarch64 the frame begins with the information.
    let frame =
        if cfg!(target_arch = "x86_64") { context.expose_provenance() } else { info.expose_provenance() };
    // SAFETY: the frame lies above everything that has been put on this stack since, and `resume` needs no more.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov rsp, {}", "jmp {}", in(reg) frame, sym resume, options(noreturn));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("mov sp, {}", "b {}", in(reg) frame, sym resume, options(noreturn));
    }
}

/// Does what interrupts ask for, and lets the thread go on whose frame is at the stack pointer.
///
/// Interrupts are masked at the beginning. Each instruction may be followed by the first instead of by the next.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn resume() {
    naked_asm!(
        "2:",
        "call {serve}",
        "mov byte ptr [rip + {masked}], 0",
        "cmp byte ptr [rip + {pending}], 0",
        "je 3f",
        "mov byte ptr [rip + {masked}], 1",
        "jmp 2b",
        "3:",
        "mov eax, {sigreturn}",
        "syscall",
        ".org 2b + {size}, 0xCC",
        serve = sym serve_interrupted,
        masked = sym IS_MASKED,
        pending = sym IS_PENDING,
        sigreturn = const libc::SYS_rt_sigreturn,
        size = const RESUME_SIZE,
    )
}

/// Does what interrupts ask for, and lets the thread go on whose frame is at the stack pointer.
///
/// Interrupts are masked at the beginning. Each instruction may be followed by the first instead of by the next.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn resume() {
    naked_asm!(
        "2:",
        "bl {serve}",
        "adrp x9, {masked}",
        "add x9, x9, :lo12:{masked}",
        "adrp x10, {pending}",
        "add x10, x10, :lo12:{pending}",
        "strb wzr, [x9]",
        "ldrb w11, [x10]",
        "cbz w11, 3f",
        "mov w11, #1",
        "strb w11, [x9]",
        "b 2b",
        "3:",
        "mov x8, #{sigreturn}",
        "svc #0",
        "brk #1",
        ".org 2b + {size}",
        serve = sym serve_interrupted,
        masked = sym IS_MASKED,
        pending = sym IS_PENDING,
        sigreturn = const libc::SYS_rt_sigreturn,
        size = const RESUME_SIZE,
    )
}
