//! Output of messages on the first UART, a PL011 on every board.
//!
//! The console sends, waits while the UART is busy, and has no state, so it also works when
//! everything else is broken. Output of an interrupt may be interleaved with that of the code that
//! it interrupts, and so may the output of two cores, except for that of the macros.

use core::fmt::{self, Write};

use crate::board::{Standalone, This};

const UART: usize = This::UART;

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

/// Clock of the UART in Hz if the firmware does not report it: that of `init_uart_clock` in
/// `config.txt`. In QEMU, it has no effect.
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
/// Nothing else uses the UART.
pub(crate) unsafe fn init() {
    // Do not cut off data in transmission, for example from the boot loader.
    flush();
    write(Register::Control, 0);
    // In 64ths of the divisor, rounded.
    let clock = u64::from(This::uart_clock().unwrap_or(CLOCK));
    let divisor = ((4 * clock + u64::from(BAUD_RATE) / 2) / u64::from(BAUD_RATE)) as u32;
    write(Register::IntegerBaudRate, divisor >> 6);
    write(Register::FractionalBaudRate, divisor & 0x3F);
    write(Register::LineControl, EIGHT_BITS);
    write(Register::Control, ENABLE);
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
