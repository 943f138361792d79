//! The mailboxes between the ARM cores and the firmware on the VideoCore.
//!
//! *Accessing mailboxes*, <https://github.com/raspberrypi/firmware/wiki/Accessing-mailboxes>.

use tock_registers::registers::{ReadOnly, WriteOnly};
use tock_registers::{register_bitfields, register_structs};

register_bitfields! {
    u32,
    /// A word of a mailbox: 28 bits of data, and the channel.
    pub WORD [CHANNEL OFFSET(0) NUMBITS(4) [Properties = 8], DATA OFFSET(4) NUMBITS(28) []],
    /// State of a mailbox.
    pub STATUS [EMPTY OFFSET(30) NUMBITS(1) [], FULL OFFSET(31) NUMBITS(1) []],
}

register_structs! {
    /// Mailbox 0, from the firmware, and mailbox 1, to the firmware.
    pub Mailbox {
        /// Takes the next word from the firmware.
        (0x00 => pub read: ReadOnly<u32, WORD::Register>),
        (0x04 => _reserved0),
        /// State of mailbox 0.
        (0x18 => pub read_status: ReadOnly<u32, STATUS::Register>),
        (0x1C => _reserved1),
        /// Sends a word to the firmware.
        (0x20 => pub write: WriteOnly<u32, WORD::Register>),
        (0x24 => _reserved2),
        /// State of mailbox 1.
        (0x38 => pub write_status: ReadOnly<u32, STATUS::Register>),
        (0x3C => @END),
    }
}

// SAFETY: the struct consists of registers and reserved bytes.
unsafe impl crate::Registers for Mailbox {
    const NAME: &'static str = "mailbox";
}
