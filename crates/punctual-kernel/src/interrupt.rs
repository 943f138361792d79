//! Interrupt subscribers.

use core::cell::Cell;

use crate::callback::Callback;
use crate::kernel::Section;
use crate::{Kernel, Port, SubscribeError};

/// Storage for the subscriber of one interrupt.
pub struct InterruptSlot<P: Port> {
    subscriber: Cell<Option<Subscriber<P>>>,
}

// SAFETY: accessed with interrupts masked, on the one core or thread that the port lets in (see
// `Port`).
unsafe impl<P: Port> Sync for InterruptSlot<P> {}

pub(crate) enum Subscriber<P: Port> {
    Handler(fn(u32)),
    Callback(&'static Callback<P>),
}

impl<P: Port> Clone for Subscriber<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Port> Copy for Subscriber<P> {}

impl<P: Port> InterruptSlot<P> {
    /// Creates a slot without a subscriber.
    pub const fn new() -> Self {
        Self { subscriber: Cell::new(None) }
    }
}

impl<P: Port> Default for InterruptSlot<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Port> Kernel<P> {
    /// Registers `handler`, which is called with the number for every interrupt of this number, and
    /// enables the interrupt.
    ///
    /// The handler runs with interrupts masked, on the stack of the interrupted code, and cannot
    /// wait. It must clear the interrupt line. Threads that it makes ready run when it returns. To
    /// run at a chosen priority instead, use [`Callback::subscribe_irq`].
    ///
    /// # Errors
    /// [`SubscribeError::NoSuchInterrupt`] and [`SubscribeError::Taken`].
    pub fn subscribe_irq(number: u32, handler: fn(u32)) -> Result<(), SubscribeError> {
        Section::<P>::enter(&P::HOME).kernel.subscribe(number, Subscriber::Handler(handler))
    }

    /// Disables an interrupt in the interrupt controller, and removes its subscriber. A callback
    /// still runs if it is due.
    pub fn unsubscribe_irq(number: u32) {
        let section = Section::<P>::enter(&P::HOME);
        if let Some(slot) = section.kernel.interrupts.get(number as usize) {
            P::disable_interrupt(number);
            if let Some(Subscriber::Callback(callback)) = slot.subscriber.take() {
                callback.unsubscribed();
            }
        }
    }

    pub(crate) fn subscribe(&self, number: u32, subscriber: Subscriber<P>) -> Result<(), SubscribeError> {
        let slots = self.interrupts;
        let slot = slots.get(number as usize).ok_or(SubscribeError::NoSuchInterrupt(slots.len()))?;
        if slot.subscriber.get().is_some() {
            return Err(SubscribeError::Taken);
        }
        slot.subscriber.set(Some(subscriber));
        P::enable_interrupt(number);
        Ok(())
    }

    /// Handles an interrupt other than the timer's; called by the port. Returns `true` if it has a
    /// subscriber.
    ///
    /// # Safety
    /// Called with interrupts masked, by an interrupt handler that calls
    /// [`interrupt_end`](Self::interrupt_end) before it returns.
    pub unsafe fn interrupt(&'static self, number: u32) -> bool {
        let subscriber = self.interrupts.get(number as usize).and_then(|slot| slot.subscriber.get());
        match subscriber {
            Some(Subscriber::Handler(handler)) => self.outside_of_threads(|| handler(number)),
            Some(Subscriber::Callback(callback)) => callback.interrupted(number),
            None => return false,
        }
        true
    }
}
