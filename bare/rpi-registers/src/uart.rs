//! UART0, a PL011. A, pp. 175–192; U, chapter 3.

use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};
use tock_registers::{register_bitfields, register_structs};

register_bitfields! {
    u32,
    /// Data. A, p. 179; U, 3.3.1. The bits above the data are errors of their reception.
    pub DR [DATA OFFSET(0) NUMBITS(8) [], FE OFFSET(8) NUMBITS(1) [], PE OFFSET(9) NUMBITS(1) [], BE OFFSET(10) NUMBITS(1) [], OE OFFSET(11) NUMBITS(1) []],
    /// Flags. A, p. 181; U, 3.3.3.
    pub FR [CTS OFFSET(0) NUMBITS(1) [], BUSY OFFSET(3) NUMBITS(1) [], RXFE OFFSET(4) NUMBITS(1) [], TXFF OFFSET(5) NUMBITS(1) [], RXFF OFFSET(6) NUMBITS(1) [], TXFE OFFSET(7) NUMBITS(1) []],
    /// Line control. A, p. 184; U, 3.3.7.
    pub LCRH [BRK OFFSET(0) NUMBITS(1) [], PEN OFFSET(1) NUMBITS(1) [], EPS OFFSET(2) NUMBITS(1) [], STP2 OFFSET(3) NUMBITS(1) [], FEN OFFSET(4) NUMBITS(1) [], WLEN OFFSET(5) NUMBITS(2) [Five = 0, Six = 1, Seven = 2, Eight = 3], SPS OFFSET(7) NUMBITS(1) []],
    /// Control. A, p. 185; U, 3.3.8.
    pub CR [UARTEN OFFSET(0) NUMBITS(1) [], LBE OFFSET(7) NUMBITS(1) [], TXE OFFSET(8) NUMBITS(1) [], RXE OFFSET(9) NUMBITS(1) [], RTS OFFSET(11) NUMBITS(1) [], RTSEN OFFSET(14) NUMBITS(1) [], CTSEN OFFSET(15) NUMBITS(1) []],
    /// FIFO levels that interrupt. A, p. 187; U, 3.3.9.
    pub IFLS [TXIFLSEL OFFSET(0) NUMBITS(3) [Eighth = 0, Quarter = 1, Half = 2, ThreeQuarters = 3, SevenEighths = 4], RXIFLSEL OFFSET(3) NUMBITS(3) [Eighth = 0, Quarter = 1, Half = 2, ThreeQuarters = 3, SevenEighths = 4]],
    /// Interrupts: enabled, pending, pending and enabled, and cleared by ones. A, pp. 188–192; U,
    /// 3.3.10–3.3.13.
    pub INTERRUPTS [CTSM OFFSET(1) NUMBITS(1) [], RX OFFSET(4) NUMBITS(1) [], TX OFFSET(5) NUMBITS(1) [], RT OFFSET(6) NUMBITS(1) [], FE OFFSET(7) NUMBITS(1) [], PE OFFSET(8) NUMBITS(1) [], BE OFFSET(9) NUMBITS(1) [], OE OFFSET(10) NUMBITS(1) []],
}

register_structs! {
    /// A, p. 177; U, 3.2.
    pub UART {
        /// Data. A, p. 179.
        (0x00 => pub dr: ReadWrite<u32, DR::Register>),
        /// Receive errors; any write clears them. A, p. 180.
        (0x04 => pub rsrecr: ReadWrite<u32>),
        (0x08 => _reserved0),
        /// Flags. A, p. 181.
        (0x18 => pub fr: ReadOnly<u32, FR::Register>),
        (0x1C => _reserved1),
        /// Baud rate divisor, integer part. A, p. 183.
        (0x24 => pub ibrd: ReadWrite<u32>),
        /// Baud rate divisor, in 64ths. A, p. 183.
        (0x28 => pub fbrd: ReadWrite<u32>),
        /// Line control. A, p. 184.
        (0x2C => pub lcrh: ReadWrite<u32, LCRH::Register>),
        /// Control. A, p. 185.
        (0x30 => pub cr: ReadWrite<u32, CR::Register>),
        /// FIFO levels of interrupts. A, p. 187.
        (0x34 => pub ifls: ReadWrite<u32, IFLS::Register>),
        /// Enabled interrupts. A, p. 188.
        (0x38 => pub imsc: ReadWrite<u32, INTERRUPTS::Register>),
        /// Interrupts pending. A, p. 189.
        (0x3C => pub ris: ReadOnly<u32, INTERRUPTS::Register>),
        /// Pending and enabled interrupts. A, p. 190.
        (0x40 => pub mis: ReadOnly<u32, INTERRUPTS::Register>),
        /// Interrupts to clear. A, p. 191.
        (0x44 => pub icr: WriteOnly<u32, INTERRUPTS::Register>),
        /// DMA. A, p. 192.
        (0x48 => pub dmacr: ReadWrite<u32>),
        (0x4C => @END),
    }
}

// SAFETY: the struct consists of registers and reserved bytes.
unsafe impl crate::Registers for UART {
    const NAME: &'static str = "UART0";
}
