//! The Generic Interrupt Controller, version 2. *ARM Generic Interrupt Controller Architecture
//! Specification*, IHI 0048B, 4.3 and 4.4.
//!
//! The driver in `arm-gic` 0.10 is not used: it sets the priority of four interrupts at once and
//! cannot route an interrupt to a core.

use core::arch::asm;

use super::Controller;

/// An acknowledged number from here on is not an interrupt: 1022 and 1023.
const SPURIOUS: i32 = 1020;

/// The first software-generated interrupt.
const BELL: u32 = 0;

/// The priority of all interrupts, in the middle.
const PRIORITY: u8 = 0x80;

/// Registers of the distributor.
const CONTROL: usize = 0x000;
const TYPE: usize = 0x004;
const SET_ENABLE: usize = 0x100;
const CLEAR_ENABLE: usize = 0x180;
const SET_PENDING: usize = 0x200;
const PRIORITIES: usize = 0x400;
const TARGETS: usize = 0x800;
const SOFTWARE: usize = 0xF00;

/// Registers of the CPU interface.
const INTERFACE_CONTROL: usize = 0x00;
const PRIORITY_MASK: usize = 0x04;
const ACKNOWLEDGE: usize = 0x0C;
const END: usize = 0x10;

/// An acknowledged interrupt: its number and, for a software-generated interrupt, the core that
/// raised it.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged(u32);

impl Acknowledged {
    /// Returns whether there was an interrupt.
    #[inline(always)]
    fn is_one(self) -> bool {
        // Signed, although the number never is negative: otherwise the compiler shifts before it
        // compares.
        self.number().cast_signed() < SPURIOUS
    }

    #[inline(always)]
    fn number(self) -> u32 {
        let number;
        // Not a mask: the compiler needs an additional instruction to compare its result.
        // SAFETY: copies the lowest ten bits.
        unsafe {
            #[cfg(target_arch = "arm")]
            asm!("ubfx {}, {}, #0, #10", out(reg) number, in(reg) self.0, options(pure, nomem, nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            asm!("ubfx {:w}, {:w}, #0, #10", out(reg) number, in(reg) self.0, options(pure, nomem, nostack, preserves_flags));
        }
        number
    }
}

/// A controller with the addresses of its distributor and of the interface of each core.
#[derive(Clone, Copy, Debug)]
pub struct Gic<const DISTRIBUTOR: usize, const INTERFACE: usize>;

impl<const DISTRIBUTOR: usize, const INTERFACE: usize> Controller for Gic<DISTRIBUTOR, INTERFACE> {
    const TIMER: u32 = 27;
    const BELL: u32 = BELL;
    type Acknowledged = Acknowledged;

    unsafe fn init() {
        write(DISTRIBUTOR + CONTROL, 0);
        let words = (read(DISTRIBUTOR + TYPE) & 0x1F) as usize + 1;
        for word in 0..words {
            write(DISTRIBUTOR + CLEAR_ENABLE + 4 * word, u32::MAX);
        }
        // The first 32 are private to each core.
        for number in 32..32 * words {
            write_byte(DISTRIBUTOR + PRIORITIES + number, PRIORITY);
            write_byte(DISTRIBUTOR + TARGETS + number, 1);
        }
        write(DISTRIBUTOR + CONTROL, 1);
        // SAFETY: by this function's contract.
        unsafe { Self::init_core() };
    }

    unsafe fn init_core() {
        write(DISTRIBUTOR + CLEAR_ENABLE, u32::MAX);
        for number in 0..32 {
            write_byte(DISTRIBUTOR + PRIORITIES + number, PRIORITY);
        }
        Self::enable(BELL);
        write(INTERFACE + PRIORITY_MASK, 0xFF);
        write(INTERFACE + INTERFACE_CONTROL, 1);
    }

    fn acknowledge() -> Option<Acknowledged> {
        let acknowledged = Acknowledged(read(INTERFACE + ACKNOWLEDGE));
        acknowledged.is_one().then_some(acknowledged)
    }

    #[inline(always)]
    fn number(acknowledged: Acknowledged) -> u32 {
        acknowledged.number()
    }

    fn end(acknowledged: Acknowledged) {
        write(INTERFACE + END, acknowledged.0);
    }

    fn ring(core: u32) {
        write(DISTRIBUTOR + SOFTWARE, 1 << (16 + core) | BELL);
    }

    fn route(number: u32, core: u32) -> bool {
        // The first 32 are private to each core.
        if number >= 32 {
            write_byte(DISTRIBUTOR + TARGETS + number as usize, 1 << core);
        }
        true
    }

    fn enable(number: u32) {
        write(DISTRIBUTOR + SET_ENABLE + 4 * (number / 32) as usize, 1 << (number % 32));
    }

    fn disable(number: u32) {
        write(DISTRIBUTOR + CLEAR_ENABLE + 4 * (number / 32) as usize, 1 << (number % 32));
    }

    #[inline(always)]
    fn pend(number: u32) {
        write(DISTRIBUTOR + SET_PENDING + 4 * (number / 32) as usize, 1 << (number % 32));
    }
}

fn read(address: usize) -> u32 {
    // SAFETY: the board has a controller at this address, mapped as a device, and no memory depends
    // on it.
    unsafe { (address as *const u32).read_volatile() }
}

fn write(address: usize, value: u32) {
    // SAFETY: as in `read`. The code that unmasks an interrupt is responsible for its effects on
    // the program.
    unsafe { (address as *mut u32).write_volatile(value) };
}

fn write_byte(address: usize, value: u8) {
    // SAFETY: as in `write`; these registers support byte accesses.
    unsafe { (address as *mut u8).write_volatile(value) };
}
