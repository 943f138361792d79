//! UART0: blocking, or by interrupts with a ring buffer for each direction.

use core::convert::Infallible;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use embedded_io::{ErrorKind, ErrorType, Read, ReadReady, Write, WriteReady};
use heapless::spsc::{Consumer, Producer, Queue};
use rpi_registers::Block;
use rpi_registers::fields::FieldValue;
use rpi_registers::interfaces::{Readable, Writeable};
use rpi_registers::uart::{CR, DR, FR, IFLS, INTERRUPTS, LCRH, UART};

use crate::gpio::{Alternate, Pin};

/// Pins that lead to the UART: transmission and reception.
pub trait Pins {}

impl Pins for (Pin<14, Alternate<0>>, Pin<15, Alternate<0>>) {}
impl Pins for (Pin<32, Alternate<3>>, Pin<33, Alternate<3>>) {}
impl Pins for (Pin<36, Alternate<2>>, Pin<37, Alternate<2>>) {}

/// All bits of the register that clears interrupts.
const ALL_INTERRUPTS: u32 = 0x7FF;

/// Error of reception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Bytes were lost because the FIFO was full.
    Overrun,
    /// A break: the line was low for longer than a byte.
    Break,
    /// A wrong parity bit.
    Parity,
    /// No stop bit: noise, or another baud rate.
    Framing,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overrun => "received more than there was room for",
            Self::Break => "received a break",
            Self::Parity => "received a wrong parity bit",
            Self::Framing => "received a byte without a stop bit: check the baud rate",
        })
    }
}

impl core::error::Error for Error {}

impl embedded_io::Error for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Overrun => ErrorKind::Other,
            Self::Break => ErrorKind::Interrupted,
            Self::Parity | Self::Framing => ErrorKind::InvalidData,
        }
    }
}

/// The UART, blocking: 8 bits, no parity, one stop bit, with FIFOs.
#[derive(Debug)]
pub struct Uart<P> {
    registers: Block<UART>,
    pins: P,
    /// The error that the next read returns.
    error: Option<Error>,
}

impl<P: Pins> Uart<P> {
    /// Initializes the UART. Waits until all earlier transmissions have ended. `clock` is the
    /// frequency of the UART's clock in Hz, as the firmware reports it (see [`crate::mailbox`]).
    ///
    /// # Panics
    /// If the baud rate is not between `clock` / 2²⁰ and `clock` / 16, in Hz.
    pub fn new(registers: Block<UART>, pins: P, clock: u32, baud_rate: u32) -> Self {
        let divisor = divisor(clock, baud_rate);
        while registers.fr.is_set(FR::BUSY) {}
        registers.cr.set(0);
        registers.imsc.set(0);
        registers.ibrd.set(divisor >> 6);
        registers.fbrd.set(divisor & 0x3F);
        registers.lcrh.write(LCRH::WLEN::Eight + LCRH::FEN::SET);
        // Last, because enabling the FIFOs empties them: an interrupt for their previous content
        // would stay pending with nothing to read.
        registers.icr.set(ALL_INTERRUPTS);
        registers.cr.write(CR::UARTEN::SET + CR::TXE::SET + CR::RXE::SET);
        Self { registers, pins, error: None }
    }

    /// Returns the registers and the pins.
    pub fn free(self) -> (Block<UART>, P) {
        (self.registers, self.pins)
    }

    /// Continues with interrupts. [`Handler::handle`] must be called for each interrupt of the
    /// UART. The capacity of each ring is one byte less than its size.
    ///
    /// Bytes received before this call are in the ring on return, but no interrupt announces them:
    /// poll the [`Reader`] once at the start.
    pub fn with_rings<const R: usize, const T: usize>(
        self,
        rings: &'static mut Rings<R, T>,
    ) -> (Handler, Reader, Writer) {
        let (received, reader) = rings.received.split();
        let (writer, to_send) = rings.to_send.split();
        let registers = self.registers.leak();
        registers.ifls.write(IFLS::TXIFLSEL::Eighth + IFLS::RXIFLSEL::Half);
        registers.imsc.write(receiving());
        let sending = &rings.sending;
        let mut handler = Handler { registers, received, to_send, sending, lost: 0 };
        // The receive interrupts become pending when the FIFO *reaches* a fill level or a timeout,
        // and may have been cleared since then, PL011 TRM 3.4. If bytes remained in the FIFO, the
        // following ones might never interrupt.
        handler.empty_fifo();
        (handler, Reader(reader), Writer { registers, to_send: writer, sending })
    }
}

