//! What ceilings and spawns would take by the priorities of a GIC, as RTIC has them by those of a microcontroller: a lock is a write to the
//! mask of priorities and another one back, and a spawn pends an interrupt that has no device. Beside `instructions`, which is our way.
//!
//! not-on: raspi2b, raspi3b, raspi4b: the controllers of two have no priorities, and no interrupt can be raised by hand
#![no_std]
#![no_main]

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};

use programs::cycles;
use punctual_bare::interrupt::{self, Handler};
use punctual_bare::println;

punctual_bare::entry!(main);

/// GICC_PMR of QEMU's `virt`: interrupts of these priorities and below, by number above, are held back.
const MASK: *mut u32 = 0x0801_0004 as *mut u32;
/// Above the priority that `punctual-bare` gives to all.
const CEILING: u32 = 0x80;

/// The one message that waits; 0 is none.
static MESSAGE: AtomicU32 = AtomicU32::new(0);
static RECEIVED: AtomicU32 = AtomicU32::new(0);

static HANDLER: Handler = Handler { timer: || {}, interrupt: dispatch, after: || {} };

/// Runs what waits, with interrupts unmasked, since the controller lets higher priorities only through.
fn dispatch(_: u32) {
    // SAFETY: the handler does not touch what it interrupts.
    unsafe { interrupt::unmask() };
    let message = MESSAGE.swap(0, Ordering::Relaxed);
    if message != 0 {
        RECEIVED.store(message, Ordering::Relaxed);
    }
    interrupt::mask();
}

/// The mask before; what follows is not interrupted by the priorities that are held back.
#[inline(always)]
fn raise(ceiling: u32) -> u32 {
    // SAFETY: the register is there, on these boards, and concerns no memory.
    unsafe {
        let before = MASK.read_volatile();
        if before > ceiling {
            MASK.write_volatile(ceiling);
            // The controller has the new mask before what follows.
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
    // SAFETY: the handler does not touch what it interrupts.
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
