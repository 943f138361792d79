//! Output of messages on the first UART, a PL011 on every board.
//!
//! The console sends, waits while the UART is busy, and has no state, so it also works when
//! everything else is broken. Output of an interrupt may be interleaved with that of the code that
//! it interrupts, and so may the output of two cores, except for that of the macros.

use core::fmt::{self, Write};

use crate::board::UART;

/// A register of the UART. *PrimeCell UART (PL011) Technical Reference Manual*, 3.2.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Register {
    Data = 0x00,
    Flags = 0x18,
    IntegerBaudRate = 0x24,
    FractionalBaudRate = 0x28,
    LineControl = 0x2C,
    Control = 0x30,
    InterruptMask = 0x38,
}

/// UARTFR: the FIFO for transmission is full.
const FULL: u32 = 1 << 5;
/// UARTFR: the FIFO for reception is empty.
const NOTHING: u32 = 1 << 4;
/// UARTFR: the transmission has not ended.
const BUSY: u32 = 1 << 3;
/// UARTLCR_H: eight bits, with FIFOs.
const EIGHT_BITS: u32 = 0b11 << 5 | 1 << 4;
/// UARTCR: enabled, in both directions.
const ENABLE: u32 = 1 | 1 << 8 | 1 << 9;

/// UARTIMSC: the interrupt for transmission.
const TRANSMITTED: u32 = 1 << 5;

/// Clock of the UART in Hz. The firmware of every Raspberry Pi sets it, unless its `config.txt`
/// overrides it. In QEMU, it has no effect.
const CLOCK: u32 = 48_000_000;
const BAUD_RATE: u32 = 115_200;

fn read(register: Register) -> u32 {
    // SAFETY: the board has a UART at this address, mapped as a device, and no memory depends on
    // it.
    unsafe { ((UART + register as usize) as *const u32).read_volatile() }
}

fn write(register: Register, value: u32) {
    // SAFETY: as above; no memory depends on the state of the UART.
    unsafe { ((UART + register as usize) as *mut u32).write_volatile(value) }
}

/// Initializes the UART.
///
/// # Safety
/// Nothing else uses the UART, or the pins 14 and 15 of a Raspberry Pi.
pub(crate) unsafe fn init() {
    #[cfg(any(feature = "raspi2b", feature = "raspi3b", feature = "raspi4b"))]
    // SAFETY: these boards have the registers, and the pins are unused.
    unsafe {
        connect_pins();
    }
    // Do not cut off data in transmission, for example from the boot loader.
    flush();
    write(Register::Control, 0);
    // In 64ths of the divisor, rounded.
    let divisor = (4 * CLOCK + BAUD_RATE / 2) / BAUD_RATE;
    write(Register::IntegerBaudRate, divisor >> 6);
    write(Register::FractionalBaudRate, divisor & 0x3F);
    write(Register::LineControl, EIGHT_BITS);
    write(Register::Control, ENABLE);
}

/// Connects pins 14 and 15 to the UART. *BCM2835 ARM Peripherals*, 6.1 and 6.2; *BCM2711 ARM
/// Peripherals*, 5.2 and 5.3.
///
/// # Safety
/// The board is a Raspberry Pi, and nothing uses these pins.
#[cfg(any(feature = "raspi2b", feature = "raspi3b", feature = "raspi4b"))]
unsafe fn connect_pins() {
    /// The distance from the UART to the GPIO is the same in all memory maps.
    const GPIO: usize = UART - 0x1000;
    const FUNCTION_SELECT_1: *mut u32 = (GPIO + 0x04) as *mut u32;
    /// Three bits for each pin, counted from pin 10; 0b100 is alternate function 0.
    const MASK: u32 = 0b111_111 << 12;
    const UART_PINS: u32 = 0b100_100 << 12;
    // SAFETY: the register exists on a Raspberry Pi. Only the two pins change, which nothing uses,
    // by this function's contract.
    unsafe {
        let others = FUNCTION_SELECT_1.read_volatile() & !MASK;
        FUNCTION_SELECT_1.write_volatile(others | UART_PINS);
    }
}

/// Enables or disables the interrupt `UART0` for free space in the FIFO after a transmission.
pub fn interrupt_on_transmit(enable: bool) {
    write(Register::InterruptMask, if enable { TRANSMITTED } else { 0 });
}

/// Waits until everything is sent.
pub fn flush() {
    while read(Register::Flags) & BUSY != 0 {}
}

/// The console. Every line ends with a carriage return and a line feed, as terminals expect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Console;

impl Console {
    /// Returns the next received byte, if any.
    pub fn receive(self) -> Option<u8> {
        (read(Register::Flags) & NOTHING == 0).then(|| read(Register::Data) as u8)
    }

    /// Sends one byte unchanged. Waits until the FIFO has room.
    pub fn send(self, byte: u8) {
        while read(Register::Flags) & FULL != 0 {}
        write(Register::Data, byte.into());
    }
}

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                self.send(b'\r');
            }
            self.send(byte);
        }
        Ok(())
    }
}
