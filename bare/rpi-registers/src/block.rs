//! Blocks of registers at an address.

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

/// A struct of registers.
///
/// # Safety
/// The struct consists of registers of `tock-registers` and reserved bytes, so every content of its
/// memory is valid, and all access to it is volatile.
pub unsafe trait Registers: Sized {
    /// The name of the peripheral, for messages.
    const NAME: &'static str;
}

/// The registers of a peripheral, owned by the holder of this value.
pub struct Block<R: Registers> {
    registers: NonNull<R>,
}

// SAFETY: all access goes through the owner, or references to it on the same core, because `Block`
// is not `Sync`.
unsafe impl<R: Registers> Send for Block<R> {}

impl<R: Registers> Block<R> {
    /// Creates the block of registers at an address.
    ///
    /// # Panics
    /// If the address is 0 or not a multiple of 4.
    ///
    /// # Safety
    /// The peripheral is at this address and accessible, and nothing else has its registers.
    pub const unsafe fn at(address: usize) -> Self {
        assert!(address.is_multiple_of(4), "registers are words");
        let registers = NonNull::new(core::ptr::with_exposed_provenance_mut(address));
        Self { registers: registers.expect("no peripheral is at address 0") }
    }

    /// Returns the address of the registers.
    pub fn address(&self) -> usize {
        self.registers.addr().get()
    }

    /// Returns the registers for the lifetime of the program, for drivers that divide them among
    /// several owners.
    pub fn leak(self) -> &'static R {
        // SAFETY: as in `deref`; the block is consumed, so nothing else obtains them afterwards.
        unsafe { self.registers.as_ref() }
    }
}

impl<R: Registers> Deref for Block<R> {
    type Target = R;

    fn deref(&self) -> &R {
        // SAFETY: the registers exist, by the contract of `at`, and every content is valid.
        unsafe { self.registers.as_ref() }
    }
}

impl<R: Registers> fmt::Debug for Block<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", R::NAME, self.address())
    }
}
