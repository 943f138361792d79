//! The Generic Interrupt Controller, version 2. *ARM Generic Interrupt Controller Architecture
//! Specification*, IHI 0048B, 4.3 and 4.4.
//!
//! The driver in `arm-gic` 0.10 is not used: it sets the priority of four interrupts at once and
//! cannot route an interrupt to a core.

use core::arch::asm;

/// A controller, given two addresses.
macro_rules! controller {
    ($name:ident, $distributor:expr, $interface:expr) => {
        pub(crate) mod $name {
            use super::{Acknowledged, Gic};

            /// The interrupt of the virtual timer of each core.
            pub const TIMER: u32 = 27;

            /// The doorbell interrupt between cores.
            pub const BELL: u32 = super::BELL;

            const GIC: Gic = Gic { distributor: $distributor, interface: $interface };

            /// # Safety
            /// As for [`init`](crate::interrupt::init).
            pub(crate) unsafe fn init() {
                GIC.init();
                GIC.init_core();
            }

            /// # Safety
            /// As for [`init`](crate::interrupt::init), for a core besides the first.
            pub(crate) unsafe fn init_core() {
                GIC.init_core();
            }

            pub(crate) fn acknowledge() -> Option<Acknowledged> {
                let acknowledged = GIC.acknowledge();
                acknowledged.is_one().then_some(acknowledged)
            }

            pub(crate) fn end(acknowledged: Acknowledged) {
                GIC.end(acknowledged);
            }

            pub(crate) fn ring(core: u32) {
                GIC.ring(core);
            }

            pub(crate) fn route(number: u32, core: u32) -> bool {
                GIC.route(number, core);
                true
            }

            pub(crate) fn enable(number: u32) {
                GIC.enable(number);
            }

            pub(crate) fn disable(number: u32) {
                GIC.disable(number);
            }

            #[inline(always)]
            pub(crate) fn pend(number: u32) {
                GIC.pend(number);
            }
        }
    };
}

#[cfg(feature = "raspi4b")]
controller!(bcm2711, 0xFF84_1000, 0xFF84_2000);
#[cfg(any(feature = "virt-a7", feature = "virt-a72"))]
controller!(virt, 0x0800_0000, 0x0801_0000);

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
#[derive(Clone, Copy)]
pub(crate) struct Acknowledged(u32);

impl Acknowledged {
    /// Returns whether there was an interrupt.
    #[inline(always)]
    fn is_one(self) -> bool {
        // Signed, although the number never is negative: otherwise the compiler shifts before it
        // compares.
        self.number().cast_signed() < SPURIOUS
    }

    #[inline(always)]
    pub(crate) fn number(self) -> u32 {
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

#[derive(Clone, Copy)]
struct Gic {
    distributor: usize,
    interface: usize,
}

impl Gic {
    fn init(self) {
        self.write(self.distributor + CONTROL, 0);
        let words = (self.read(self.distributor + TYPE) & 0x1F) as usize + 1;
        for word in 0..words {
            self.write(self.distributor + CLEAR_ENABLE + 4 * word, u32::MAX);
        }
        // The first 32 are private to each core.
        for number in 32..32 * words {
            self.write_byte(self.distributor + PRIORITIES + number, PRIORITY);
            self.write_byte(self.distributor + TARGETS + number, 1);
        }
        self.write(self.distributor + CONTROL, 1);
    }

    fn init_core(self) {
        self.write(self.distributor + CLEAR_ENABLE, u32::MAX);
        for number in 0..32 {
            self.write_byte(self.distributor + PRIORITIES + number, PRIORITY);
        }
        self.enable(BELL);
        self.write(self.interface + PRIORITY_MASK, 0xFF);
        self.write(self.interface + INTERFACE_CONTROL, 1);
    }

    fn acknowledge(self) -> Acknowledged {
        Acknowledged(self.read(self.interface + ACKNOWLEDGE))
    }

    fn end(self, acknowledged: Acknowledged) {
        self.write(self.interface + END, acknowledged.0);
    }

    fn ring(self, core: u32) {
        self.write(self.distributor + SOFTWARE, 1 << (16 + core) | BELL);
    }

    fn route(self, number: u32, core: u32) {
        // The first 32 are private to each core.
        if number >= 32 {
            self.write_byte(self.distributor + TARGETS + number as usize, 1 << core);
        }
    }

    fn enable(self, number: u32) {
        self.write(self.distributor + SET_ENABLE + 4 * (number / 32) as usize, 1 << (number % 32));
    }

    fn disable(self, number: u32) {
        self.write(self.distributor + CLEAR_ENABLE + 4 * (number / 32) as usize, 1 << (number % 32));
    }

    #[inline(always)]
    fn pend(self, number: u32) {
        self.write(self.distributor + SET_PENDING + 4 * (number / 32) as usize, 1 << (number % 32));
    }

    fn read(self, address: usize) -> u32 {
        // SAFETY: the board has a controller at this address, mapped as a device, and no memory
        // depends on it.
        unsafe { (address as *const u32).read_volatile() }
    }

    fn write(self, address: usize, value: u32) {
        // SAFETY: as in `read`. The code that unmasks an interrupt is responsible for its effects
        // on the program.
        unsafe { (address as *mut u32).write_volatile(value) };
    }

    fn write_byte(self, address: usize, value: u8) {
        // SAFETY: as in `write`; these registers support byte accesses.
        unsafe { (address as *mut u8).write_volatile(value) };
    }
}
