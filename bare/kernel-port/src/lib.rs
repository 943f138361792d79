//! The port of `punctual-kernel` to bare boards.
//!
//! ```ignore
//! use punctual_kernel_bare::Board;
//!
//! type Kernel = punctual_kernel::Kernel<Board>;
//! type Thread = punctual_kernel::Thread<Board>;
//!
//! static STACK: punctual_kernel::Stack<Board, 8192> = punctual_kernel::Stack::new();
//!
//! punctual_bare::entry!(main);
//!
//! fn main() -> ! {
//!     punctual_kernel_bare::init();
//!     Thread::spawn(5, &STACK, hello, ()).unwrap();
//!     Kernel::run();
//!     punctual_bare::exit(0)
//! }
//! ```
//!
//! [`init`] makes the kernel the handler of all interrupts. Then threads are spawned, and
//! `Kernel::run` runs them. The core's timer is the kernel's alarm, and its counter is the clock.
//! The kernel does not use the other cores, which sleep.
//!
//! An interrupt is handled on the stack of the interrupted thread. The vectors of `punctual-bare`
//! first save the caller-saved registers there, with the flags and the caller-saved registers of
//! the FPU. If another thread must run next, the kernel switches in the handler, which saves the
//! remaining registers. The handler returns when the interrupted thread continues.
//!
//! The port does not use user mode, in which threads could not access the kernel. The page below a
//! stack cannot be accessed, so a stack overflow ends the program there, with a report of the
//! registers and the backtrace.
#![no_std]

use core::arch::asm;

use punctual_bare::interrupt::{self, Handler};
use punctual_bare::memory::GuardPage;
use punctual_bare::time;
use punctual_kernel::{InterruptSlot, Kernel, Port, ThreadSlot};

/// Maximum number of threads.
pub const THREADS: usize = 16;

/// Number of interrupt slots in the kernel, enough for all interrupts that boards name.
pub const INTERRUPTS: usize = 192;

/// The port: core 0 of the board.
#[derive(Debug)]
pub struct Board;

static SLOTS: [ThreadSlot<Board>; THREADS] = [const { ThreadSlot::new() }; THREADS];
static INTERRUPT_SLOTS: [InterruptSlot<Board>; INTERRUPTS] = [const { InterruptSlot::new() }; INTERRUPTS];
static KERNEL: Kernel<Board> = Kernel::new(&SLOTS, &INTERRUPT_SLOTS);

static HANDLER: Handler = Handler { timer, interrupt: handle, after };

/// Makes the kernel the handler of all interrupts. Must be called before `Kernel::run`.
pub fn init() {
    interrupt::handle(&HANDLER);
    time::enable_alarm();
}

fn timer() {
    time::disarm();
    // SAFETY: the vectors have masked interrupts, and `after` follows.
    unsafe { KERNEL.timer_interrupt() };
}

fn handle(number: u32) {
    // SAFETY: as above.
    if !unsafe { KERNEL.interrupt(number) } {
        // No thread would lower its line.
        interrupt::disable(number);
    }
}

fn after() {
    // SAFETY: interrupts are still masked, this is the last step of the handler, and the vectors
    // have saved the caller-saved registers.
    unsafe { KERNEL.interrupt_end() };
}

// SAFETY: only core 0 runs, and the slots are private to this module. With IRQs masked, nothing
// else runs on this core, because FIQs are always masked. `switch` and `prepare` are those for this
// processor.
unsafe impl Port for Board {
    type Home = ();
    const HOME: () = ();
    /// Value of CPSR or DAIF.
    type Mask = usize;
    // The frame that an interrupt saves, and the stack of its handler.
    const MIN_STACK: usize = if cfg!(target_arch = "arm") { 1024 } else { 2048 };

    type Guard = GuardPage;
    const GUARD: GuardPage = GuardPage::new();
    const GUARDED: bool = true;

    fn guard(guard: &'static GuardPage) {
        guard.forbid();
    }

    #[inline(always)]
    unsafe fn enter((): &()) -> &'static Kernel<Self> {
        &KERNEL
    }

    #[inline(always)]
    fn mask() -> usize {
        let before;
        // SAFETY: nothing relies on being interrupted. Without `nomem`, memory accesses stay after
        // the mask.
        unsafe {
            #[cfg(target_arch = "arm")]
            asm!("mrs {}, cpsr", "cpsid i", out(reg) before, options(nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            asm!("mrs {}, daif", "msr daifset, #2", out(reg) before, options(nostack, preserves_flags));
        }
        before
    }

    #[inline(always)]
    fn was_masked(mask: usize) -> bool {
        mask & (1 << 7) != 0
    }

    #[inline(always)]
    unsafe fn restore(mask: usize) {
        // SAFETY: `mask` returned this value. The vectors preserve all that the interrupted code
        // uses. The flags in the mask are not written.
        unsafe {
            #[cfg(target_arch = "arm")]
            asm!("msr cpsr_c, {}", in(reg) mask, options(nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            asm!("msr daif, {}", in(reg) mask, options(nostack, preserves_flags));
        }
    }

    unsafe fn unmask() {
        // SAFETY: a thread starts here, which the kernel's handler may interrupt.
        unsafe { interrupt::unmask() };
    }

    #[inline(always)]
    unsafe fn prepare(top: *mut u8, entry: unsafe extern "C" fn()) -> *mut u8 {
        // SAFETY: by this function's contract, the stack below `top` is unused and long enough.
        unsafe { punctual_kernel::prepare(top, entry) }
    }

    #[inline(always)]
    unsafe fn switch(from: *mut *mut u8, to: *mut u8) {
        // SAFETY: by this function's contract, interrupts are masked, `from` can be written, and
        // `to` was saved or prepared and has not been continued since.
        unsafe { punctual_kernel::switch(from, to) }
    }

    fn now() -> u64 {
        time::now()
    }

    fn alarm(time: u64) {
        time::alarm(time);
    }

    unsafe fn idle() {
        // A pending interrupt ends the wait, masked or not.
        interrupt::wait();
        // SAFETY: this is the idle loop, which the kernel's handler may interrupt.
        unsafe { interrupt::unmask() };
        interrupt::mask();
    }

    fn enable_interrupt(number: u32) {
        interrupt::enable(number);
    }

    fn disable_interrupt(number: u32) {
        interrupt::disable(number);
    }
}
