//! QEMU's `virt` with a Cortex-A72.

use core::ops::Range;

use super::{Board, Standalone};
use crate::cores::Psci;
use crate::interrupt::Gic;

/// QEMU's `virt` with a Cortex-A72.
#[derive(Clone, Copy, Debug)]
pub struct This;

impl Board for This {
    const NAME: &'static str = "QEMU virt, Cortex-A72";
    type Controller = Gic<0x0800_0000, 0x0801_0000>;
}

impl Standalone for This {
    const RAM: Range<usize> = 0x4000_0000..0x4800_0000;
    const DEVICES: Range<usize> = 0x0800_0000..0x0B00_0000;
    const UART: usize = 0x0900_0000;
    type Cores = Psci;
}

pub(crate) use crate::interrupt::virt as interrupts;
