//! The local peripherals of the cores: their timers, mailboxes and interrupts. Q, pp. 7–17; P,
//! 6.5.2.

use core::fmt;

use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};
use tock_registers::{register_bitfields, register_structs};

use crate::Registers;

register_bitfields! {
    u32,
    /// Enabled timer interrupts of a core: bits 0 to 3 by IRQ, 4 to 7 by FIQ, which takes
    /// precedence. Q, p. 13.
    pub TIMERS [CNTPS_IRQ OFFSET(0) NUMBITS(1) [], CNTPNS_IRQ OFFSET(1) NUMBITS(1) [], CNTHP_IRQ OFFSET(2) NUMBITS(1) [], CNTV_IRQ OFFSET(3) NUMBITS(1) [], CNTPS_FIQ OFFSET(4) NUMBITS(1) [], CNTPNS_FIQ OFFSET(5) NUMBITS(1) [], CNTHP_FIQ OFFSET(6) NUMBITS(1) [], CNTV_FIQ OFFSET(7) NUMBITS(1) []],
    /// Enabled mailbox interrupts of a core: bits 0 to 3 by IRQ, 4 to 7 by FIQ, which takes
    /// precedence. Q, p. 14.
    pub MAILBOXES [IRQ OFFSET(0) NUMBITS(4) [], FIQ OFFSET(4) NUMBITS(4) []],
    /// Sources of a core's interrupt. Q, p. 16.
    pub SOURCE [CNTPS OFFSET(0) NUMBITS(1) [], CNTPNS OFFSET(1) NUMBITS(1) [], CNTHP OFFSET(2) NUMBITS(1) [], CNTV OFFSET(3) NUMBITS(1) [], MAILBOXES OFFSET(4) NUMBITS(4) [], GPU OFFSET(8) NUMBITS(1) [], PMU OFFSET(9) NUMBITS(1) [], AXI OFFSET(10) NUMBITS(1) [], LOCAL_TIMER OFFSET(11) NUMBITS(1) []],
    /// Core that the peripherals interrupt. Q, p. 11.
    pub GPU_ROUTING [IRQ OFFSET(0) NUMBITS(2) [], FIQ OFFSET(2) NUMBITS(2) []],
    /// The local timer. Q, p. 17.
    pub LOCAL_TIMER [RELOAD OFFSET(0) NUMBITS(28) [], ENABLE OFFSET(28) NUMBITS(1) [], INTERRUPT_ENABLE OFFSET(29) NUMBITS(1) [], PENDING OFFSET(31) NUMBITS(1) []],
}

register_structs! {
    /// Registers shared by all cores. Q, p. 7.
    pub Local {
        /// Source and step of the core timer. Q, p. 8.
        (0x00 => pub control: ReadWrite<u32>),
        (0x04 => _reserved0),
        /// Prescaler of the core timer: 2³¹ over it. Q, p. 8.
        (0x08 => pub core_timer_prescaler: ReadWrite<u32>),
        /// Core that the peripherals interrupt. Q, p. 11.
        (0x0C => pub gpu_interrupts_routing: ReadWrite<u32, GPU_ROUTING::Register>),
        /// Q, p. 11.
        (0x10 => pub performance_monitor_interrupts_routing_set: WriteOnly<u32>),
        /// Q, p. 12.
        (0x14 => pub performance_monitor_interrupts_routing_clear: WriteOnly<u32>),
        (0x18 => _reserved1),
        /// Reading latches the upper half. Q, p. 10.
        (0x1C => pub core_timer_ls: ReadWrite<u32>),
        /// Q, p. 10.
        (0x20 => pub core_timer_ms: ReadWrite<u32>),
        /// Number of the core that the local timer interrupts, plus 4 for FIQ. Q, p. 18.
        (0x24 => pub local_interrupt_routing: ReadWrite<u32>),
        (0x28 => _reserved2),
        /// Q, p. 15.
        (0x2C => pub axi_outstanding_counters: ReadOnly<u32>),
        /// Q, p. 15.
        (0x30 => pub axi_outstanding_irq: ReadWrite<u32>),
        /// The local timer. Q, p. 17.
        (0x34 => pub local_timer: ReadWrite<u32, LOCAL_TIMER::Register>),
        /// Bit 31 clears the interrupt of the local timer, bit 30 reloads it. Q, p. 18.
        (0x38 => pub local_timer_clear_reload: WriteOnly<u32>),
        (0x3C => @END),
    }
}

register_structs! {
    /// Registers of each core. Offsets are relative to the base plus 0x40. Q, p. 7.
    pub Cores {
        /// Enabled timer interrupts. Q, p. 13.
        (0x00 => timers: [ReadWrite<u32, TIMERS::Register>; 4]),
        /// Enabled mailbox interrupts. Q, p. 14.
        (0x10 => mailboxes: [ReadWrite<u32, MAILBOXES::Register>; 4]),
        /// Sources of the IRQ. Q, p. 16.
        (0x20 => irq_source: [ReadOnly<u32, SOURCE::Register>; 4]),
        /// Sources of the FIQ. Q, p. 16.
        (0x30 => fiq_source: [ReadOnly<u32, SOURCE::Register>; 4]),
        /// Ones set bits of a mailbox. Q, p. 15.
        (0x40 => mailbox_set: [[WriteOnly<u32>; 4]; 4]),
        /// Value of a mailbox; written ones clear its bits. Q, p. 15.
        (0x80 => mailbox: [[ReadWrite<u32>; 4]; 4]),
        (0xC0 => @END),
    }
}

// SAFETY: the struct consists of registers and reserved bytes.
unsafe impl Registers for Local {
    const NAME: &'static str = "local peripherals";
}

// SAFETY: as above.
unsafe impl Registers for Cores {
    const NAME: &'static str = "local peripherals of the cores";
}

/// The local peripherals of one core.
pub struct Core {
    registers: &'static Cores,
    number: usize,
}

impl Core {
    /// Creates the local peripherals of the core with this number.
    ///
    /// # Panics
    /// If there is no such core.
    ///
    /// # Safety
    /// Nothing else has the local peripherals of this core.
    pub unsafe fn new(registers: &'static Cores, number: usize) -> Self {
        assert!(number < 4, "there is no core {number}");
        Self { registers, number }
    }

    /// Returns the number of the core.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Enabled timer interrupts of the core. Q, p. 13.
    pub fn timers(&self) -> &ReadWrite<u32, TIMERS::Register> {
        &self.registers.timers[self.number]
    }

    /// Enabled mailbox interrupts of the core. Q, p. 14.
    pub fn mailboxes(&self) -> &ReadWrite<u32, MAILBOXES::Register> {
        &self.registers.mailboxes[self.number]
    }

    /// Sources of the core's IRQ. Q, p. 16.
    pub fn irq_source(&self) -> &ReadOnly<u32, SOURCE::Register> {
        &self.registers.irq_source[self.number]
    }

    /// Sources of the core's FIQ. Q, p. 16.
    pub fn fiq_source(&self) -> &ReadOnly<u32, SOURCE::Register> {
        &self.registers.fiq_source[self.number]
    }

    /// A mailbox of the core: its value; written ones clear its bits. Q, p. 15.
    pub fn mailbox(&self, mailbox: usize) -> &ReadWrite<u32> {
        &self.registers.mailbox[self.number][mailbox]
    }

    /// A mailbox of any core, for writing. Q, p. 15.
    pub fn mailbox_of(&self, core: usize, mailbox: usize) -> &WriteOnly<u32> {
        &self.registers.mailbox_set[core][mailbox]
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "local peripherals of core {}", self.number)
    }
}
