//! The other CPUs, which are those of Linux.

/// No interrupt has this number.
pub const BELL: u32 = u32::MAX - 1;

/// The number of this core.
#[must_use]
pub fn this() -> u32 {
    crate::arch::core()
}

/// Does nothing: there is no other core.
pub fn start(_: u32, _: fn()) -> bool {
    false
}

/// Does nothing.
pub fn ring(_: u32) {}

/// Does nothing.
pub(crate) fn ring_all() {}

/// Does nothing.
pub fn rung() {}

/// Whether an interrupt comes to this core, as all do that the image has.
pub fn route(_: u32, _: u32) -> bool {
    true
}
