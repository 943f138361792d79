//! The registers of the Raspberry Pi 2, 3 and 4 that are useful without an operating system.
//!
//! Each module contains the registers of one peripheral as a struct, with the names, the offsets
//! and the bits of its document. A [`Block`] is that struct at its address; its owner owns the
//! peripheral. With the feature of a chip, `Peripherals::take` returns all blocks of the chip,
//! once, and `CorePeripherals::take` those that are private to a core, once on each core.
//!
//! | feature | chip | board |
//! |---|---|---|
//! | `bcm2836` | BCM2836 | Raspberry Pi 2B |
//! | `bcm2837` | BCM2837 | Raspberry Pi 2B 1.2, 3A+, 3B, 3B+, Zero 2 W |
//! | `bcm2711` | BCM2711 | Raspberry Pi 4B, 400, Compute Module 4 |
//!
//! # Documents
//!
//! Comments cite the document of a register by one of these letters, and its page.
//!
//! * **A**: *BCM2835 ARM Peripherals*, Broadcom, 6 February 2012. The BCM2836 and BCM2837 have the
//!   same peripherals at 0x3f00_0000 instead of 0x2000_0000. The document uses the VideoCore's
//!   address of the peripherals, 0x7e00_0000.
//! * **Q**: *ARM Quad A7 core*, Broadcom, revision 3.4, 18 August 2014: the additions of the
//!   BCM2836 around its cores.
//! * **P**: *BCM2711 ARM Peripherals*, Raspberry Pi (Trading), version 1 of 16 October 2020. Cited
//!   by sections.
//! * **U**: *PrimeCell UART (PL011) Technical Reference Manual*, ARM DDI 0183. Cited by sections.
//! * **G**: *ARM Generic Interrupt Controller Architecture Specification*, version 2.0, ARM IHI
//!   0048B. Cited by sections.
//!
//! # In tests
//!
//! With the feature `fake`, a block can lie in ordinary memory, so that drivers can be tested on
//! any machine.
#![no_std]
#![expect(
    missing_docs,
    reason = "bits have the names that their document has for them, and are explained there"
)]

#[cfg(feature = "fake")]
extern crate std;

mod block;
#[cfg(feature = "fake")]
pub mod fake;
mod interrupts;
pub mod local;
pub mod map;
#[cfg(any(feature = "bcm2836", feature = "bcm2837", feature = "bcm2711"))]
mod peripherals;
mod pins;
mod serial;
mod videocore;

pub use block::{Block, Registers};
pub use interrupts::{gic, legacy_interrupts};
#[cfg(any(feature = "bcm2836", feature = "bcm2837", feature = "bcm2711"))]
pub use peripherals::{CorePeripherals, Peripherals};
pub use pins::{gpio, pwm};
pub use serial::{i2c, mini_uart, spi, uart};
/// Field values: the types of the crate `tock-registers`.
pub use tock_registers::fields;
/// Reading, writing and modifying registers: the traits of the crate `tock-registers`.
pub use tock_registers::interfaces;
pub use videocore::{mailbox, system_timer};
