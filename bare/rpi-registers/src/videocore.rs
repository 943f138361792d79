//! The system timer, and the mailboxes of the firmware.

/// The mailboxes between the ARM cores and the firmware on the VideoCore.
///
/// *Accessing mailboxes*, <https://github.com/raspberrypi/firmware/wiki/Accessing-mailboxes>.
pub mod mailbox {
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
}

/// The system timer: 64 bits at 1 MHz, and four compare registers. A, pp. 172–174; P, chapter 10.
pub mod system_timer {
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
}
