//! The interrupts of the Raspberry Pi 2 and 3: those of the cores, and behind one of them those of the peripherals, by the
//! controller of the BCM2835.
//!
//! *ARM Quad A7 core*, 4.6 to 4.8 and 4.10; *BCM2835 ARM Peripherals*, 7.5. Those of the peripherals all go to core 0.

use crate::arch;

/// The interrupt of the virtual timer of the core, numbered after those of the peripherals.
pub const TIMER: u32 = 64 + 3;

/// The interrupt by which one core calls another: its mailbox 0. Mailbox 3 is the firmware's, until the core has started.
pub const BELL: u32 = 64 + 4;

/// That of the local timer, which all cores share and core 0 gets.
const LOCAL_TIMER: u32 = crate::board::interrupts::LOCAL_TIMER;

/// Core 0: which of its timers interrupt it, and what is pending. Bit 3 is the virtual timer, bit 8 the peripherals, bit 11 the
/// local timer.
const TIMER_CONTROL: *mut u32 = 0x4000_0040 as *mut u32;
const SOURCE: *const u32 = 0x4000_0060 as *const u32;
/// Which mailboxes interrupt it, bits to be set in mailbox 0, and to be cleared. The mailboxes of a core are 16 bytes from the next one's.
const MAILBOX_CONTROL: *mut u32 = 0x4000_0050 as *mut u32;
const MAILBOX_SET: *mut u32 = 0x4000_0080 as *mut u32;
const MAILBOX_CLEAR: *mut u32 = 0x4000_00C0 as *mut u32;
const VIRTUAL_TIMER: u32 = 1 << 3;
const MAILBOX: u32 = 1 << 4;
const PERIPHERALS: u32 = 1 << 8;
const LOCAL: u32 = 1 << 11;

/// The local timer itself, and the bit of its interrupt.
const LOCAL_CONTROL: *mut u32 = 0x4000_0034 as *mut u32;
const LOCAL_ENABLE: u32 = 1 << 29;

/// A register of the peripherals' controller, of two for 32 interrupts each.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Register {
    Pending = 0x3F00_B204,
    Enable = 0x3F00_B210,
    Disable = 0x3F00_B21C,
}

fn at(register: Register, half: u32) -> *mut u32 {
    (register as usize + 4 * half as usize) as *mut u32
}

/// # Safety
/// As for [`super::init`].
pub(crate) unsafe fn init() {
    for half in 0..2 {
        // SAFETY: the registers exist on these boards, and nothing waits for an interrupt yet.
        unsafe { at(Register::Disable, half).write_volatile(u32::MAX) };
    }
    // SAFETY: by this function's contract.
    unsafe { init_core() };
}

/// # Safety
/// As for [`super::init`], for each core.
pub(crate) unsafe fn init_core() {
    let core = arch::core() as usize;
    // SAFETY: the registers of this core exist on these boards.
    unsafe {
        TIMER_CONTROL.wrapping_add(core).write_volatile(0);
        MAILBOX_CONTROL.wrapping_add(core).write_volatile(1);
    }
}

pub(crate) fn ring(core: u32) {
    // SAFETY: the register exists on these boards, and sets bits only.
    unsafe { MAILBOX_SET.wrapping_add(4 * core as usize).write_volatile(1) };
}

/// Whether the interrupt comes to `core`, which cannot be changed for one alone.
pub(crate) fn route(_: u32, core: u32) -> bool {
    core == 0
}

/// An interrupt by its number.
#[derive(Clone, Copy)]
pub(crate) struct Acknowledged(u32);

impl Acknowledged {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// The lowest number among what is pending.
pub(crate) fn acknowledge() -> Option<Acknowledged> {
    let core = arch::core() as usize;
    // SAFETY: the register exists on these boards, and reading it changes nothing.
    let source = unsafe { SOURCE.wrapping_add(core).read_volatile() };
    if source & VIRTUAL_TIMER != 0 {
        return Some(Acknowledged(TIMER));
    }
    if source & MAILBOX != 0 {
        // SAFETY: the register exists on these boards, and this core is the one to clear it. Whoever rings from here on rings again.
        unsafe { MAILBOX_CLEAR.wrapping_add(4 * core).write_volatile(u32::MAX) };
        arch::data_barrier();
        return Some(Acknowledged(BELL));
    }
    if source & LOCAL != 0 {
        return Some(Acknowledged(LOCAL_TIMER));
    }
    if source & PERIPHERALS == 0 {
        return None;
    }
    (0..2).find_map(|half| {
        // SAFETY: as above.
        let pending = unsafe { at(Register::Pending, half).read_volatile() };
        (pending != 0).then(|| Acknowledged(32 * half + pending.trailing_zeros()))
    })
}

/// There is nothing to be done: an interrupt is pending as long as its line is raised.
pub(crate) fn end(_: Acknowledged) {}

pub(crate) fn enable(number: u32) {
    // SAFETY: the registers exist on these boards; one that enables by bits that are set can be written by anyone. That of the
    // timers has no other bit in use.
    unsafe {
        match number {
            TIMER => TIMER_CONTROL.wrapping_add(arch::core() as usize).write_volatile(VIRTUAL_TIMER),
            BELL => {}
            LOCAL_TIMER => LOCAL_CONTROL.write_volatile(LOCAL_CONTROL.read_volatile() | LOCAL_ENABLE),
            _ => at(Register::Enable, number / 32).write_volatile(1 << (number % 32)),
        }
    }
}

pub(crate) fn disable(number: u32) {
    // SAFETY: as in `enable`.
    unsafe {
        match number {
            TIMER => TIMER_CONTROL.wrapping_add(arch::core() as usize).write_volatile(0),
            // It is cleared already.
            BELL => {}
            LOCAL_TIMER => LOCAL_CONTROL.write_volatile(LOCAL_CONTROL.read_volatile() & !LOCAL_ENABLE),
            _ => at(Register::Disable, number / 32).write_volatile(1 << (number % 32)),
        }
    }
}
