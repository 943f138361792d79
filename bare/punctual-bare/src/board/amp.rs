//! A CPU that Linux gave up. The loader of the image chooses the address of its memory.

use super::Board;
use crate::amp::gic::LinuxGic;

/// A CPU that Linux gave up.
#[derive(Clone, Copy, Debug)]
pub struct This;

impl Board for This {
    const NAME: &'static str = "a CPU beside Linux";
    type Controller = LinuxGic;
}

/// The interrupts of the CPU.
pub(crate) mod interrupts {
    /// Rung by Linux: `Offline::ring` of `punctual-isolate`.
    pub const BELL: u32 = 8;
}
