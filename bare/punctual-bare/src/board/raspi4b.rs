//! The Raspberry Pi 4B: BCM2711, Cortex-A72.

use core::ops::Range;

use rpi_registers::map::{self, Map};

use super::Board;
use crate::cores::SpinTable;
use crate::interrupt::Gic;
use crate::raspberry_pi::RaspberryPi;

/// The Raspberry Pi 4B.
#[derive(Clone, Copy, Debug)]
pub struct This;

impl Board for This {
    const NAME: &'static str = "Raspberry Pi 4B";
    type Controller = Gic<0xFF84_1000, 0xFF84_2000>;
}

impl RaspberryPi for This {
    const MAP: Map = map::BCM2711;
    const DEVICES: Range<usize> = 0xFC00_0000..0x1_0000_0000;
    const LED: u8 = 42;
    type Cores = SpinTable;
}

/// The interrupts of the board.
pub(crate) mod interrupts {
    use crate::interrupt::bcm2836::devices;

    /// The number of the first interrupt of the VideoCore's peripherals.
    const PERIPHERALS: u32 = 96;

    macro_rules! peripherals {
        ($($name:ident),*) => {
            $(
                #[doc = concat!("The interrupt ", stringify!($name), " of the board.")]
                pub const $name: u32 = PERIPHERALS + devices::$name;
            )*
        };
    }

    peripherals!(
        GPIO0,
        GPIO1,
        GPIO2,
        GPIO3,
        I2C,
        MINI_UART,
        SPI0,
        SYSTEM_TIMER0,
        SYSTEM_TIMER1,
        SYSTEM_TIMER2,
        SYSTEM_TIMER3,
        UART0
    );
}