/// Computes the divisor of the clock in 64ths, rounded.
fn divisor(clock: u32, baud_rate: u32) -> u32 {
    let divisor =
        (4 * u64::from(clock) + u64::from(baud_rate) / 2).checked_div(baud_rate.into()).unwrap_or(0);
    assert!((1 << 6..1 << 22).contains(&divisor), "{baud_rate} baud cannot be made of {clock} Hz");
    divisor as u32
}

/// Decodes the data register.
fn received(data: u32) -> Result<u8, Error> {
    let is = |bit: u32| data & bit != 0;
    // A break is also a framing error. An overrun is reported with the next received byte.
    match () {
        () if is(DR::BE::SET.mask()) => Err(Error::Break),
        () if is(DR::OE::SET.mask()) => Err(Error::Overrun),
        () if is(DR::FE::SET.mask()) => Err(Error::Framing),
        () if is(DR::PE::SET.mask()) => Err(Error::Parity),
        () => Ok(data as u8),
    }
}

impl<P> ErrorType for Uart<P> {
    type Error = Error;
}

impl<P> Read for Uart<P> {
    /// Waits for the first byte and returns the received bytes up to the first error, which the
    /// next call returns.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let Some((first, rest)) = buffer.split_first_mut() else { return Ok(0) };
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        while self.registers.fr.is_set(FR::RXFE) {}
        *first = received(self.registers.dr.get())?;
        let mut count = 1;
        for byte in rest {
            if self.registers.fr.is_set(FR::RXFE) {
                break;
            }
            match received(self.registers.dr.get()) {
                Ok(good) => *byte = good,
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
            count += 1;
        }
        Ok(count)
    }
}

impl<P> ReadReady for Uart<P> {
    fn read_ready(&mut self) -> Result<bool, Error> {
        Ok(!self.registers.fr.is_set(FR::RXFE))
    }
}

impl<P> Write for Uart<P> {
    /// Waits for room for the first byte.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let Some((&first, rest)) = bytes.split_first() else { return Ok(0) };
        while self.registers.fr.is_set(FR::TXFF) {}
        self.registers.dr.set(first.into());
        let mut count = 1;
        for &byte in rest {
            if self.registers.fr.is_set(FR::TXFF) {
                break;
            }
            self.registers.dr.set(byte.into());
            count += 1;
        }
        Ok(count)
    }

    /// Waits until all bytes have been sent.
    fn flush(&mut self) -> Result<(), Error> {
        while self.registers.fr.is_set(FR::BUSY) {}
        Ok(())
    }
}

impl<P> WriteReady for Uart<P> {
    fn write_ready(&mut self) -> Result<bool, Error> {
        Ok(!self.registers.fr.is_set(FR::TXFF))
    }
}

/// Ring buffers for received bytes and for bytes to send. Intended for a static.
#[derive(Debug)]
pub struct Rings<const R: usize, const T: usize> {
    received: Queue<u8, R>,
    to_send: Queue<u8, T>,
    /// The handler takes from the transmit ring. Otherwise the ring is empty, and the writer sends
    /// directly.
    sending: AtomicBool,
}

impl<const R: usize, const T: usize> Rings<R, T> {
    /// Creates empty rings.
    pub const fn new() -> Self {
        Self { received: Queue::new(), to_send: Queue::new(), sending: AtomicBool::new(false) }
    }
}

impl<const R: usize, const T: usize> Default for Rings<R, T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the receive interrupts: the FIFO is half full, or contains bytes and has received
/// nothing for a while.
fn receiving() -> FieldValue<u32, INTERRUPTS::Register> {
    INTERRUPTS::RX::SET + INTERRUPTS::RT::SET
}

/// Handles interrupts of the UART.
pub struct Handler {
    registers: &'static UART,
    received: Producer<'static, u8>,
    to_send: Consumer<'static, u8>,
    sending: &'static AtomicBool,
    lost: u32,
}

// SAFETY: the writer has the registers as well, but both write only to those for interrupts, whole
// words; see `handle`.
unsafe impl Send for Handler {}

impl Handler {
    /// Moves bytes between the UART and the rings. Bounded by the UART's FIFO, of 16 or 32 bytes,
    /// in each direction.
    pub fn handle(&mut self) {
        self.empty_fifo();
        while self.sending.load(Ordering::Acquire) {
            while self.to_send.ready() {
                if self.registers.fr.is_set(FR::TXFF) {
                    return;
                }
                if let Some(byte) = self.to_send.dequeue() {
                    self.registers.dr.set(byte.into());
                }
            }
            // Disabled first, and enabled again if there are bytes by then, so that a writer that
            // interrupts this code takes precedence.
            self.registers.imsc.write(receiving());
            self.sending.store(false, Ordering::Release);
            if self.to_send.ready() {
                self.sending.store(true, Ordering::Release);
                self.registers.imsc.write(receiving() + INTERRUPTS::TX::SET);
            }
        }
    }

