//! The interrupt controllers of the Raspberry Pi 2 and 3: one for the interrupts of the cores and,
//! behind one of these, the BCM2835's controller for the peripherals.
//!
//! *ARM Quad A7 core*, 4.6 to 4.8 and 4.10; *BCM2835 ARM Peripherals*, 7.5. Interrupts of
//! peripherals are all delivered to core 0.

use crate::arch;

/// The interrupt of the virtual timer of the core, numbered after those of the peripherals.
pub const TIMER: u32 = 64 + 3;

/// The doorbell interrupt between cores: mailbox 0. The firmware uses mailbox 3 until the core has
/// started.
pub const BELL: u32 = 64 + 4;

/// The interrupt of the local timer, which all cores share and which is delivered to core 0.
const LOCAL_TIMER: u32 = crate::board::interrupts::LOCAL_TIMER;

/// Core 0: enabled timer interrupts, and pending interrupts. Bit 3 is the virtual timer, bit 8 the
/// peripherals, bit 11 the local timer.
const TIMER_CONTROL: *mut u32 = 0x4000_0040 as *mut u32;
const SOURCE: *const u32 = 0x4000_0060 as *const u32;
/// Enabled mailbox interrupts, and the registers that set and clear bits in mailbox 0. The
/// mailboxes of adjacent cores are 16 bytes apart.
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

/// A register of the peripherals' controller. Each exists twice, for 32 interrupts each.
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
    // SAFETY: the register exists on these boards and only sets bits.
    unsafe { MAILBOX_SET.wrapping_add(4 * core as usize).write_volatile(1) };
}

/// Returns whether the interrupt is delivered to `core`, which cannot be changed for a single
/// interrupt.
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

/// Acknowledges the pending interrupt with the lowest number.
pub(crate) fn acknowledge() -> Option<Acknowledged> {
    let core = arch::core() as usize;
    // SAFETY: the register exists on these boards, and reading it changes nothing.
    let source = unsafe { SOURCE.wrapping_add(core).read_volatile() };
    if source & VIRTUAL_TIMER != 0 {
        return Some(Acknowledged(TIMER));
    }
    if source & MAILBOX != 0 {
        // SAFETY: the register exists on these boards, and only this core clears it. A later ring
        // sets it again.
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

/// Does nothing: an interrupt is pending for as long as its line is raised.
pub(crate) fn end(_: Acknowledged) {}

pub(crate) fn enable(number: u32) {
    // SAFETY: the registers exist on these boards. A register in which written ones enable can be
    // written at any time. The timers' register has no other bit in use.
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
            // `acknowledge` has already cleared the doorbell.
            BELL => {}
            LOCAL_TIMER => LOCAL_CONTROL.write_volatile(LOCAL_CONTROL.read_volatile() & !LOCAL_ENABLE),
            _ => at(Register::Disable, number / 32).write_volatile(1 << (number % 32)),
        }
    }
}
