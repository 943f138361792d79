//! Interrupts: the board's by name, who handles them, and masking all of them.
//!
//! One [`Handler`] gets all interrupts. It is called on the stack of what is interrupted, with interrupts masked, once for the
//! interrupt and once more afterwards, and may unmask interrupts for a while. If another interrupt is pending then, it comes when they
//! are unmasked.
//!
//! The numbers are those of the board's interrupt controller: a GICv2, or on the Raspberry Pi 2 and 3 that of the BCM2836.
//! Each core has a part of the controller of its own; what the first core [enables](enable) comes to that one, unless it is
//! [routed](crate::cores::route) elsewhere. Neither is given priorities: which job goes before which is decided by levels.

use core::sync::atomic::{AtomicPtr, Ordering};
use core::{mem, ptr};

use crate::arch;
use crate::board::controller;
pub use crate::board::interrupts::*;
pub use controller::TIMER;

#[cfg(any(feature = "raspi2b", feature = "raspi3b"))]
pub(crate) mod bcm2836;
#[cfg(any(feature = "raspi4b", feature = "virt-a7", feature = "virt-a72"))]
mod gic;
#[cfg(feature = "raspi4b")]
pub(crate) use gic::bcm2711 as gic_of_bcm2711;
#[cfg(any(feature = "virt-a7", feature = "virt-a72"))]
pub(crate) use gic::virt as gic_of_virt;

/// What a program does on interrupts.
#[derive(Debug)]
pub struct Handler {
    /// Called for the interrupt of the [alarm](crate::time::alarm), with interrupts masked; may [unmask] them when it has set the
    /// alarm anew, and has to mask them before it returns.
    pub timer: fn(),
    /// Called with the number of any other interrupt, with interrupts masked; may [unmask] them, and has to mask them before it
    /// returns.
    ///
    /// The interrupt controller takes it for dealt with already: if its line stays raised it comes again, unless it is
    /// [disabled](disable).
    pub interrupt: fn(u32),
    /// Called when that is done, and also if there was no interrupt after all; may unmask interrupts in the same way.
    pub after: fn(),
}

/// The functions of the [`Handler`], each at an address of its own, which saves the vectors a load. Set by [`init`], before any interrupt:
/// they are no constants, for which an image would have another page.
static TIMER_HANDLER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static INTERRUPT_HANDLER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static AFTER_HANDLER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

fn unhandled() {
    panic!("an interrupt, but the program handles none: it may not unmask them");
}

/// Makes `handler` the one that gets all interrupts, on every core.
///
/// An interrupt that comes meanwhile may be given to functions of this one and of the one before.
pub fn handle(handler: &Handler) {
    let Handler { timer, interrupt, after } = *handler;
    // Relaxed: there is nothing behind them but code.
    TIMER_HANDLER.store(timer as *mut (), Ordering::Relaxed);
    INTERRUPT_HANDLER.store(interrupt as *mut (), Ordering::Relaxed);
    AFTER_HANDLER.store(after as *mut (), Ordering::Relaxed);
}

/// Has the interrupt controller pass an interrupt on.
#[inline]
pub fn enable(number: u32) {
    controller::enable(number);
}

/// Has the interrupt controller hold an interrupt back.
#[inline]
pub fn disable(number: u32) {
    controller::disable(number);
}

/// Makes an interrupt pending, as its line would.
///
/// Not on the Raspberry Pi 2 and 3, whose controllers have no such thing.
#[cfg(any(feature = "raspi4b", feature = "virt-a7", feature = "virt-a72"))]
#[inline(always)]
pub fn pend(number: u32) {
    controller::pend(number);
}

/// Allows this core to be interrupted.
///
/// # Safety
/// Whatever runs from here on can be interrupted by the [`Handler`].
#[inline]
pub unsafe fn unmask() {
    arch::unmask_interrupts();
}

/// Keeps this core from being interrupted.
#[inline]
pub fn mask() {
    arch::mask_interrupts();
}

/// Sleeps until an interrupt is pending, also if interrupts are masked; may return earlier.
#[inline]
pub fn wait() {
    arch::wait_for_interrupt();
}

/// Disables every interrupt and lets the controller interrupt this core.
///
/// # Safety
/// Called once, with interrupts masked.
pub(crate) unsafe fn init() {
    handle(&Handler { timer: unhandled, interrupt: |_| unhandled(), after: unhandled });
    // SAFETY: this is the only call, with interrupts masked, by this function's contract.
    unsafe { controller::init() };
}

/// What the vectors call, with interrupts masked; masked they are when it returns.
#[unsafe(no_mangle)]
extern "C" fn __punctual_bare_interrupt() {
    // One at a time: to ask whether another is pending costs each interrupt what a second one saves.
    if let Some(acknowledged) = controller::acknowledge() {
        // Before it is dealt with, which may take long and then lets others interrupt.
        controller::end(acknowledged);
        let number = acknowledged.number();
        if number == TIMER {
            // SAFETY: what `handle` has stored, since `init`, without which no interrupt gets here, is of this type.
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
