//! Starting and interrupting the other cores.
//!
//! A started core runs the given work and then sleeps until there is more.

use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use core::{mem, ptr};

use crate::arch;
use crate::board::{CORES, Interrupts, Standalone, This};
use crate::interrupt::Controller;

#[cfg(target_arch = "arm")]
mod mailboxes;
mod psci;
#[cfg(target_arch = "aarch64")]
mod spin_table;

#[cfg(target_arch = "arm")]
pub use mailboxes::Mailboxes;
pub use psci::Psci;
#[cfg(target_arch = "aarch64")]
pub use spin_table::SpinTable;

/// The doorbell interrupt between cores.
pub const BELL: u32 = Interrupts::BELL;

/// The way in which the other cores of a board wait and are started.
pub trait StartCores {
    /// The page of memory that [`start`](Self::start) writes, if any. 64-bit boards map it.
    const TABLE: Option<usize> = None;

    /// Waits until the core is [started](Self::start). Entered by a core that QEMU starts at the
    /// beginning of the image.
    ///
    /// # Safety
    /// Entered only by the first instructions, without a stack. r4 or x4 is the number of the core.
    unsafe extern "C" fn park() -> !;

    /// Starts another core at `entry`, the address of an entry point for secondary cores. Returns
    /// `false` if the firmware does not start it.
    fn start(core: u32, entry: usize) -> bool;

    /// Called at the start of the program, when cores can be started.
    fn settle() {}
}

type Cores = <This as Standalone>::Cores;

/// Called at the start of the program.
pub(crate) fn settle() {
    Cores::settle();
}

/// Cores that have been started.
static STARTED: [AtomicBool; CORES] = [const { AtomicBool::new(false) }; CORES];

/// Pending work of each core: null, or a `fn()`.
static WORK: [AtomicPtr<()>; CORES] = [const { AtomicPtr::new(ptr::null_mut()) }; CORES];

unsafe extern "C" {
    /// Entry point of a started core, in `start.s`.
    fn _start_other();
}

/// Returns the number of the calling core, from 0 on.
#[must_use]
pub fn this() -> u32 {
    arch::core()
}

/// Makes another core call `work` once, with interrupts masked, on a separate stack. Starts the
/// core if necessary.
///
/// Returns `false` if the board does not have this core, or if its firmware does not start the
/// core.
pub fn start(core: u32, work: fn()) -> bool {
    let index = core as usize;
    if core == 0 || index >= CORES || core == arch::core() {
        return false;
    }
    // Release: the core sees all prior writes of this one.
    WORK[index].store(work as *mut (), Ordering::Release);
    if STARTED[index].swap(true, Ordering::AcqRel) {
        ring(core);
        return true;
    }
    let entry: unsafe extern "C" fn() = _start_other;
    let powered = Cores::start(core, entry as usize);
    if !powered {
        STARTED[index].store(false, Ordering::Relaxed);
        return false;
    }
    ring(core);
    true
}

/// Interrupts another core with [`BELL`]. Prior writes of this core are visible in its handler.
pub fn ring(core: u32) {
    arch::data_barrier();
    Interrupts::ring(core);
}

/// Interrupts all other started cores.
pub(crate) fn ring_all() {
    for core in (0..CORES as u32).filter(|&core| core != arch::core()) {
        // The first core runs without having been started.
        if core == 0 || STARTED[core as usize].load(Ordering::Relaxed) {
            ring(core);
        }
    }
}

/// Must be the first call in the handler of [`BELL`]: if another core ends the program, this one
/// sleeps forever.
pub fn rung() {
    if crate::fault::is_ending() {
        loop {
            arch::mask_interrupts();
            arch::wait_for_interrupt();
        }
    }
}

/// Routes an interrupt to this core instead of the first. Returns `false` if the interrupt
/// controller cannot.
pub fn route(number: u32, core: u32) -> bool {
    Interrupts::route(number, core)
}

/// Entry point after the first instructions of another core, with a stack and interrupts masked.
///
/// # Safety
/// Called only by these instructions.
#[unsafe(no_mangle)]
unsafe extern "C" fn __punctual_bare_start_other() -> ! {
    // SAFETY: the MMU of this core is off, and core 0 has built the tables.
    unsafe { arch::mmu::turn_on() };
    arch::unmask_errors();
    arch::set_own(ptr::null());
    arch::timer::disarm();
    // SAFETY: called once on this core, with interrupts masked.
    unsafe { Interrupts::init_core() };
    let work = &WORK[arch::core() as usize];
    loop {
        // Acquire: see `start`.
        let next = work.swap(ptr::null_mut(), Ordering::Acquire);
        if next.is_null() {
            // A pending doorbell ends the wait, although interrupts are masked.
            arch::wait_for_interrupt();
            if let Some(bell) = Interrupts::acknowledge() {
                Interrupts::end(bell);
            }
            continue;
        }
        // SAFETY: `start` has stored a `fn()`.
        let next = unsafe { mem::transmute::<*mut (), fn()>(next) };
        next();
        arch::mask_interrupts();
    }
}
