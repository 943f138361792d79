//! The other CPUs, which belong to Linux.

/// No interrupt has this number.
pub const BELL: u32 = u32::MAX - 1;

/// Returns the number of this core.
#[must_use]
pub fn this() -> u32 {
    crate::arch::core()
}

/// Does nothing, because there is no other core. Returns `false`.
pub fn start(_: u32, _: fn()) -> bool {
    false
}

/// Does nothing.
pub fn ring(_: u32) {}

/// Does nothing.
pub(crate) fn ring_all() {}

/// Does nothing.
pub fn rung() {}

/// Returns whether an interrupt is delivered to this core: always, for all interrupts of the image.
pub fn route(_: u32, _: u32) -> bool {
    true
}
