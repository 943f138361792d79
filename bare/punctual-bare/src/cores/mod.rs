//! Starting and interrupting the other cores.
//!
//! A started core runs the given work and then sleeps until there is more.

use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use core::{mem, ptr};

use crate::arch;
use crate::board::{CORES, Interrupts, Standalone, This};
use crate::interrupt::Controller;

#[cfg(target_arch = "arm")]
pub use mailboxes::Mailboxes;
pub use psci::Psci;
#[cfg(target_arch = "aarch64")]
pub use spin_table::SpinTable;

/// The doorbell interrupt between cores.
pub const BELL: u32 = Interrupts::BELL;

/// The way in which the other cores of a board wait and are started.
pub trait StartCores {
    /// The page of memory that [`start`](Self::start) writes, if any. 64-bit boards map it.
    const TABLE: Option<usize> = None;

    /// Waits until the core is [started](Self::start). Entered by a core that QEMU starts at the
    /// beginning of the image.
    ///
    /// # Safety
    /// Entered only by the first instructions, without a stack. r4 or x4 is the number of the core.
    unsafe extern "C" fn park() -> !;

    /// Starts another core at `entry`, the address of an entry point for secondary cores. Returns
    /// `false` if the firmware does not start it.
    fn start(core: u32, entry: usize) -> bool;

    /// Called at the start of the program, when cores can be started.
    fn settle() {}
}

type Cores = <This as Standalone>::Cores;

/// Called at the start of the program.
pub(crate) fn settle() {
    Cores::settle();
}

/// Cores that have been started.
static STARTED: [AtomicBool; CORES] = [const { AtomicBool::new(false) }; CORES];

/// Pending work of each core: null, or a `fn()`.
static WORK: [AtomicPtr<()>; CORES] = [const { AtomicPtr::new(ptr::null_mut()) }; CORES];

unsafe extern "C" {
    /// Entry point of a started core, in `start.s`.
    fn _start_other();
}

/// Returns the number of the calling core, from 0 on.
#[must_use]
pub fn this() -> u32 {
    arch::core()
}

/// Makes another core call `work` once, with interrupts masked, on a separate stack. Starts the
/// core if necessary.
///
/// Returns `false` if the board does not have this core, or if its firmware does not start the
/// core.
pub fn start(core: u32, work: fn()) -> bool {
    let index = core as usize;
    if core == 0 || index >= CORES || core == arch::core() {
        return false;
    }
    // Release: the core sees all prior writes of this one.
    WORK[index].store(work as *mut (), Ordering::Release);
    if STARTED[index].swap(true, Ordering::AcqRel) {
        ring(core);
        return true;
    }
    let entry: unsafe extern "C" fn() = _start_other;
    let powered = Cores::start(core, entry as usize);
    if !powered {
        STARTED[index].store(false, Ordering::Relaxed);
        return false;
    }
    ring(core);
    true
}

/// Interrupts another core with [`BELL`]. Prior writes of this core are visible in its handler.
pub fn ring(core: u32) {
    arch::data_barrier();
    Interrupts::ring(core);
}

/// Interrupts all other started cores.
pub(crate) fn ring_all() {
    for core in (0..CORES as u32).filter(|&core| core != arch::core()) {
        // The first core runs without having been started.
        if core == 0 || STARTED[core as usize].load(Ordering::Relaxed) {
            ring(core);
        }
    }
}

/// Must be the first call in the handler of [`BELL`]: if another core ends the program, this one
/// sleeps forever.
pub fn rung() {
    if crate::fault::is_ending() {
        loop {
            arch::mask_interrupts();
            arch::wait_for_interrupt();
        }
    }
}

/// Routes an interrupt to this core instead of the first. Returns `false` if the interrupt
/// controller cannot.
pub fn route(number: u32, core: u32) -> bool {
    Interrupts::route(number, core)
}

