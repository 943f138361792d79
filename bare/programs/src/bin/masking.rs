//! The cost of ceilings and spawns with the priorities of a GIC, as RTIC implements them with those
//! of a microcontroller: a lock writes the priority mask and then restores it, and a spawn pends an
//! interrupt without a device. `instructions` measures the implementation of `punctual` for
//! comparison.
//!
//! needs: virt: it raises the interrupts of these devices by hand
#![no_std]
#![no_main]

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};

use programs::cycles;
use punctual_bare::interrupt::{self, Handler};
use punctual_bare::println;

punctual_bare::entry!(main);

/// GICC_PMR of QEMU's `virt`: masks interrupts of this priority and of lower ones, with higher
/// numbers.
const MASK: *mut u32 = 0x0801_0004 as *mut u32;
/// Above the priority that `punctual-bare` gives to all interrupts.
const CEILING: u32 = 0x80;

/// The waiting message; 0 means none.
static MESSAGE: AtomicU32 = AtomicU32::new(0);
static RECEIVED: AtomicU32 = AtomicU32::new(0);

static HANDLER: Handler = Handler { timer: || {}, interrupt: dispatch, after: || {} };

/// Runs the waiting message with interrupts unmasked: the controller admits only higher priorities.
fn dispatch(_: u32) {
    // SAFETY: the handler does not access the state that it interrupts.
    unsafe { interrupt::unmask() };
    let message = MESSAGE.swap(0, Ordering::Relaxed);
    if message != 0 {
        RECEIVED.store(message, Ordering::Relaxed);
    }
    interrupt::mask();
}

/// Raises the ceiling and returns the previous mask. The masked priorities do not interrupt the
/// code that follows.
#[inline(always)]
fn raise(ceiling: u32) -> u32 {
    // SAFETY: the register exists on these boards and affects no memory.
    unsafe {
        let before = MASK.read_volatile();
        if before > ceiling {
            MASK.write_volatile(ceiling);
            // The new mask is in effect before the code that follows.
            barrier();
        }
        before
    }
}

#[inline(always)]
fn barrier() {
    // SAFETY: barriers.
    unsafe {
        #[cfg(target_arch = "arm")]
        asm!("dsb", "isb", options(nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("dsb sy", "isb", options(nostack, preserves_flags));
    }
}

fn main() -> ! {
    cycles::enable();
    interrupt::handle(&HANDLER);
    interrupt::enable(interrupt::RTC);
    // SAFETY: the handler does not access the state that it interrupts.
    unsafe { interrupt::unmask() };
    let begin = cycles::count();
    let overhead = cycles::count().wrapping_sub(begin);
    let mut value = 0_u32;
    let (mut locked, mut spawned) = (0, 0);
    for round in 1..=2 {
        let begin = cycles::count();
        let before = raise(CEILING);
        value = core::hint::black_box(value);
        // SAFETY: as in `raise`.
        unsafe { MASK.write_volatile(before) };
        locked = cycles::count().wrapping_sub(begin) - overhead;

        let begin = cycles::count();
        MESSAGE.store(round, Ordering::Relaxed);
        interrupt::pend(interrupt::RTC);
        while RECEIVED.load(Ordering::Relaxed) != round {}
        spawned = cycles::count().wrapping_sub(begin) - overhead;
    }
    println!("lock and unlock by the mask of priorities: {locked}");
    println!("spawn, run and return of a higher task by an interrupt: {spawned}");
    punctual_bare::exit(0)
}
