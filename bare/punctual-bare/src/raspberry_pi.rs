//! Functions that the Raspberry Pis have in common: the pins of the UART, and the clocks and
//! conditions that the firmware controls.
//!
//! At power-on, the firmware runs the ARM cores at 600 MHz, or at full speed for the first 60
//! seconds (<https://github.com/rsta2/circle/issues/648>). So the start-up code requests full speed
//! and reads all clocks back. Drivers compute their dividers from the [`clocks`], because the
//! default of the core clock differs between versions of the firmware
//! (<https://github.com/raspberrypi/linux/issues/2094>).

use core::cell::UnsafeCell;
use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rpi_hal::mailbox::{Clock, Error, Firmware, Mailbox, Message};
use rpi_registers::Block;
use rpi_registers::map::Map;

use crate::arch;
use crate::board::{Board, Hertz, Standalone, This};
use crate::cores::StartCores;

/// A Raspberry Pi.
pub trait RaspberryPi: Board {
    /// The addresses of its chip.
    const MAP: Map;

    /// See [`Standalone::DEVICES`].
    const DEVICES: Range<usize>;

    /// See [`Standalone::LED`].
    const LED: u8;

    /// See [`Standalone::Cores`].
    type Cores: StartCores;
}

impl<B: RaspberryPi> Standalone for B {
    const RAM: Range<usize> = 0..0x2000_0000;
    const DEVICES: Range<usize> = <B as RaspberryPi>::DEVICES;
    const UART: usize = B::MAP.uart0();
    const LED: Option<u8> = Some(<B as RaspberryPi>::LED);
    type Cores = <B as RaspberryPi>::Cores;

    unsafe fn prepare() {
        // SAFETY: by this function's contract.
        unsafe { prepare() };
    }

    fn check() {
        check_memory(Self::RAM.end);
    }

    fn uart_clock() -> Option<u32> {
        clocks().uart
    }

    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f)
    }
}

/// Returns the addresses of the board's chip.
#[must_use]
pub const fn map() -> Map {
    <This as RaspberryPi>::MAP
}

/// The frequencies of the clocks in Hz. `None` is unknown: the firmware does not report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The ARM cores.
    pub arm: Option<u32>,
    /// The VideoCore and the peripherals: SPI, I2C and the mini UART.
    pub core: Option<u32>,
    /// The PL011s.
    pub uart: Option<u32>,
    /// The controller of the SD card.
    pub emmc: Option<u32>,
}

/// The clocks as read at the start, in the order of `Clocks`; 0 is unknown.
static CLOCKS: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];

/// The end of the memory of the ARM cores, as read at the start; 0 is unknown.
static MEMORY_END: AtomicU32 = AtomicU32::new(0);

/// The firmware, and whether a core is using it.
struct Shared {
    is_in_use: AtomicBool,
    firmware: UnsafeCell<Option<Firmware<Mailbox>>>,
}

// SAFETY: only the code that has set `is_in_use` accesses the firmware.
unsafe impl Sync for Shared {}

static FIRMWARE: Shared = Shared { is_in_use: AtomicBool::new(false), firmware: UnsafeCell::new(None) };

/// The memory through which questions and answers pass.
struct Memory(UnsafeCell<Message>);

// SAFETY: only `prepare` accesses it, once, and passes it to the mailbox.
unsafe impl Sync for Memory {}

static MESSAGE: Memory = Memory(UnsafeCell::new(Message::EMPTY));

/// Returns the clocks, as read at the start of the program.
pub fn clocks() -> Clocks {
    let [arm, core, uart, emmc] =
        [0, 1, 2, 3].map(|i| Some(CLOCKS[i].load(Ordering::Relaxed)).filter(|&hertz| hertz != 0));
    Clocks { arm, core, uart, emmc }
}

/// Asks the firmware, if no other code is doing so.
///
/// # Real-time safety
/// The firmware answers within a few milliseconds at most; a call fails after about a second.
pub fn ask<R>(question: impl FnOnce(&mut Firmware<Mailbox>) -> Result<R, Error>) -> Option<R> {
    if FIRMWARE.is_in_use.swap(true, Ordering::Acquire) {
        return None;
    }
    // SAFETY: `is_in_use` was not set, and is now.
    let firmware = unsafe { &mut *FIRMWARE.firmware.get() };
    let answer = firmware.as_mut().and_then(|firmware| question(firmware).ok());
    FIRMWARE.is_in_use.store(false, Ordering::Release);
    answer
}

