//! The interrupts of the Raspberry Pi 2 and 3: those of the cores, and behind one of them those of the peripherals, by the
//! controller of the BCM2835.
//!
//! *ARM Quad A7 core*, 4.6 and 4.10; *BCM2835 ARM Peripherals*, 7.5. Everything goes to core 0.

/// The interrupt of the virtual timer of the core, numbered after those of the peripherals.
pub const TIMER: u32 = 64 + 3;

/// Core 0: which of its timers interrupt it, and what is pending. Bit 3 is the virtual timer, bit 8 the peripherals.
const TIMER_CONTROL: *mut u32 = 0x4000_0040 as *mut u32;
const SOURCE: *const u32 = 0x4000_0060 as *const u32;
const VIRTUAL_TIMER: u32 = 1 << 3;
const PERIPHERALS: u32 = 1 << 8;

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
    // SAFETY: as above.
    unsafe { TIMER_CONTROL.write_volatile(0) };
}

/// The lowest number among what is pending.
pub(crate) fn acknowledge() -> Option<u32> {
    // SAFETY: the register exists on these boards, and reading it changes nothing.
    let source = unsafe { SOURCE.read_volatile() };
    if source & VIRTUAL_TIMER != 0 {
        return Some(TIMER);
    }
    if source & PERIPHERALS == 0 {
        return None;
    }
    (0..2).find_map(|half| {
        // SAFETY: as above.
        let pending = unsafe { at(Register::Pending, half).read_volatile() };
        (pending != 0).then(|| 32 * half + pending.trailing_zeros())
    })
}

/// There is nothing to be done: an interrupt is pending as long as its line is raised.
pub(crate) fn end(_: u32) {}

pub(crate) fn enable(number: u32) {
    // SAFETY: the registers exist on these boards; one that enables by bits that are set can be written by anyone. That of the
    // timers has no other bit in use.
    unsafe {
        match number {
            TIMER => TIMER_CONTROL.write_volatile(VIRTUAL_TIMER),
            _ => at(Register::Enable, number / 32).write_volatile(1 << (number % 32)),
        }
    }
}

pub(crate) fn disable(number: u32) {
    // SAFETY: as in `enable`.
    unsafe {
        match number {
            TIMER => TIMER_CONTROL.write_volatile(0),
            _ => at(Register::Disable, number / 32).write_volatile(1 << (number % 32)),
        }
    }
}
