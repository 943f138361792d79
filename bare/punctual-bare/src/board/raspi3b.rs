//! The Raspberry Pi 3B: BCM2837, Cortex-A53.

use core::ops::Range;

use rpi_registers::map::{self, Map};

use super::Board;
use crate::cores::SpinTable;
use crate::interrupt::Bcm2836;
use crate::raspberry_pi::RaspberryPi;

/// The Raspberry Pi 3B.
#[derive(Clone, Copy, Debug)]
pub struct This;

impl Board for This {
    const NAME: &'static str = "Raspberry Pi 3B";
    type Controller = Bcm2836;
}

impl RaspberryPi for This {
    const MAP: Map = map::BCM2837;
    const DEVICES: Range<usize> = 0x3F00_0000..0x4004_0000;
    const LED: u8 = 17;
    type Cores = SpinTable;
}

pub(crate) use crate::interrupt::bcm2836::devices as interrupts;
