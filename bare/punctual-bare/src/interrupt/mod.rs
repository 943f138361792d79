//! Interrupts: the names of the board's interrupts, their handlers, and masking of all interrupts.
//!
//! One [`Handler`] gets all interrupts. It is called on the stack of the interrupted code, with
//! interrupts masked, once for the interrupt and once more afterwards, and may unmask interrupts
//! temporarily. Another pending interrupt is delivered when interrupts are unmasked.
//!
//! The numbers are those of the board's interrupt controller: a GICv2, or the BCM2836's controller
//! on the Raspberry Pi 2 and 3. Each core has a private part of the controller. Interrupts that the
//! first core [enables](enable) are delivered to that core, unless they are
//! [routed](crate::cores::route) elsewhere. The controllers' priorities are not used: levels
//! determine the order of jobs.

use core::sync::atomic::{AtomicPtr, Ordering};
use core::{mem, ptr};

use crate::arch;
use crate::board::Interrupts;
pub use crate::board::interrupts::*;

#[cfg(not(feature = "amp"))]
pub mod bcm2836;
#[cfg(not(feature = "amp"))]
mod gic;
/// The interrupts of QEMU's `virt`, those of devices from 32 on. `hw/arm/virt.c` in QEMU.
#[cfg(not(feature = "amp"))]
pub mod virt {
    /// The first UART.
    pub const UART0: u32 = 32 + 1;
    /// The real-time clock.
    pub const RTC: u32 = 32 + 2;
    /// The pins.
    pub const GPIO: u32 = 32 + 7;
}

#[cfg(not(feature = "amp"))]
pub use bcm2836::Bcm2836;
#[cfg(not(feature = "amp"))]
pub use gic::Gic;

/// The interrupt of the virtual timer of each core.
pub const TIMER: u32 = Interrupts::TIMER;

/// An interrupt controller. Each core has a private part of it.
pub trait Controller {
    /// The interrupt of the virtual timer of each core.
    const TIMER: u32;

    /// The doorbell interrupt between cores.
    const BELL: u32;

    /// An acknowledged interrupt.
    type Acknowledged: Copy;

    /// Disables every interrupt and enables the controller to interrupt this core.
    ///
    /// # Safety
    /// Called once, with interrupts masked.
    unsafe fn init();

    /// Enables the controller to interrupt this core, which is not the first.
    ///
    /// # Safety
    /// Called once on each core, with interrupts masked.
    unsafe fn init_core();

    /// Acknowledges the next pending interrupt, if any.
    fn acknowledge() -> Option<Self::Acknowledged>;

    /// Returns the number of an interrupt.
    fn number(acknowledged: Self::Acknowledged) -> u32;

    /// Ends the handling of an interrupt, which can then occur again.
    fn end(acknowledged: Self::Acknowledged);

    /// Interrupts another core with [`BELL`](Self::BELL).
    fn ring(core: u32);

    /// Routes an interrupt to this core instead of the first. Returns `false` if the controller
    /// cannot.
    fn route(number: u32, core: u32) -> bool;

    /// Enables an interrupt.
    fn enable(number: u32);

    /// Disables an interrupt.
    fn disable(number: u32);

    /// Makes an interrupt pending, as its line would.
    ///
    /// # Panics
    /// If the controller cannot.
    #[inline(always)]
    fn pend(number: u32) {
        panic!("interrupt {number} cannot be made pending: the board's controller has no register for it")
    }
}

/// The functions that a program runs on interrupts.
#[derive(Debug)]
pub struct Handler {
    /// Called for the interrupt of the [alarm](crate::time::alarm), with interrupts masked. May
    /// [unmask] them after setting the alarm again, and must mask them before it returns.
    pub timer: fn(),
    /// Called with the number of any other interrupt, with interrupts masked. May [unmask] them,
    /// and must mask them before it returns.
    ///
    /// The interrupt controller considers the interrupt handled already: an interrupt whose line
    /// stays raised is delivered again, unless it is [disabled](disable).
    pub interrupt: fn(u32),
    /// Called after the function above, and also if there was no interrupt after all. May unmask
    /// interrupts in the same way.
    pub after: fn(),
}

/// The functions of the [`Handler`], each in its own static, which saves the vectors a load. Set by
/// [`init`], before any interrupt. Not constants, because these would need another page in the
/// image.
static TIMER_HANDLER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static INTERRUPT_HANDLER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static AFTER_HANDLER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

fn unhandled() {
    panic!("an interrupt, but the program handles none: it may not unmask them");
}

/// Makes `handler` the handler of all interrupts, on every core.
///
/// An interrupt during this call may be passed to functions of the previous and of the new handler.
pub fn handle(handler: &Handler) {
    let Handler { timer, interrupt, after } = *handler;
    // Relaxed: the pointers refer only to code.
    TIMER_HANDLER.store(timer as *mut (), Ordering::Relaxed);
    INTERRUPT_HANDLER.store(interrupt as *mut (), Ordering::Relaxed);
    AFTER_HANDLER.store(after as *mut (), Ordering::Relaxed);
}

/// Enables an interrupt in the interrupt controller.
#[inline]
pub fn enable(number: u32) {
    Interrupts::enable(number);
}

/// Disables an interrupt in the interrupt controller.
#[inline]
pub fn disable(number: u32) {
    Interrupts::disable(number);
}

/// Makes an interrupt pending, as its line would.
///
/// # Panics
/// On the Raspberry Pi 2 and 3, whose controllers cannot do so.
#[inline(always)]
pub fn pend(number: u32) {
    Interrupts::pend(number);
}

/// Unmasks interrupts on this core.
///
/// # Safety
/// The [`Handler`] may interrupt any code that runs from here on.
#[inline]
pub unsafe fn unmask() {
    arch::unmask_interrupts();
}

/// Masks interrupts on this core.
#[inline]
pub fn mask() {
    arch::mask_interrupts();
}

/// Sleeps until an interrupt is pending, masked or not. May return earlier.
#[inline]
pub fn wait() {
    arch::wait_for_interrupt();
}

/// Disables every interrupt and enables the controller to interrupt this core.
///
/// # Safety
/// Called once, with interrupts masked.
pub(crate) unsafe fn init() {
    handle(&Handler { timer: unhandled, interrupt: |_| unhandled(), after: unhandled });
    // SAFETY: this is the only call, with interrupts masked, by this function's contract.
    unsafe { Interrupts::init() };
}

/// Entry point of the vectors, with interrupts masked, as they are on return.
#[unsafe(no_mangle)]
extern "C" fn __punctual_bare_interrupt() {
    // One at a time: checking for another pending interrupt would cost each interrupt as much as it
    // saves for the second one.
    if let Some(acknowledged) = Interrupts::acknowledge() {
        // Before the handler, which may take a long time and then allows other interrupts.
        Interrupts::end(acknowledged);
        let number = Interrupts::number(acknowledged);
        if number == TIMER {
            // SAFETY: no interrupt arrives before `init`, and `handle` has stored functions of this
            // type since then.
            let timer = unsafe { mem::transmute::<*mut (), fn()>(TIMER_HANDLER.load(Ordering::Relaxed)) };
            timer();
        } else {
            // SAFETY: as above.
            let interrupt =
                unsafe { mem::transmute::<*mut (), fn(u32)>(INTERRUPT_HANDLER.load(Ordering::Relaxed)) };
            interrupt(number);
        }
    }
    // SAFETY: as above.
    let after = unsafe { mem::transmute::<*mut (), fn()>(AFTER_HANDLER.load(Ordering::Relaxed)) };
    after();
}
