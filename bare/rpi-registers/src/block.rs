//! Registers at an address.

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

/// A struct of registers.
///
/// # Safety
/// It consists of registers of `tock-registers` and reserved bytes, so every content of its memory is valid, and all access to
/// it is volatile.
pub unsafe trait Registers: Sized {
    /// The name of the peripheral, for messages.
    const NAME: &'static str;
}

/// The registers of a peripheral, which belong to whoever has this.
pub struct Block<R: Registers> {
    registers: NonNull<R>,
}

// SAFETY: all access goes through the owner, or references to it on the same core: `Block` is not `Sync`.
unsafe impl<R: Registers> Send for Block<R> {}

impl<R: Registers> Block<R> {
    /// The registers at an address.
    ///
    /// # Panics
    /// If the address is 0 or not a multiple of 4.
    ///
    /// # Safety
    /// The peripheral is at this address, can be accessed, and nothing else has its registers.
    pub const unsafe fn at(address: usize) -> Self {
        assert!(address.is_multiple_of(4), "registers are words");
        let registers = NonNull::new(core::ptr::with_exposed_provenance_mut(address));
        Self { registers: registers.expect("no peripheral is at address 0") }
    }

    /// Where it is.
    pub fn address(&self) -> usize {
        self.registers.addr().get()
    }

    /// The registers, for as long as the program runs; for drivers that divide them among several owners.
    pub fn leak(self) -> &'static R {
        // SAFETY: as in `deref`; nobody else gets them any more.
        unsafe { self.registers.as_ref() }
    }
}

impl<R: Registers> Deref for Block<R> {
    type Target = R;

    fn deref(&self) -> &R {
        // SAFETY: they are there, by the contract of `at`, and valid whatever their content.
        unsafe { self.registers.as_ref() }
    }
}

impl<R: Registers> fmt::Debug for Block<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", R::NAME, self.address())
    }
}
