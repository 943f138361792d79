//! The interrupt controller of the BCM2835, for the interrupts of its peripherals. A, pp. 109–118;
//! P, 6.5.3.
//!
//! In registers of two words, the first is for the interrupts 0 to 31, and the second for 32 to 63.

use tock_registers::register_structs;
use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};

register_structs! {
    /// A, p. 112. Offsets are relative to the base plus 0x200.
    pub LegacyInterrupts {
        /// A, p. 113.
        (0x00 => pub irq_basic_pending: ReadOnly<u32>),
        /// A, pp. 114–115.
        (0x04 => pub irq_pending: [ReadOnly<u32>; 2]),
        /// Interrupt that is the FIQ. A, p. 116.
        (0x0C => pub fiq_control: ReadWrite<u32>),
        /// Ones enable. A, pp. 116–117.
        (0x10 => pub enable_irqs: [WriteOnly<u32>; 2]),
        /// A, p. 117.
        (0x18 => pub enable_basic_irqs: WriteOnly<u32>),
        /// Ones disable. A, p. 117.
        (0x1C => pub disable_irqs: [WriteOnly<u32>; 2]),
        /// A, p. 118.
        (0x24 => pub disable_basic_irqs: WriteOnly<u32>),
        (0x28 => @END),
    }
}

// SAFETY: the struct consists of registers.
unsafe impl crate::Registers for LegacyInterrupts {
    const NAME: &'static str = "legacy interrupt controller";
}
