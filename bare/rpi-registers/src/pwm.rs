//! PWM. A, pp. 138–147; P, chapter 8.

use tock_registers::registers::{ReadWrite, WriteOnly};
use tock_registers::{register_bitfields, register_structs};

register_bitfields! {
    u32,
    /// Control, a byte for each channel. A, p. 142.
    pub CTL [PWEN1 OFFSET(0) NUMBITS(1) [], MODE1 OFFSET(1) NUMBITS(1) [], RPTL1 OFFSET(2) NUMBITS(1) [], SBIT1 OFFSET(3) NUMBITS(1) [], POLA1 OFFSET(4) NUMBITS(1) [], USEF1 OFFSET(5) NUMBITS(1) [], CLRF1 OFFSET(6) NUMBITS(1) [], MSEN1 OFFSET(7) NUMBITS(1) [], PWEN2 OFFSET(8) NUMBITS(1) [], MODE2 OFFSET(9) NUMBITS(1) [], RPTL2 OFFSET(10) NUMBITS(1) [], SBIT2 OFFSET(11) NUMBITS(1) [], POLA2 OFFSET(12) NUMBITS(1) [], USEF2 OFFSET(13) NUMBITS(1) [], MSEN2 OFFSET(15) NUMBITS(1) []],
    /// Status; ones clear the errors. A, p. 144.
    pub STA [FULL1 OFFSET(0) NUMBITS(1) [], EMPT1 OFFSET(1) NUMBITS(1) [], WERR1 OFFSET(2) NUMBITS(1) [], RERR1 OFFSET(3) NUMBITS(1) [], GAPO1 OFFSET(4) NUMBITS(1) [], GAPO2 OFFSET(5) NUMBITS(1) [], BERR OFFSET(8) NUMBITS(1) [], STA1 OFFSET(9) NUMBITS(1) [], STA2 OFFSET(10) NUMBITS(1) []],
}

register_structs! {
    /// A, p. 141.
    pub PWM {
        /// Control. A, p. 142.
        (0x00 => pub ctl: ReadWrite<u32, CTL::Register>),
        /// Status. A, p. 144.
        (0x04 => pub sta: ReadWrite<u32, STA::Register>),
        /// DMA. A, p. 145.
        (0x08 => pub dmac: ReadWrite<u32>),
        (0x0C => _reserved0),
        /// The period of channel 1 in clock cycles. A, p. 145.
        (0x10 => pub rng1: ReadWrite<u32>),
        /// The high time of a period. A, p. 146.
        (0x14 => pub dat1: ReadWrite<u32>),
        /// Data for both channels. A, p. 146.
        (0x18 => pub fif1: WriteOnly<u32>),
        (0x1C => _reserved1),
        /// The period of channel 2. A, p. 146.
        (0x20 => pub rng2: ReadWrite<u32>),
        /// The high time of a period. A, p. 147.
        (0x24 => pub dat2: ReadWrite<u32>),
        (0x28 => @END),
    }
}

// SAFETY: the struct consists of registers and reserved bytes.
unsafe impl crate::Registers for PWM {
    const NAME: &'static str = "PWM";
}
