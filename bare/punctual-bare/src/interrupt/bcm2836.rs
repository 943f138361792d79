//! The interrupt controllers of the Raspberry Pi 2 and 3: one for the interrupts of the cores and,
//! behind one of these, the BCM2835's controller for the peripherals.
//!
//! *ARM Quad A7 core*, 4.6 to 4.8 and 4.10; *BCM2835 ARM Peripherals*, 7.5. Interrupts of
//! peripherals are all delivered to core 0.

use self::devices::LOCAL_TIMER;
use super::Controller;
use crate::arch;

/// The virtual timer of the core, numbered after the peripherals.
const TIMER: u32 = 64 + 3;
/// The doorbell between cores: mailbox 0. The firmware uses mailbox 3 until the core has started.
const BELL: u32 = 64 + 4;

/// The interrupts of devices.
pub mod devices {
    macro_rules! numbers {
        ($($(#[$doc:meta])* $name:ident = $number:expr;)*) => {
            $($(#[$doc])* pub const $name: u32 = $number;)*
        };
    }

    numbers! {
        /// Timer 0, which the firmware uses.
        SYSTEM_TIMER0 = 0;
        /// Timer 1.
        SYSTEM_TIMER1 = 1;
        /// Timer 2, which the firmware uses.
        SYSTEM_TIMER2 = 2;
        /// Timer 3.
        SYSTEM_TIMER3 = 3;
        /// The auxiliary peripherals, among them the mini UART.
        MINI_UART = 29;
        /// Events of pins 0 to 27.
        GPIO0 = 49;
        /// Events of pins 28 to 45.
        GPIO1 = 50;
        /// Events of pins 46 and up.
        GPIO2 = 51;
        /// Events of any pin.
        GPIO3 = 52;
        /// All I2C controllers.
        I2C = 53;
        /// SPI0.
        SPI0 = 54;
        /// The first UART.
        UART0 = 57;
        /// The local timer, which all cores share and which is delivered to core 0.
        LOCAL_TIMER = 64 + 11;
    }
}

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

/// The controllers. An acknowledged interrupt is its number.
#[derive(Clone, Copy, Debug)]
pub struct Bcm2836;

impl Controller for Bcm2836 {
    const TIMER: u32 = TIMER;
    const BELL: u32 = BELL;
    type Acknowledged = u32;

    unsafe fn init() {
        for half in 0..2 {
            // SAFETY: the registers exist on these boards, and nothing waits for an interrupt yet.
            unsafe { at(Register::Disable, half).write_volatile(u32::MAX) };
        }
        // SAFETY: by this function's contract.
        unsafe { Self::init_core() };
    }

    unsafe fn init_core() {
        let core = arch::core() as usize;
        // SAFETY: the registers of this core exist on these boards.
        unsafe {
            TIMER_CONTROL.wrapping_add(core).write_volatile(0);
            MAILBOX_CONTROL.wrapping_add(core).write_volatile(1);
        }
    }

    fn ring(core: u32) {
        // SAFETY: the register exists on these boards and only sets bits.
        unsafe { MAILBOX_SET.wrapping_add(4 * core as usize).write_volatile(1) };
    }

    /// The route of a single interrupt cannot be changed.
    fn route(_: u32, core: u32) -> bool {
        core == 0
    }

    /// Acknowledges the pending interrupt with the lowest number.
    fn acknowledge() -> Option<u32> {
        let core = arch::core() as usize;
        // SAFETY: the register exists on these boards, and reading it changes nothing.
        let source = unsafe { SOURCE.wrapping_add(core).read_volatile() };
        if source & VIRTUAL_TIMER != 0 {
            return Some(TIMER);
        }
        if source & MAILBOX != 0 {
            // SAFETY: the register exists on these boards, and only this core clears it. A later
            // ring sets it again.
            unsafe { MAILBOX_CLEAR.wrapping_add(4 * core).write_volatile(u32::MAX) };
            arch::data_barrier();
            return Some(BELL);
        }
        if source & LOCAL != 0 {
            return Some(LOCAL_TIMER);
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

    fn number(acknowledged: u32) -> u32 {
        acknowledged
    }

    /// Does nothing: an interrupt is pending for as long as its line is raised.
    fn end(_: u32) {}

    fn enable(number: u32) {
        // SAFETY: the registers exist on these boards. A register in which written ones enable can
        // be written at any time. The timers' register has no other bit in use.
        unsafe {
            match number {
                TIMER => TIMER_CONTROL.wrapping_add(arch::core() as usize).write_volatile(VIRTUAL_TIMER),
                BELL => {}
                LOCAL_TIMER => LOCAL_CONTROL.write_volatile(LOCAL_CONTROL.read_volatile() | LOCAL_ENABLE),
                _ => at(Register::Enable, number / 32).write_volatile(1 << (number % 32)),
            }
        }
    }

    fn disable(number: u32) {
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
}
