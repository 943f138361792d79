//! Serial interfaces: I2C, SPI and the UARTs.

/// I2C: the Broadcom Serial Controllers, BSC. A, pp. 28–36; P, chapter 3.
pub mod i2c {
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
}

/// SPI0. A, pp. 148–159; P, chapter 9.
pub mod spi {
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
}

/// UART0, a PL011. A, pp. 175–192; U, chapter 3.
pub mod uart {
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
        /// Interrupts: enabled, pending, pending and enabled, and cleared by ones. A, pp. 188–192;
        /// U, 3.3.10–3.3.13.
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
}

/// The mini UART, of the auxiliary peripherals. A, pp. 8–19; P, chapter 2.
pub mod mini_uart {
    use tock_registers::registers::{ReadOnly, ReadWrite};
    use tock_registers::{register_bitfields, register_structs};

    register_bitfields! {
        u32,
        /// Enabled auxiliary peripherals, and those that interrupt. A, p. 9.
        pub AUX [MINI_UART OFFSET(0) NUMBITS(1) [], SPI1 OFFSET(1) NUMBITS(1) [], SPI2 OFFSET(2) NUMBITS(1) []],
        /// Enabled interrupts. A, p. 12 and its errata: bit 0 is reception, which requires bits 2
        /// and 3 to be set.
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
}