    fn empty_fifo(&mut self) {
        while !self.registers.fr.is_set(FR::RXFE) {
            let data = self.registers.dr.get();
            self.receive(data);
        }
    }

    fn receive(&mut self, data: u32) {
        let stored = received(data).is_ok_and(|byte| self.received.enqueue(byte).is_ok());
        self.lost = self.lost.wrapping_add(u32::from(!stored));
    }

    /// Returns the number of bytes that were received with an error or without room for them.
    pub fn lost(&self) -> u32 {
        self.lost
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// Reads received bytes.
pub struct Reader(Consumer<'static, u8>);

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("received", &self.0.len()).finish_non_exhaustive()
    }
}

impl ErrorType for Reader {
    type Error = Infallible;
}

impl Read for Reader {
    /// Waits for the first byte by polling: check [`read_ready`](ReadReady::read_ready) first.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while !self.0.ready() {
            core::hint::spin_loop();
        }
        let mut count = 0;
        for byte in buffer {
            let Some(received) = self.0.dequeue() else { break };
            *byte = received;
            count += 1;
        }
        Ok(count)
    }
}

impl ReadReady for Reader {
    fn read_ready(&mut self) -> Result<bool, Infallible> {
        Ok(self.0.ready())
    }
}

/// Queues bytes to send.
pub struct Writer {
    registers: &'static UART,
    to_send: Producer<'static, u8>,
    sending: &'static AtomicBool,
}

// SAFETY: see `Handler`.
unsafe impl Send for Writer {}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("room", &(self.to_send.capacity() - self.to_send.len()))
            .finish_non_exhaustive()
    }
}

impl ErrorType for Writer {
    type Error = Infallible;
}

impl Write for Writer {
    /// Waits for room for the first byte, which requires the interrupt: check
    /// [`write_ready`](WriteReady::write_ready) first.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        if bytes.is_empty() {
            return Ok(0);
        }
        while !self.to_send.ready() {
            core::hint::spin_loop();
        }
        let mut count = 0;
        // The transmit interrupt becomes pending when the FIFO *reaches* a low enough fill level,
        // PL011 TRM 3.4.2, so the FIFO is filled here before the handler has work. Bytes in the
        // ring are sent first.
        if !self.sending.load(Ordering::Acquire) && self.to_send.is_empty() {
            for &byte in bytes.iter().take_while(|_| !self.registers.fr.is_set(FR::TXFF)) {
                self.registers.dr.set(byte.into());
                count += 1;
            }
        }
        for &byte in &bytes[count..] {
            if self.to_send.enqueue(byte).is_err() {
                break;
            }
            count += 1;
        }
        if !self.to_send.is_empty() {
            self.sending.store(true, Ordering::Release);
            self.registers.imsc.write(receiving() + INTERRUPTS::TX::SET);
        }
        Ok(count)
    }

    /// Waits until all bytes have left the ring and the UART.
    fn flush(&mut self) -> Result<(), Infallible> {
        while !self.to_send.is_empty() || self.registers.fr.is_set(FR::BUSY) {
            core::hint::spin_loop();
        }
        Ok(())
    }
}

