//! The Raspberry Pi 2B: BCM2836, Cortex-A7.

use core::fmt;
use core::ops::Range;

use rpi_registers::map::{self, Map};

use super::{Board, Standalone};
use crate::cores::Mailboxes;
use crate::interrupt::Bcm2836;
use crate::raspberry_pi::{self, RaspberryPi};

/// The Raspberry Pi 2B.
#[derive(Clone, Copy, Debug)]
pub struct This;

impl Board for This {
    const NAME: &'static str = "Raspberry Pi 2B";
    type Controller = Bcm2836;
}

impl RaspberryPi for This {
    const MAP: Map = map::BCM2836;
}

impl Standalone for This {
    const RAM: Range<usize> = 0..0x2000_0000;
    const DEVICES: Range<usize> = 0x3F00_0000..0x4004_0000;
    const UART: usize = Self::MAP.uart0();
    const LED: Option<u8> = Some(47);
    type Cores = Mailboxes;

    unsafe fn prepare() {
        // SAFETY: by this function's contract.
        unsafe { raspberry_pi::prepare() };
    }

    fn check() {
        raspberry_pi::check_memory(Self::RAM.end);
    }

    fn uart_clock() -> Option<u32> {
        raspberry_pi::clocks().uart
    }

    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        raspberry_pi::describe(f)
    }
}

/// The interrupts of the board.
pub(crate) mod interrupts {
    pub use crate::interrupt::bcm2836::{
        GPIO0, GPIO1, GPIO2, GPIO3, I2C, LOCAL_TIMER, MINI_UART, SPI0, SYSTEM_TIMER0, SYSTEM_TIMER1,
        SYSTEM_TIMER2, SYSTEM_TIMER3, UART0,
    };
}
