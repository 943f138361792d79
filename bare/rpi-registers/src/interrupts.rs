//! The interrupt controllers that all cores share.

/// The Generic Interrupt Controller, version 2. G, chapter 4; P, 6.3.
///
/// The distributor's registers for the first 32 interrupts are private to each core: the first word
/// of registers with a bit for each interrupt, and the first 32 bytes of those with a byte.
pub mod gic {
    use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};
    use tock_registers::{register_bitfields, register_structs};

    register_bitfields! {
        u32,
        /// G, 4.3.1.
        pub GICD_CTLR [ENABLE OFFSET(0) NUMBITS(1) []],
        /// Number of interrupts in 32s, minus 1, and number of cores, minus 1. G, 4.3.2.
        pub GICD_TYPER [IT_LINES_NUMBER OFFSET(0) NUMBITS(5) [], CPU_NUMBER OFFSET(5) NUMBITS(3) []],
        /// A software-generated interrupt and its targets. G, 4.3.15.
        pub GICD_SGIR [SGI_INT_ID OFFSET(0) NUMBITS(4) [], CPU_TARGET_LIST OFFSET(16) NUMBITS(8) [], TARGET_LIST_FILTER OFFSET(24) NUMBITS(2) [Listed = 0, Others = 1, Itself = 2]],
        /// G, 4.4.1.
        pub GICC_CTLR [ENABLE OFFSET(0) NUMBITS(1) []],
        /// The interrupt that starts or ends and, for the first sixteen, its source core. G, 4.4.4
        /// and 4.4.5.
        pub GICC_IAR [INTERRUPT_ID OFFSET(0) NUMBITS(10) [], CPU_ID OFFSET(10) NUMBITS(3) []],
    }

    register_structs! {
        /// The distributor. G, 4.1.2.
        pub Distributor {
            /// G, 4.3.1.
            (0x000 => pub gicd_ctlr: ReadWrite<u32, GICD_CTLR::Register>),
            /// G, 4.3.2.
            (0x004 => pub gicd_typer: ReadOnly<u32, GICD_TYPER::Register>),
            /// G, 4.3.3.
            (0x008 => pub gicd_iidr: ReadOnly<u32>),
            (0x00C => _reserved0),
            /// Groups. G, 4.3.4.
            (0x080 => pub gicd_igroupr: [ReadWrite<u32>; 32]),
            /// Ones enable. G, 4.3.5.
            (0x100 => pub gicd_isenabler: [ReadWrite<u32>; 32]),
            /// Ones disable. G, 4.3.6.
            (0x180 => pub gicd_icenabler: [ReadWrite<u32>; 32]),
            /// Ones make pending. G, 4.3.7.
            (0x200 => pub gicd_ispendr: [ReadWrite<u32>; 32]),
            /// Ones make not pending. G, 4.3.8.
            (0x280 => pub gicd_icpendr: [ReadWrite<u32>; 32]),
            /// G, 4.3.9.
            (0x300 => pub gicd_isactiver: [ReadWrite<u32>; 32]),
            /// G, 4.3.10.
            (0x380 => pub gicd_icactiver: [ReadWrite<u32>; 32]),
            /// Priorities; 0 is the highest. G, 4.3.11.
            (0x400 => pub gicd_ipriorityr: [ReadWrite<u8>; 1024]),
            /// Target cores, a bit for each. G, 4.3.12.
            (0x800 => pub gicd_itargetsr: [ReadWrite<u8>; 1024]),
            /// Two bits for each of sixteen interrupts: 0 level-sensitive, 2 edge-triggered. G,
            /// 4.3.13.
            (0xC00 => pub gicd_icfgr: [ReadWrite<u32>; 64]),
            (0xD00 => _reserved1),
            /// G, 4.3.15.
            (0xF00 => pub gicd_sgir: WriteOnly<u32, GICD_SGIR::Register>),
            (0xF04 => @END),
        }
    }

    register_structs! {
        /// The CPU interface, private to each core at a common address. G, 4.1.3.
        pub CpuInterface {
            /// G, 4.4.1.
            (0x00 => pub gicc_ctlr: ReadWrite<u32, GICC_CTLR::Register>),
            /// Masks interrupts of this priority and lower ones. G, 4.4.2.
            (0x04 => pub gicc_pmr: ReadWrite<u32>),
            /// G, 4.4.3.
            (0x08 => pub gicc_bpr: ReadWrite<u32>),
            /// Reading acknowledges an interrupt. G, 4.4.4.
            (0x0C => pub gicc_iar: ReadOnly<u32, GICC_IAR::Register>),
            /// Writing ends the interrupt. G, 4.4.5.
            (0x10 => pub gicc_eoir: WriteOnly<u32, GICC_IAR::Register>),
            /// G, 4.4.6.
            (0x14 => pub gicc_rpr: ReadOnly<u32>),
            /// G, 4.4.7.
            (0x18 => pub gicc_hppir: ReadOnly<u32, GICC_IAR::Register>),
            (0x1C => @END),
        }
    }

    // SAFETY: the struct consists of registers and reserved bytes.
    unsafe impl crate::Registers for Distributor {
        const NAME: &'static str = "GIC distributor";
    }

    // SAFETY: the struct consists of registers.
    unsafe impl crate::Registers for CpuInterface {
        const NAME: &'static str = "GIC CPU interface";
    }
}

/// The interrupt controller of the BCM2835, for the interrupts of its peripherals. A, pp. 109–118;
/// P, 6.5.3.
///
/// In registers of two words, the first is for the interrupts 0 to 31, and the second for 32 to 63.
pub mod legacy_interrupts {
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
}