/// Entry point after the first instructions of another core, with a stack and interrupts masked.
///
/// # Safety
/// Called only by these instructions.
#[unsafe(no_mangle)]
unsafe extern "C" fn __punctual_bare_start_other() -> ! {
    // SAFETY: the MMU of this core is off, and core 0 has built the tables.
    unsafe { arch::mmu::turn_on() };
    arch::unmask_errors();
    arch::set_own(ptr::null());
    arch::timer::disarm();
    // SAFETY: called once on this core, with interrupts masked.
    unsafe { Interrupts::init_core() };
    let work = &WORK[arch::core() as usize];
    loop {
        // Acquire: see `start`.
        let next = work.swap(ptr::null_mut(), Ordering::Acquire);
        if next.is_null() {
            // A pending doorbell ends the wait, although interrupts are masked.
            arch::wait_for_interrupt();
            if let Some(bell) = Interrupts::acknowledge() {
                Interrupts::end(bell);
            }
            continue;
        }
        // SAFETY: `start` has stored a `fn()`.
        let next = unsafe { mem::transmute::<*mut (), fn()>(next) };
        next();
        arch::mask_interrupts();
    }
}

/// Starting the cores of a BCM2836: each polls a mailbox. *ARM Quad A7 core*, 4.7 and 4.8.
#[cfg(target_arch = "arm")]
mod mailboxes {
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
            // SAFETY: the registers exist on this board, and the core starts at an entry for
            // secondary cores.
            unsafe {
                control.write_volatile(1);
                mailbox.write_volatile(entry as u32);
                asm!("dsb", "sev", options(nostack));
            }
            true
        }
    }
}

/// Starting the cores of QEMU's `virt`, which are powered off: PSCI's CPU_ON. *Arm Power State
/// Coordination Interface*, DEN 0022, 5.6.
mod psci {
    use core::arch::{asm, naked_asm};

    use super::StartCores;

    /// CPU_ON, with arguments of the size of a register.
    const CPU_ON: usize = if cfg!(target_pointer_width = "64") { 0xC400_0003 } else { 0x8400_0003 };

    /// The calls of the firmware that QEMU emulates.
    #[derive(Clone, Copy, Debug)]
    pub struct Psci;

    impl StartCores for Psci {
        /// Sleeps: such a core does not run before it is started.
        #[unsafe(naked)]
        unsafe extern "C" fn park() -> ! {
            naked_asm!("2:", "wfi", "b 2b")
        }

        fn start(core: u32, entry: usize) -> bool {
            let result: isize;
            // SAFETY: the firmware changes only these registers, and the core starts at an entry
            // for secondary cores.
            unsafe {
                #[cfg(target_arch = "arm")]
                asm!(
                    ".arch_extension virt",
                    "hvc #0",
                    inout("r0") CPU_ON => result,
                    inout("r1") core => _,
                    inout("r2") entry => _,
                    inout("r3") 0 => _,
                    options(nostack),
                );
                #[cfg(target_arch = "aarch64")]
                asm!(
                    "hvc #0",
                    inout("x0") CPU_ON => result,
                    inout("x1") u64::from(core) => _,
                    inout("x2") entry => _,
                    inout("x3") 0_u64 => _,
                    options(nostack),
                );
            }
            result as i32 == 0
        }
    }
}

/// Starting the cores of a Raspberry Pi in 64-bit state: each polls a word in memory.
#[cfg(target_arch = "aarch64")]
mod spin_table {
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
            // SAFETY: the page is mapped there. The firmware reserves these words for this purpose,
            // and only the core that starts another writes to its word. The core starts at an entry
            // for secondary cores.
            unsafe { release.write_volatile(entry as u64) };
            // The polling core has its caches off.
            arch::flush(release.addr()..release.addr() + 8);
            // SAFETY: wakes the core.
            unsafe { asm!("sev", options(nostack)) };
            true
        }

        /// Makes the other cores sleep until there is work for them.
        ///
        /// QEMU's Raspberry Pi 3 and 4 keep them in a polling loop with WFE, which does not sleep
        /// in QEMU: on counted time, the loops of three cores take turns with the program, and idle
        /// time is not skipped. On a real board, WFE sleeps, and the firmware's loop remains
        /// unchanged.
        #[cfg(feature = "semihosting")]
        fn settle() {
            for core in 1..crate::board::CORES as u32 {
                super::start(core, || {});
            }
        }
    }
}
