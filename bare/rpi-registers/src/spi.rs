//! SPI0. A, pp. 148–159; P, chapter 9.

use tock_registers::registers::ReadWrite;
use tock_registers::{register_bitfields, register_structs};

register_bitfields! {
    u32,
    /// Control and status. A, p. 153.
    pub CS [CHIP_SELECT OFFSET(0) NUMBITS(2) [], CPHA OFFSET(2) NUMBITS(1) [], CPOL OFFSET(3) NUMBITS(1) [], CLEAR OFFSET(4) NUMBITS(2) [Transmit = 1, Receive = 2, Both = 3], CSPOL OFFSET(6) NUMBITS(1) [], TA OFFSET(7) NUMBITS(1) [], DMAEN OFFSET(8) NUMBITS(1) [], INTD OFFSET(9) NUMBITS(1) [], INTR OFFSET(10) NUMBITS(1) [], ADCS OFFSET(11) NUMBITS(1) [], REN OFFSET(12) NUMBITS(1) [], LEN OFFSET(13) NUMBITS(1) [], DONE OFFSET(16) NUMBITS(1) [], RXD OFFSET(17) NUMBITS(1) [], TXD OFFSET(18) NUMBITS(1) [], RXR OFFSET(19) NUMBITS(1) [], RXF OFFSET(20) NUMBITS(1) []],
}

register_structs! {
    /// A, p. 152.
    pub SPI {
        /// Control and status. A, p. 153.
        (0x00 => pub cs: ReadWrite<u32, CS::Register>),
        /// Data. A, p. 155.
        (0x04 => pub fifo: ReadWrite<u32>),
        /// The divisor of the core clock: a power of two, or 0 for 65536. A, p. 156, with its
        /// errata: it is rounded down to an even number.
        (0x08 => pub clk: ReadWrite<u32>),
        /// Bytes to transfer by DMA. A, p. 156.
        (0x0C => pub dlen: ReadWrite<u32>),
        /// A, p. 156.
        (0x10 => pub ltoh: ReadWrite<u32>),
        /// DMA requests. A, p. 157.
        (0x14 => pub dc: ReadWrite<u32>),
        (0x18 => @END),
    }
}

// SAFETY: the struct consists of registers.
unsafe impl crate::Registers for SPI {
    const NAME: &'static str = "SPI0";
}
