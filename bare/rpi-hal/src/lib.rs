//! GPIO, UART, SPI, I2C and timers of the Raspberry Pi 2, 3 and 4, without an operating system.
//!
//! Drivers take the registers of their peripheral from `rpi-registers`, and the pins that they need, in the function that they
//! need them in: what is wired wrongly does not compile. They have the traits of `embedded-hal` 1.0 and `embedded-io` 0.7, so
//! that drivers of devices run on them.
//!
//! ```no_run
//! # #[cfg(any(feature = "bcm2836", feature = "bcm2837", feature = "bcm2711"))] {
//! use embedded_hal::digital::OutputPin;
//! use rpi_hal::gpio;
//! use rpi_registers::Peripherals;
//!
//! let peripherals = Peripherals::take().expect("nobody has taken them before");
//! let (mut bank, pins) = gpio::split(peripherals.gpio);
//! let mut led = pins.gpio17.into_output(&mut bank);
//! led.set_high().unwrap();
//! # }
//! ```
//!
//! Nothing here allocates. Whether and for how long a function waits, it says.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod gpio;
pub mod i2c;
pub mod local_timer;
pub mod spi;
pub mod timer;
pub mod uart;
