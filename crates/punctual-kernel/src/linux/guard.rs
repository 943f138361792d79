//! The guard pages below stacks, and the handling of stack overflows.

use core::cell::UnsafeCell;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};
use core::{mem, ptr};
use std::boxed::Box;
use std::io;
use std::vec;

use super::{IS_KERNELS, KERNEL, signal};
use crate::Fault;

/// The page below a stack.
#[repr(C, align(4096))]
pub struct Guard(UnsafeCell<[u8; SIZE]>);

const SIZE: usize = 4096;

// SAFETY: no code accesses its content.
unsafe impl Sync for Guard {}

impl Guard {
    pub(super) const fn new() -> Self {
        Self(UnsafeCell::new([0; SIZE]))
    }

    /// Protects the page permanently, unless pages are larger on this machine: then only the lowest
    /// word of a stack is checked.
    pub(super) fn forbid(&'static self) {
        // SAFETY: a query; and no code uses the page. If Linux refuses, for lack of memory for its
        // page tables, the page stays unprotected.
        unsafe {
            if libc::sysconf(libc::_SC_PAGESIZE) == SIZE as libc::c_long {
                libc::mprotect(self.0.get().cast(), SIZE, libc::PROT_NONE);
            }
        }
    }
}

/// Installs the handler that reports overflows. It gets a stack of its own, unless Rust has given
/// the thread one already.
pub(super) fn watch() -> io::Result<()> {
    static IS_WATCHED: AtomicBool = AtomicBool::new(false);
    if IS_WATCHED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: structures that are filled in; the handler's stack is never freed; the handler is
    // async-signal-safe.
    unsafe {
        let mut stack: libc::stack_t = mem::zeroed();
        libc::sigaltstack(ptr::null(), &mut stack);
        if stack.ss_flags & libc::SS_DISABLE != 0 {
            let bytes = vec![0_u8; 64 * 1024].into_boxed_slice();
            stack.ss_size = bytes.len();
            stack.ss_sp = Box::leak(bytes).as_mut_ptr().cast();
            stack.ss_flags = 0;
            if libc::sigaltstack(&stack, ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGSEGV, &action, BEFORE.0.get()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The previous fault handler.
struct Before(UnsafeCell<libc::sigaction>);

// SAFETY: written once, before the handler that reads it is installed.
unsafe impl Sync for Before {}

// SAFETY: all zero is the default action.
static BEFORE: Before = Before(UnsafeCell::new(unsafe { mem::zeroed() }));

/// Handles an invalid access: if it is below the stack of the running thread, reports it and ends
/// the process; otherwise the previous handler runs when the instruction is repeated.
extern "C" fn on_fault(_: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the arguments that Linux passes for this signal and the interrupted code.
    let (code, address, stack_pointer) =
        unsafe { ((*info).si_code, (*info).si_addr().addr(), signal::stack_pointer(context.cast())) };
    // Sent by Linux itself if there was no room for a signal frame. Then there is no address.
    let range = match code {
        // SAFETY: a query.
        libc::SI_KERNEL => (stack_pointer, unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize),
        _ => (address, 0),
    };
    if IS_KERNELS.get()
        && let Some(slot) = KERNEL.overflowed_slot(range.0, SIZE, range.1)
    {
        let mut line = Line { bytes: [0; 160], length: 0 };
        let _ = writeln!(line, "punctual-kernel: {}", Fault::StackOverflow(slot));
        // SAFETY: writes initialized bytes; both functions are async-signal-safe.
        unsafe {
            libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.length);
            libc::abort();
        }
    }
    // SAFETY: Linux filled in the action.
    unsafe { libc::sigaction(libc::SIGSEGV, BEFORE.0.get(), ptr::null_mut()) };
}

/// A text built without heap memory.
struct Line {
    bytes: [u8; 160],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let length = text.len().min(room.len());
        room[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}