/// Connects the UART to its pins, requests full speed, and reads the clocks.
///
/// # Safety
/// The MMU is on, this is the only call, and nothing else uses the mailboxes or pins 14 and 15.
pub(crate) unsafe fn prepare() {
    // SAFETY: by this function's contract.
    unsafe { connect_uart() };
    // SAFETY: the mailbox is there and nothing else uses it; this is the only access to the statics
    // before other code runs.
    unsafe {
        let registers = Block::at(map().mailbox());
        let mailbox = Mailbox::new(registers, arch::flush, &mut *MESSAGE.0.get());
        *FIRMWARE.firmware.get() = Some(Firmware::new(mailbox));
    }
    ask(|firmware| {
        match firmware.max_clock_rate(Clock::Arm) {
            Ok(hertz) => drop(firmware.set_clock_rate(Clock::Arm, hertz)),
            // There is no firmware; each further question would wait as long as this one.
            Err(error @ Error::Timeout) => return Err(error),
            Err(_) => {}
        }
        let clocks = [Clock::Arm, Clock::Core, Clock::Uart, Clock::Emmc];
        for (place, clock) in CLOCKS.iter().zip(clocks) {
            place.store(firmware.clock_rate(clock).unwrap_or(0), Ordering::Relaxed);
        }
        let memory_end = firmware.arm_memory().map_or(0, |memory| memory.end);
        MEMORY_END.store(memory_end.try_into().unwrap_or(u32::MAX), Ordering::Relaxed);
        Ok(())
    });
}

/// Requires the memory that the program uses to belong to the ARM cores.
///
/// # Panics
/// If the firmware reports less.
pub(crate) fn check_memory(end: usize) {
    let reported = MEMORY_END.load(Ordering::Relaxed) as usize;
    assert!(
        reported == 0 || reported >= end,
        "the firmware leaves {} MiB to the ARM cores, less than {} MiB: set gpu_mem=64 in config.txt",
        reported >> 20,
        end >> 20
    );
}

/// Writes the clocks, the temperature and the state of throttling.
pub(crate) fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Clocks { arm, core, uart, emmc } = clocks();
    write!(f, "ARM {}, core {}, UART {}, EMMC {}", Hertz(arm), Hertz(core), Hertz(uart), Hertz(emmc))?;
    match ask(Firmware::temperature) {
        Some(millis) => {
            let (sign, tenths) = (if millis < 0 { "-" } else { "" }, millis.unsigned_abs() / 100);
            write!(f, "; {sign}{}.{} °C", tenths / 10, tenths % 10)?;
        }
        None => f.write_str("; temperature unknown")?,
    }
    match ask(Firmware::throttling) {
        Some(throttling) => write!(f, "; throttling: {throttling}"),
        None => f.write_str("; throttling unknown"),
    }
}

/// Connects pins 14 and 15 to the UART. *BCM2835 ARM Peripherals*, 6.1 and 6.2; *BCM2711 ARM
/// Peripherals*, 5.2 and 5.3.
///
/// The firmware may have connected the UART to the Bluetooth chip, by pins 32 and 33, whose input
/// would collide with that of pin 15. So no overlay of the firmware is required.
///
/// # Safety
/// Nothing uses these pins.
unsafe fn connect_uart() {
    /// Three bits for each pin of a register of ten pins: 0b100 is alternate function 0, and 0b000
    /// is an input.
    const PINS: u32 = 0b111_111;
    const ALTERNATE_0: u32 = 0b100_100;
    let function_select = |tens: usize| (map().gpio() + 4 * tens) as *mut u32;
    // SAFETY: the registers exist on a Raspberry Pi. Only these pins change, which nothing uses, by
    // this function's contract.
    unsafe {
        let bluetooth = function_select(3);
        bluetooth.write_volatile(bluetooth.read_volatile() & !(PINS << 6));
        let header = function_select(1);
        header.write_volatile(header.read_volatile() & !(PINS << 12) | ALTERNATE_0 << 12);
    }
}