impl WriteReady for Writer {
    fn write_ready(&mut self) -> Result<bool, Infallible> {
        Ok(self.to_send.ready())
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use rpi_registers::fake::Fake;
    use rpi_registers::gpio::GPIO;

    use super::*;
    use crate::gpio;

    const RXFE: u32 = 1 << 4;
    const TXFF: u32 = 1 << 5;

    fn uart() -> (Uart<impl Pins>, Fake<UART>) {
        let (mut bank, pins) = gpio::split(Fake::<GPIO>::new().0);
        let pins = (pins.gpio14.into_alternate(&mut bank), pins.gpio15.into_alternate(&mut bank));
        let (block, memory) = Fake::<UART>::new();
        (Uart::new(block, pins, 48_000_000, 115_200), memory)
    }

    #[test]
    fn sets_rate_and_frame() {
        let (_uart, memory) = uart();
        // 48 MHz / (16 × 115200) = 26.0417, and 0.0417 × 64 = 2.67.
        assert_eq!((memory.get(0x24), memory.get(0x28)), (26, 3));
        assert_eq!((memory.get(0x2C), memory.get(0x30)), (0x70, 0x301));
        assert_eq!(divisor(3_000_000, 115_200), 104);
    }

    #[test]
    #[should_panic(expected = "4000000 baud cannot be made of 48000000 Hz")]
    fn rejects_impossible_baud_rate() {
        divisor(48_000_000, 4_000_000);
    }

    #[test]
    fn sends_and_receives_bytes() {
        let (mut uart, memory) = uart();
        assert_eq!(uart.write(b"ab").unwrap(), 2);
        assert_eq!(memory.get(0x00), u32::from(b'b'));
        let mut byte = [0];
        assert_eq!((uart.read(&mut byte).unwrap(), byte), (1, *b"b"));
        memory.set(0x18, RXFE | TXFF);
        assert!(!uart.read_ready().unwrap() && !uart.write_ready().unwrap());
    }

    #[test]
    fn distinguishes_receive_errors() {
        let (mut uart, memory) = uart();
        let wrong = [(8, Error::Framing), (9, Error::Parity), (10, Error::Break), (11, Error::Overrun)];
        for (bit, error) in wrong {
            memory.set(0x00, 1 << bit | 0x55);
            assert_eq!(uart.read(&mut [0]), Err(error));
        }
    }

    #[test]
    fn rings_carry_bytes_of_the_handler() {
        let (uart, memory) = uart();
        memory.set(0x18, RXFE);
        let (mut handler, mut reader, mut writer) =
            uart.with_rings(Box::leak(Box::new(Rings::<4, 4>::new())));
        const RECEIVING: u32 = 1 << 4 | 1 << 6;
        const SENDING: u32 = RECEIVING | 1 << 5;
        assert_eq!(memory.get(0x38), RECEIVING);
        memory.set(0x18, RXFE | TXFF);
        assert_eq!(writer.write(b"abcd").unwrap(), 3, "a ring of four has room for three");
        assert!(!writer.write_ready().unwrap());
        assert_eq!(memory.get(0x38), SENDING);
        handler.handle();
        assert_eq!(memory.get(0x38), SENDING, "nothing could be sent, so it waits on");
        memory.set(0x18, RXFE);
        handler.handle();
        assert_eq!((memory.get(0x00), memory.get(0x38)), (u32::from(b'c'), RECEIVING));
        assert!(writer.write_ready().unwrap() && !reader.read_ready().unwrap());
        let Ok(()) = writer.flush();
        assert_eq!(writer.write(b"xyz"), Ok(3));
        assert_eq!(
            (memory.get(0x00), memory.get(0x38)),
            (u32::from(b'z'), RECEIVING),
            "there is room in the FIFO"
        );
    }

    #[test]
    fn counts_receive_errors_and_overruns() {
        let (uart, memory) = uart();
        memory.set(0x18, RXFE);
        let (mut handler, mut reader, _writer) = uart.with_rings(Box::leak(Box::new(Rings::<4, 4>::new())));
        handler.receive(1 << 8 | u32::from(b'!'));
        assert_eq!(handler.lost(), 1);
        b"abcde".iter().for_each(|&byte| handler.receive(byte.into()));
        assert_eq!(handler.lost(), 3, "a ring of four has room for three");
        let mut bytes = [0; 8];
        let Ok(count) = reader.read(&mut bytes);
        assert_eq!(bytes[..count], *b"abc");
    }

    #[test]
    fn drains_fifo_when_enabling_interrupts() {
        let (uart, memory) = uart();
        let is_empty = std::sync::Arc::new(AtomicBool::new(false));
        let fifo = std::sync::Arc::clone(&is_empty);
        // The FIFO still receives bytes for a while after the interrupts are enabled.
        let line = std::thread::spawn(move || {
            while memory.get(0x38) == 0 {
                std::thread::yield_now();
            }
            (0..1000).for_each(|_| std::thread::yield_now());
            fifo.store(true, Ordering::SeqCst);
            memory.set(0x18, RXFE);
        });
        let _ends = uart.with_rings(Box::leak(Box::new(Rings::<4, 4>::new())));
        assert!(is_empty.load(Ordering::SeqCst), "bytes were left in the FIFO");
        line.join().unwrap();
    }

    #[test]
    fn reports_error_after_valid_bytes_at_next_read() {
        let (mut uart, memory) = uart();
        uart.error = Some(Error::Parity);
        assert_eq!(uart.read(&mut [0]), Err(Error::Parity));
        memory.set(0x00, u32::from(b'k'));
        assert_eq!(uart.read(&mut [0]), Ok(1));
    }
}
