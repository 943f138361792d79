//! Interrupts: the board's by name, who handles them, and masking all of them.
//!
//! One [`Handler`] gets all interrupts. It is called on the stack of what is interrupted, with interrupts masked, once for
//! each interrupt that is pending, and once more afterwards, when it may unmask interrupts for a while.
//!
//! The numbers are those of the board's interrupt controller: a GICv2, or on the Raspberry Pi 2 and 3 that of the BCM2836.
//! Neither is given priorities: which job goes before which is decided by levels.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

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
    /// Called with the number of an interrupt that is pending, with interrupts masked.
    ///
    /// If its line stays raised, or it is disabled, it comes again or does not.
    pub interrupt: fn(u32),
    /// Called when no interrupt is pending any more, with interrupts masked; may [unmask](unmask) them, and has to mask them
    /// before it returns.
    pub after: fn(),
}

static HANDLER: AtomicPtr<Handler> = AtomicPtr::new(ptr::null_mut());

/// Makes `handler` the one that gets all interrupts.
pub fn handle(handler: &'static Handler) {
    // Release: whoever is called sees what was done before.
    HANDLER.store(ptr::from_ref(handler).cast_mut(), Ordering::Release);
}

/// Has the interrupt controller pass an interrupt on.
pub fn enable(number: u32) {
    controller::enable(number);
}

/// Has the interrupt controller hold an interrupt back.
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
    // SAFETY: this is the only call, with interrupts masked, by this function's contract.
    unsafe { controller::init() };
}

/// What the vectors call, with interrupts masked; masked they are when it returns.
#[unsafe(no_mangle)]
extern "C" fn __punctual_bare_interrupt() {
    // Acquire: see `handle`.
    let handler = HANDLER.load(Ordering::Acquire);
    // SAFETY: null, or from a reference that lasts.
    let Some(handler) = (unsafe { handler.as_ref() }) else {
        panic!("an interrupt, but the program handles none: it may not unmask them");
    };
    while let Some(number) = controller::acknowledge() {
        (handler.interrupt)(number);
        controller::end(number);
    }
    (handler.after)();
}
