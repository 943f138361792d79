//! The signal that preempts: its handler, and the continuation of an interrupted thread.
//!
//! # The state of a preempted thread
//!
//! Linux saves all state of the interrupted code in the signal's frame, below the red zone of the
//! current stack: registers, flags and, by XSAVE or an equivalent, the FPU. The handler runs as a
//! function on the same stack, and a switch in it is one between functions. The frame remains until
//! the thread is continued: then `rt_sigreturn` restores it. Linux records nothing about signals
//! that have not returned, so they may return in any order.
//!
//! # Bounding the number of frames
//!
//! A thread must not be interrupted again by a signal that needs another frame before it has left
//! the previous one. Each of the two ways of excluding a signal is insufficient alone. If Linux
//! blocks it, it would stay blocked for a thread to which the handler switches, and unblocking
//! takes a system call, which a voluntary switch must not need. If a flag that the handler checks
//! excludes it, it can come between clearing the flag and `rt_sigreturn` taking effect, once or, if
//! signals come as fast as they are handled, repeatedly, one frame below the other.
//!
//! So the two are combined, and the end is a restartable section:
//!
//! 1. Linux blocks the signal as it enters the handler. If interrupts are masked, the handler
//!    records pending work and returns: the code that masked them does the work when it unmasks
//!    them.
//! 2. Otherwise the handler masks interrupts, and only then unblocks the signal. From here on every
//!    thread runs with the signal unblocked, so no switch has to change that.
//! 3. It handles the pending interrupts, and switches, possibly for a long time. The interrupt mask
//!    passes from thread to thread as in any switch: a continued thread is in a masked section, and
//!    ends it.
//! 4. When the thread is continued it is in [`resume`], which unmasks interrupts, checks for
//!    pending work, and has Linux restore the frame. A signal between those steps detects, by the
//!    address of the interrupted instruction, that nothing has been lost yet: the frame is
//!    complete, and the stack pointer is at it. Instead of starting another frame below, it masks
//!    interrupts and sends the thread back to the beginning of [`resume`], which does the pending
//!    work. After the system call the thread is where it was before step 1, with its signal mask of
//!    that time.
//!
//! So at every instant there is at most one frame in which a thread waits, and one of a handler
//! that only checks (steps 1 and 4) and is not interrupted by this signal. That bounds the stack
//! that preemption needs, however fast signals come.
//!
//! Handlers of other signals on this thread have to block this one (`sa_mask`): the code they
//! interrupt is not a thread of the kernel.

use core::arch::naked_asm;
use core::ops::Range;
use core::sync::atomic::{Ordering, compiler_fence};
use core::{mem, ptr};
use std::io;

use super::{HAS_TRAPPED, IS_KERNELS, IS_MASKED, IS_PENDING, Linux, serve};
use crate::Port;

/// The preempting signal. By default it is ignored and not queued, and programs rarely use it.
pub(super) const SIGNAL: i32 = libc::SIGURG;

/// The additional signal of a perf event. In this module "the signal" means both: each is blocked
/// while the other is handled.
const TRAP: i32 = libc::SIGTRAP;

/// The minimum stack for the program's interrupt handlers, besides signal frames.
const HANDLERS: usize = 8 * 1024;

/// Installs the handler, also for traps of a perf event.
pub(super) fn handle(traps: bool) -> io::Result<()> {
    // SAFETY: a query. Returns 0 if Linux does not provide the value.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    if 2 * frame + HANDLERS > Linux::MIN_STACK {
        return Err(io::Error::other(std::format!(
            "a signal frame takes {frame} bytes on this processor, too many for this port's stacks: use Preemption::Polled"
        )));
    }
    // SAFETY: a zeroed action has no flags and an empty mask; its fields are set to valid values,
    // and the module documents the handler's soundness.
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
    // The signal may be sent to the process, and Linux choose another thread.
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
    // SAFETY: the context of the interrupted code, which belongs to this handler until it returns.
    let instruction = unsafe { &mut *instruction(context) };
    if resume_code().contains(&(*instruction as usize)) {
        *instruction = resume_code().start as _;
        return;
    }
    unblock();
    // SAFETY: interrupts are masked and the signal is not blocked; the frame is that of this call.
    // This function's locals on the stack are below it and need no drop.
    unsafe { resume_at(info, context) }
}

/// Unblocks the signal. Leaves `errno` unchanged.
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

/// Handles interrupts on the frame of an interrupted thread. Preserves its `errno`.
extern "C" fn serve_interrupted() {
    // SAFETY: the location of this thread's `errno`: the thread of Linux is the same throughout.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        serve();
        *errno = saved;
    }
}

/// The size of [`resume`], in bytes of code.
const RESUME_SIZE: usize = 64;

/// Returns the address range of [`resume`].
pub(super) fn resume_code() -> Range<usize> {
    let start = resume as *const () as usize;
    start..start + RESUME_SIZE
}

#[cfg(target_arch = "x86_64")]
unsafe fn instruction(context: *mut libc::ucontext_t) -> *mut libc::greg_t {
    // SAFETY: a field of the context.
    unsafe { &raw mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize] }
}

#[cfg(target_arch = "aarch64")]
unsafe fn instruction(context: *mut libc::ucontext_t) -> *mut libc::c_ulonglong {
    // SAFETY: a field of the context.
    unsafe { &raw mut (*context).uc_mcontext.pc }
}

/// Returns the stack pointer of the interrupted code.
///
/// # Safety
/// The context belongs to a running handler.
pub(super) unsafe fn stack_pointer(context: *const libc::ucontext_t) -> usize {
    // SAFETY: a field of the context.
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
/// Interrupts are masked and the signal is not blocked; both arguments are those of the calling
/// handler.
unsafe fn resume_at(info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) -> ! {
    // On x86-64 the handler would return to an address just below the context, and on aarch64 the
    // frame begins with the information.
    let frame =
        if cfg!(target_arch = "x86_64") { context.expose_provenance() } else { info.expose_provenance() };
    // SAFETY: the frame is above everything pushed onto this stack since, and `resume` needs no
    // more.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov rsp, {}", "jmp {}", in(reg) frame, sym resume, options(noreturn));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("mov sp, {}", "b {}", in(reg) frame, sym resume, options(noreturn));
    }
}

/// Handles pending interrupts, and continues the thread whose frame is at the stack pointer.
///
/// Interrupts are masked at the beginning. Each instruction may be followed by the first one
/// instead of the next.
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

/// Handles pending interrupts, and continues the thread whose frame is at the stack pointer.
///
/// Interrupts are masked at the beginning. Each instruction may be followed by the first one
/// instead of the next.
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
