//! The system timer: 64 bits at 1 MHz, and four compare registers. A, pp. 172–174; P, chapter 10.

use tock_registers::registers::{ReadOnly, ReadWrite};
use tock_registers::{register_bitfields, register_structs};

register_bitfields! {
    u32,
    /// Compare registers that have matched; writing a one clears the match. A, p. 173.
    pub CS [M0 OFFSET(0) NUMBITS(1) [], M1 OFFSET(1) NUMBITS(1) [], M2 OFFSET(2) NUMBITS(1) [], M3 OFFSET(3) NUMBITS(1) []],
}

register_structs! {
    /// A, p. 172.
    pub SystemTimer {
        /// Control and status. A, p. 173.
        (0x00 => pub cs: ReadWrite<u32, CS::Register>),
        /// The counter's lower half. A, p. 173.
        (0x04 => pub clo: ReadOnly<u32>),
        /// The counter's upper half. A, p. 174.
        (0x08 => pub chi: ReadOnly<u32>),
        /// Compared with the lower half for equality. The VideoCore uses 0 and 2. A, p. 174.
        (0x0C => pub c: [ReadWrite<u32>; 4]),
        (0x1C => @END),
    }
}

// SAFETY: the struct consists of registers and reserved bytes.
unsafe impl crate::Registers for SystemTimer {
    const NAME: &'static str = "system timer";
}
