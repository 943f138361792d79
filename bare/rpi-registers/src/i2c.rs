//! I2C: the Broadcom Serial Controllers, BSC. A, pp. 28–36; P, chapter 3.

use tock_registers::registers::ReadWrite;
use tock_registers::{register_bitfields, register_structs};

register_bitfields! {
    u32,
    /// Control. A, p. 29.
    pub C [READ OFFSET(0) NUMBITS(1) [], CLEAR OFFSET(4) NUMBITS(2) [], ST OFFSET(7) NUMBITS(1) [], INTD OFFSET(8) NUMBITS(1) [], INTT OFFSET(9) NUMBITS(1) [], INTR OFFSET(10) NUMBITS(1) [], I2CEN OFFSET(15) NUMBITS(1) []],
    /// Status; ones clear the errors and `DONE`. A, p. 31.
    pub S [TA OFFSET(0) NUMBITS(1) [], DONE OFFSET(1) NUMBITS(1) [], TXW OFFSET(2) NUMBITS(1) [], RXR OFFSET(3) NUMBITS(1) [], TXD OFFSET(4) NUMBITS(1) [], RXD OFFSET(5) NUMBITS(1) [], TXE OFFSET(6) NUMBITS(1) [], RXF OFFSET(7) NUMBITS(1) [], ERR OFFSET(8) NUMBITS(1) [], CLKT OFFSET(9) NUMBITS(1) []],
}

register_structs! {
    /// A, p. 28.
    pub I2C {
        /// Control. A, p. 29.
        (0x00 => pub c: ReadWrite<u32, C::Register>),
        /// Status. A, p. 31.
        (0x04 => pub s: ReadWrite<u32, S::Register>),
        /// Bytes to transfer. A, p. 33.
        (0x08 => pub dlen: ReadWrite<u32>),
        /// The address of the device. A, p. 33.
        (0x0C => pub a: ReadWrite<u32>),
        /// Data. A, p. 33.
        (0x10 => pub fifo: ReadWrite<u32>),
        /// The divisor of the core clock. A, p. 34.
        (0x14 => pub div: ReadWrite<u32>),
        /// Delays of sampling and sending data. A, p. 34.
        (0x18 => pub del: ReadWrite<u32>),
        /// Maximum time for a device to stretch the clock, in cycles of that clock. A, p. 35.
        (0x1C => pub clkt: ReadWrite<u32>),
        (0x20 => @END),
    }
}

// SAFETY: the struct consists of registers.
unsafe impl crate::Registers for I2C {
    const NAME: &'static str = "I2C";
}
