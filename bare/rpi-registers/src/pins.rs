//! The pins, and the pulses on them.

/// GPIO. A, pp. 89–105; P, chapter 5.
pub mod gpio {
    use tock_registers::register_structs;
    use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};

    register_structs! {
        /// A, p. 90; P, 5.2. In registers with one bit per pin, bit 0 of the first word is pin 0,
        /// and that of the second pin 32.
        pub GPIO {
            /// Function select, three bits for each of ten pins: 0 input, 1 output, 4 to 7
            /// alternate functions 0 to 3, 3 and 2 alternate functions 4 and 5. A, pp. 91–94.
            (0x00 => pub gpfsel: [ReadWrite<u32>; 6]),
            (0x18 => _reserved0),
            /// Output set: a one sets the pin. A, p. 95.
            (0x1C => pub gpset: [WriteOnly<u32>; 2]),
            (0x24 => _reserved1),
            /// Output clear: a one clears the pin. A, p. 95.
            (0x28 => pub gpclr: [WriteOnly<u32>; 2]),
            (0x30 => _reserved2),
            /// Level. A, p. 96.
            (0x34 => pub gplev: [ReadOnly<u32>; 2]),
            (0x3C => _reserved3),
            /// Event detect status: a one is an event; writing a one clears it. A, p. 96.
            (0x40 => pub gpeds: [ReadWrite<u32>; 2]),
            (0x48 => _reserved4),
            /// Rising edge detect enable, sampled by the clock. A, p. 97.
            (0x4C => pub gpren: [ReadWrite<u32>; 2]),
            (0x54 => _reserved5),
            /// Falling edge detect enable. A, p. 98.
            (0x58 => pub gpfen: [ReadWrite<u32>; 2]),
            (0x60 => _reserved6),
            /// High detect enable. A, p. 99.
            (0x64 => pub gphen: [ReadWrite<u32>; 2]),
            (0x6C => _reserved7),
            /// Low detect enable. A, p. 99.
            (0x70 => pub gplen: [ReadWrite<u32>; 2]),
            (0x78 => _reserved8),
            /// Asynchronous rising edge detect enable: edges of any length. A, p. 99.
            (0x7C => pub gparen: [ReadWrite<u32>; 2]),
            (0x84 => _reserved9),
            /// Asynchronous falling edge detect enable. A, p. 100.
            (0x88 => pub gpafen: [ReadWrite<u32>; 2]),
            (0x90 => _reserved10),
            /// Pull-up/down enable: 0 off, 1 down, 2 up. Not on the BCM2711. A, p. 100.
            (0x94 => pub gppud: ReadWrite<u32>),
            /// Pull-up/down clock: the pins to which `gppud` applies. Not on the BCM2711. A, p.
            /// 101.
            (0x98 => pub gppudclk: [ReadWrite<u32>; 2]),
            (0xA0 => _reserved11),
            /// Pull-up/down, two bits for each of sixteen pins: 0 off, 1 up, 2 down. Only on the
            /// BCM2711. P, 5.2.
            (0xE4 => pub gpio_pup_pdn_cntrl_reg: [ReadWrite<u32>; 4]),
            (0xF4 => @END),
        }
    }

    // SAFETY: the struct consists of registers and reserved bytes.
    unsafe impl crate::Registers for GPIO {
        const NAME: &'static str = "GPIO";
    }
}

/// PWM. A, pp. 138–147; P, chapter 8.
pub mod pwm {
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
}
