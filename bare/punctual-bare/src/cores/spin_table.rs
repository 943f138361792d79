//! Starting the cores of a Raspberry Pi in 64-bit state: each polls a word in memory.

use core::arch::{asm, naked_asm};

use super::StartCores;
use crate::arch;

/// Offset of the word that the firmware's loop polls, for each core, in the first page.
/// *Devicetree* of the boards, `cpu-release-addr`.
const RELEASE: usize = 0xD8;

/// The table of entry points in the first page.
#[derive(Clone, Copy, Debug)]
pub struct SpinTable;

impl StartCores for SpinTable {
    const TABLE: Option<usize> = Some(0);

    /// Waits for the word of the core, as in the firmware's loop.
    #[unsafe(naked)]
    unsafe extern "C" fn park() -> ! {
        naked_asm!(
            "2:",
            "wfe",
            "mov x0, #{release}",
            "ldr x0, [x0, x4, lsl #3]",
            "cbz x0, 2b",
            "br x0",
            release = const RELEASE,
        )
    }

    fn start(core: u32, entry: usize) -> bool {
        let release = (arch::mmu::start_table() + RELEASE + 8 * core as usize) as *mut u64;
        // SAFETY: the page is mapped there. The firmware reserves these words for this purpose, and
        // only the core that starts another writes to its word. The core starts at an entry for
        // secondary cores.
        unsafe { release.write_volatile(entry as u64) };
        // The polling core has its caches off.
        arch::flush(release.addr()..release.addr() + 8);
        // SAFETY: wakes the core.
        unsafe { asm!("sev", options(nostack)) };
        true
    }

    /// Makes the other cores sleep until there is work for them.
    ///
    /// QEMU's Raspberry Pi 3 and 4 keep them in a polling loop with WFE, which does not sleep in
    /// QEMU: on counted time, the loops of three cores take turns with the program, and idle time
    /// is not skipped. On a real board, WFE sleeps, and the firmware's loop remains unchanged.
    #[cfg(feature = "semihosting")]
    fn settle() {
        for core in 1..crate::board::CORES as u32 {
            super::start(core, || {});
        }
    }
}
