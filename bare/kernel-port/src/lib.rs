//! The port of `punctual-kernel` to bare boards.
//!
//! [`init`] makes the kernel the one that gets all interrupts; then threads are spawned, and `Kernel::run` runs them. The timer
//! of the core is the kernel's alarm, its counter the clock. The kernel does not use the other cores, which sleep.
//!
//! An interrupt is handled on the stack of the thread that it interrupts, after the vectors of `punctual-bare` have saved there
//! what a function may change, with the flags and all of that part of the FPU. If another thread goes first then, the kernel
//! switches in the handler, which saves the rest, and the handler returns when the thread goes on.
//!
//! User mode, in which threads could not touch the kernel, is not used.
//! The page below a stack cannot be accessed, so an overflow ends the program there, with the registers and the way to it.
#![no_std]

use core::arch::asm;
use core::cell::UnsafeCell;

use punctual_bare::interrupt::{self, Handler};
use punctual_bare::{memory, time};
use punctual_kernel::{InterruptSlot, Kernel, Port, ThreadSlot};

/// Threads that the kernel has room for.
pub const THREADS: usize = 16;

/// Interrupts that the kernel has slots for: all that boards name.
pub const INTERRUPTS: usize = 192;

/// The port: core 0 of the board.
#[derive(Debug)]
pub struct Board;

/// The page below a stack.
#[repr(C, align(4096))]
pub struct Guard(UnsafeCell<[u8; 4096]>);

// SAFETY: nobody accesses what is in it.
unsafe impl Sync for Guard {}

static SLOTS: [ThreadSlot<Board>; THREADS] = [const { ThreadSlot::new() }; THREADS];
static INTERRUPT_SLOTS: [InterruptSlot<Board>; INTERRUPTS] = [const { InterruptSlot::new() }; INTERRUPTS];
static KERNEL: Kernel<Board> = Kernel::new(&SLOTS, &INTERRUPT_SLOTS);

static HANDLER: Handler = Handler { timer, interrupt: handle, after };

/// Makes the kernel the one that gets all interrupts. Before `Kernel::run`.
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
        // Nobody would lower its line.
        interrupt::disable(number);
    }
}

fn after() {
    // SAFETY: masked still, the last that the handler does, and the vectors have saved what a function may change.
    unsafe { KERNEL.interrupt_end() };
}

// SAFETY: only core 0 runs; the slots are private here. With IRQs masked nothing else runs on it, since FIQs are always masked.
// `switch` and `prepare` are those of the processor.
unsafe impl Port for Board {
    type Home = ();
    const HOME: () = ();
    /// CPSR or DAIF.
    type Mask = usize;
    // What an interrupt saves, and what its handler needs.
    const MIN_STACK: usize = if cfg!(target_arch = "arm") { 1024 } else { 2048 };

    type Guard = Guard;
    const GUARD: Guard = Guard(UnsafeCell::new([0; 4096]));
    const GUARDED: bool = true;

    fn guard(guard: &'static Guard) {
        // SAFETY: nobody has a reference to what is in it, or uses it otherwise, and core 0 is the one that runs.
        unsafe { memory::forbid(guard.0.get().cast()) };
    }

    #[inline(always)]
    unsafe fn enter((): &()) -> &'static Kernel<Self> {
        &KERNEL
    }

    #[inline(always)]
    fn mask() -> usize {
        let before;
        // SAFETY: nothing relies on being interrupted. Without `nomem`, accesses stay behind it.
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
        // SAFETY: of `mask`. The vectors preserve all that the interrupted code uses. The flags in the mask are not written.
        unsafe {
            #[cfg(target_arch = "arm")]
            asm!("msr cpsr_c, {}", in(reg) mask, options(nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            asm!("msr daif, {}", in(reg) mask, options(nostack, preserves_flags));
        }
    }

    unsafe fn unmask() {
        // SAFETY: a thread begins, which the kernel's handler may interrupt.
        unsafe { interrupt::unmask() };
    }

    #[inline(always)]
    unsafe fn prepare(top: *mut u8, entry: unsafe extern "C" fn()) -> *mut u8 {
        // SAFETY: nobody uses the stack below `top`, and it is long enough, by this function's contract.
        unsafe { punctual_kernel::prepare(top, entry) }
    }

    #[inline(always)]
    unsafe fn switch(from: *mut *mut u8, to: *mut u8) {
        // SAFETY: interrupts are masked, `from` can be written, and `to` was saved or prepared and not continued since, by this
        // function's contract.
        unsafe { punctual_kernel::switch(from, to) }
    }

    fn now() -> u64 {
        time::now()
    }

    fn alarm(time: u64) {
        time::alarm(time);
    }

    unsafe fn idle() {
        // It ends by an interrupt that is pending, masked or not.
        interrupt::wait();
        // SAFETY: of the idle loop, which the kernel's handler may interrupt.
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
