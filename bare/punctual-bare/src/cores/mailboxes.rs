//! Starting the cores of a BCM2836: each polls a mailbox. *ARM Quad A7 core*, 4.7 and 4.8.

use core::arch::{asm, naked_asm};

use super::StartCores;

/// Core 0: mailbox 3, which the firmware's loop polls.
const MAILBOX: usize = 0x4000_008C;
/// Core 0: enables the interrupt of mailbox 0, so that the doorbell wakes a core that sleeps in
/// `park`.
const MAILBOX_CONTROL: usize = 0x4000_0050;

/// The mailboxes of a BCM2836.
#[derive(Clone, Copy, Debug)]
pub struct Mailboxes;

impl StartCores for Mailboxes {
    /// Waits for mailbox 3 of the core, as in the firmware's loop.
    #[unsafe(naked)]
    unsafe extern "C" fn park() -> ! {
        naked_asm!(
            "2:",
            "wfi",
            "movw r0, #0x00cc",
            "movt r0, #0x4000",
            "add r0, r0, r4, lsl #4",
            "ldr r1, [r0]",
            "cmp r1, #0",
            "beq 2b",
            "str r1, [r0]",
            "bx r1",
        )
    }

    fn start(core: u32, entry: usize) -> bool {
        let mailbox = (MAILBOX + 0x10 * core as usize) as *mut u32;
        let control = (MAILBOX_CONTROL + 4 * core as usize) as *mut u32;
        // SAFETY: the registers exist on this board, and the core starts at an entry for secondary
        // cores.
        unsafe {
            control.write_volatile(1);
            mailbox.write_volatile(entry as u32);
            asm!("dsb", "sev", options(nostack));
        }
        true
    }
}
