//! GPIO, UART, SPI, I2C and timers of the Raspberry Pi 2, 3 and 4, without an operating system.
//!
//! The constructor of a driver takes the registers of its peripheral, from `rpi-registers`, and the
//! pins, so that wrong wiring does not compile. Drivers implement the traits of `embedded-hal` 1.0
//! and `embedded-io` 0.7, on which drivers for devices run.
//!
//! ```no_run
//! # #[cfg(any(feature = "bcm2836", feature = "bcm2837", feature = "bcm2711"))] {
//! use embedded_hal::digital::OutputPin;
//! use rpi_hal::gpio;
//! use rpi_registers::Peripherals;
//!
//! let peripherals = Peripherals::take().expect("this is the first call");
//! let (mut bank, pins) = gpio::split(peripherals.gpio);
//! let mut led = pins.gpio17.into_output(&mut bank);
//! led.set_high().unwrap();
//! # }
//! ```
//!
//! Nothing here allocates. Functions that wait document the duration.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod gpio;
pub mod i2c;
#[cfg(not(feature = "bcm2711"))]
pub mod local_timer;
pub mod mailbox;
pub mod spi;
pub mod timer;
pub mod uart;
