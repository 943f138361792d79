//! The other cores: how they are started, and how they are interrupted.
//!
//! A core that was started runs the work it is given, and sleeps until there is more.

use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use core::{mem, ptr};

use crate::arch;
use crate::board::{CORES, controller};

pub use crate::board::controller::BELL;

/// Which cores have been started.
static STARTED: [AtomicBool; CORES] = [const { AtomicBool::new(false) }; CORES];

/// What each core has yet to do: null, or a `fn()`.
static WORK: [AtomicPtr<()>; CORES] = [const { AtomicPtr::new(ptr::null_mut()) }; CORES];

unsafe extern "C" {
    /// Where a core begins that is started: in `start.s`.
    fn _start_other();
}

/// The number of the core that calls, from 0 on.
#[must_use]
pub fn this() -> u32 {
    arch::core()
}

/// Has another core call `work` once, with interrupts masked, on a stack of its own; starts the core if need be.
///
/// `false` if the board has no such core, or its firmware does not start it.
pub fn start(core: u32, work: fn()) -> bool {
    let index = core as usize;
    if core == 0 || index >= CORES || core == arch::core() {
        return false;
    }
    // Release: the core sees what this one did.
    WORK[index].store(work as *mut (), Ordering::Release);
    if STARTED[index].swap(true, Ordering::AcqRel) {
        ring(core);
        return true;
    }
    let entry: unsafe extern "C" fn() = _start_other;
    let powered = arch::power_on(core, entry as usize);
    if !powered {
        STARTED[index].store(false, Ordering::Relaxed);
        return false;
    }
    ring(core);
    true
}

/// Has the other cores sleep until there is work for them.
///
/// QEMU's Raspberry Pi 3 and 4 keep them in a loop that asks, with WFE, which does not sleep there: on counted time the loops of three cores take
/// turns with the program, and no idle time is skipped. On a board that sleeps, and the firmware's loop is left as it is.
#[cfg(all(feature = "semihosting", any(feature = "raspi3b", feature = "raspi4b")))]
pub(crate) fn send_to_sleep() {
    for core in 1..CORES as u32 {
        start(core, || {});
    }
}

/// Interrupts another core, as [`BELL`]. What this core did before, that one sees in its handler.
pub fn ring(core: u32) {
    arch::data_barrier();
    controller::ring(core);
}

/// Interrupts all other cores that have been started.
pub(crate) fn ring_all() {
    for core in (0..CORES as u32).filter(|&core| core != arch::core()) {
        // The first runs without having been started.
        if core == 0 || STARTED[core as usize].load(Ordering::Relaxed) {
            ring(core);
        }
    }
}

/// What the handler of [`BELL`] has to begin with: if another core ends the program, this one sleeps for good.
pub fn rung() {
    if crate::fault::is_ending() {
        loop {
            arch::mask_interrupts();
            arch::wait_for_interrupt();
        }
    }
}

/// Has the interrupt controller pass an interrupt to this core instead of to the first; `false` if it cannot.
pub fn route(number: u32, core: u32) -> bool {
    controller::route(number, core)
}

/// What the first instructions of another core lead to, with a stack and interrupts masked.
///
/// # Safety
/// Called by them.
#[unsafe(no_mangle)]
unsafe extern "C" fn __punctual_bare_start_other() -> ! {
    // SAFETY: the MMU of this core is off, and core 0 has built the tables.
    unsafe { arch::mmu::turn_on() };
    arch::set_own(ptr::null());
    arch::timer::disarm();
    // SAFETY: called once on this core, with interrupts masked.
    unsafe { controller::init_core() };
    let work = &WORK[arch::core() as usize];
    loop {
        // Acquire: see `start`.
        let next = work.swap(ptr::null_mut(), Ordering::Acquire);
        if next.is_null() {
            // Ends when the bell is pending, masked as it is.
            arch::wait_for_interrupt();
            if let Some(bell) = controller::acknowledge() {
                controller::end(bell);
            }
            continue;
        }
        // SAFETY: `start` has stored a `fn()`.
        let next = unsafe { mem::transmute::<*mut (), fn()>(next) };
        next();
        arch::mask_interrupts();
    }
}
