//! The mini UART, of the auxiliary peripherals. A, pp. 8–19; P, chapter 2.

use tock_registers::registers::{ReadOnly, ReadWrite};
use tock_registers::{register_bitfields, register_structs};

register_bitfields! {
    u32,
    /// Enabled auxiliary peripherals, and those that interrupt. A, p. 9.
    pub AUX [MINI_UART OFFSET(0) NUMBITS(1) [], SPI1 OFFSET(1) NUMBITS(1) [], SPI2 OFFSET(2) NUMBITS(1) []],
    /// Enabled interrupts. A, p. 12 and its errata: bit 0 is reception, which requires bits 2 and 3
    /// to be set.
    pub IER [RX OFFSET(0) NUMBITS(1) [], TX OFFSET(1) NUMBITS(1) [], REQUIRED OFFSET(2) NUMBITS(2) []],
    /// Read: the pending interrupt. Written: the FIFO to clear. A, p. 13.
    pub IIR [NOT_PENDING OFFSET(0) NUMBITS(1) [], ID OFFSET(1) NUMBITS(2) [None = 0, Transmit = 1, Receive = 2]],
    /// Line control. A, p. 14 and its errata: eight bits are 3.
    pub LCR [DATA_SIZE OFFSET(0) NUMBITS(2) [Seven = 0, Eight = 3], BREAK OFFSET(6) NUMBITS(1) [], DLAB OFFSET(7) NUMBITS(1) []],
    /// Line status. A, p. 15.
    pub LSR [DATA_READY OFFSET(0) NUMBITS(1) [], OVERRUN OFFSET(1) NUMBITS(1) [], TX_EMPTY OFFSET(5) NUMBITS(1) [], TX_IDLE OFFSET(6) NUMBITS(1) []],
    /// Control. A, p. 16.
    pub CNTL [RX_ENABLE OFFSET(0) NUMBITS(1) [], TX_ENABLE OFFSET(1) NUMBITS(1) []],
}

register_structs! {
    /// A, p. 8. The baud rate is the system clock over `8 × (baud + 1)`.
    pub MiniUart {
        /// Peripherals that interrupt. A, p. 9.
        (0x00 => pub aux_irq: ReadOnly<u32, AUX::Register>),
        /// Enabled peripherals. A disabled peripheral has no accessible registers. A, p. 9.
        (0x04 => pub aux_enables: ReadWrite<u32, AUX::Register>),
        (0x08 => _reserved0),
        /// Data. A, p. 11.
        (0x40 => pub io: ReadWrite<u32>),
        /// Enabled interrupts. A, p. 12.
        (0x44 => pub ier: ReadWrite<u32, IER::Register>),
        /// The pending interrupt. A, p. 13.
        (0x48 => pub iir: ReadWrite<u32, IIR::Register>),
        /// Line control. A, p. 14.
        (0x4C => pub lcr: ReadWrite<u32, LCR::Register>),
        /// Modem control. A, p. 14.
        (0x50 => pub mcr: ReadWrite<u32>),
        /// Line status. A, p. 15.
        (0x54 => pub lsr: ReadOnly<u32, LSR::Register>),
        /// Modem status. A, p. 15.
        (0x58 => pub msr: ReadOnly<u32>),
        /// A scratch byte. A, p. 16.
        (0x5C => pub scratch: ReadWrite<u32>),
        /// Control. A, p. 16.
        (0x60 => pub cntl: ReadWrite<u32, CNTL::Register>),
        /// Status. A, p. 18.
        (0x64 => pub stat: ReadOnly<u32>),
        /// Baud rate. A, p. 19.
        (0x68 => pub baud: ReadWrite<u32>),
        (0x6C => @END),
    }
}

// SAFETY: the struct consists of registers and reserved bytes.
unsafe impl crate::Registers for MiniUart {
    const NAME: &'static str = "mini UART";
}
