//! I2C with the Broadcom Serial Controllers, as the only master.

use core::fmt;

use embedded_hal::i2c::{ErrorKind, ErrorType, I2c, NoAcknowledgeSource, Operation};
use rpi_registers::Block;
use rpi_registers::i2c::{C, I2C, S};
use rpi_registers::interfaces::{Readable, Writeable};

use crate::gpio::{Alternate, Pin};

/// Pins that lead to a controller: data, clock. The implementation for a [`Bus`] names the
/// controller.
pub trait Pins<B: Bus> {}

/// A controller.
pub trait Bus {}

/// Controller 0, which the firmware uses for a camera, a display and the EEPROM of a HAT.
#[derive(Debug)]
pub struct I2c0;
/// Controller 1, on pins 3 and 5 of the header.
#[derive(Debug)]
pub struct I2c1;

impl Bus for I2c0 {}
impl Bus for I2c1 {}
impl Pins<I2c0> for (Pin<0, Alternate<0>>, Pin<1, Alternate<0>>) {}
impl Pins<I2c1> for (Pin<2, Alternate<0>>, Pin<3, Alternate<0>>) {}

/// Capacity of the FIFO in bytes.
const FIFO: usize = 16;

/// Reason for a failed transaction. The bus is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No device answered at the address, or the device did not acknowledge a byte.
    NoAcknowledge,
    /// The device has stretched the clock for too long.
    Timeout,
    /// The controller does not support the transaction: see [`Controller`].
    Unsupported,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAcknowledge => "no acknowledge: check address and wiring",
            Self::Timeout => "the device has stretched the clock for too long",
            Self::Unsupported => {
                "the controller can do a write, a read, or a write of at most 16 bytes and then a read"
            }
        })
    }
}

impl core::error::Error for Error {}

impl embedded_hal::i2c::Error for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoAcknowledge => ErrorKind::NoAcknowledge(NoAcknowledgeSource::Unknown),
            Self::Timeout | Self::Unsupported => ErrorKind::Other,
        }
    }
}

/// A controller. Its functions wait for the transfer of their bytes.
///
/// A transaction is a write, a read, or a write of at most 16 bytes followed by a read without a
/// stop between. Adjacent operations of the same kind are not joined. The controller supports no
/// other transactions.
pub struct Controller<B, P> {
    registers: Block<I2C>,
    pins: P,
    bus: core::marker::PhantomData<fn() -> B>,
}

impl<B, P> fmt::Debug for Controller<B, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.registers.fmt(f)
    }
}

impl<B: Bus, P: Pins<B>> Controller<B, P> {
    /// Initializes the controller. `core_clock`, as the firmware reports it (see
    /// [`crate::mailbox`]), and the maximum `frequency` of the bus are in Hz. The least frequency
    /// is `core_clock` / 65534.
    ///
    /// # Panics
    /// If the frequency is 0.
    pub fn new(registers: Block<I2C>, pins: P, core_clock: u32, frequency: u32) -> Self {
        assert!(frequency > 0, "a bus needs a clock");
        // Even, because the least significant bit is ignored.
        registers.div.set(core_clock.div_ceil(frequency).next_multiple_of(2).clamp(2, 0xFFFE));
        Self { registers, pins, bus: core::marker::PhantomData }
    }

    /// Returns the registers and the pins.
    pub fn free(self) -> (Block<I2C>, P) {
        (self.registers, self.pins)
    }
}

impl<B, P> Controller<B, P> {
    /// Discards the state of the last transaction.
    fn prepare(&mut self, address: u8) {
        self.registers.c.set(C::I2CEN::SET.value | C::CLEAR.val(1).value);
        self.registers.s.write(S::CLKT::SET + S::ERR::SET + S::DONE::SET);
        self.registers.a.set(address.into());
    }

    /// Starts to send and returns the number of bytes in the FIFO.
    fn begin_write(&mut self, bytes: &[u8]) -> usize {
        self.registers.dlen.set(bytes.len() as u32);
        self.registers.c.write(C::I2CEN::SET + C::ST::SET);
        self.feed(bytes)
    }

    /// Puts bytes into the FIFO while it has room.
    fn feed(&mut self, bytes: &[u8]) -> usize {
        let room = |_: &&u8| self.registers.s.is_set(S::TXD) && !self.failed();
        bytes.iter().take_while(room).map(|&byte| self.registers.fifo.set(byte.into())).count()
    }

    fn failed(&self) -> bool {
        self.registers.s.get() & (S::ERR::SET.value | S::CLKT::SET.value) != 0
    }

    fn write_all(&mut self, bytes: &[u8]) {
        let mut sent = self.begin_write(bytes);
        while !self.registers.s.is_set(S::DONE) && !self.failed() {
            sent += self.feed(&bytes[sent..]);
        }
    }

    fn read_all(&mut self, buffer: &mut [u8]) {
        self.registers.dlen.set(buffer.len() as u32);
        self.registers.c.write(C::I2CEN::SET + C::ST::SET + C::READ::SET);
        let mut received = 0;
        loop {
            // Read before the FIFO, so that the FIFO contains all bytes that preceded the end.
            let done = self.registers.s.is_set(S::DONE) || self.failed();
            while received < buffer.len() && self.registers.s.is_set(S::RXD) {
                buffer[received] = self.registers.fifo.get() as u8;
                received += 1;
            }
            if done {
                return;
            }
        }
    }

    /// Ends a transaction.
    fn end(&mut self) -> Result<(), Error> {
        let status = self.registers.s.get();
        self.registers.s.write(S::CLKT::SET + S::ERR::SET + S::DONE::SET);
        if status & S::CLKT::SET.value != 0 {
            Err(Error::Timeout)
        } else if status & S::ERR::SET.value != 0 {
            Err(Error::NoAcknowledge)
        } else {
            Ok(())
        }
    }
}

impl<B, P> ErrorType for Controller<B, P> {
    type Error = Error;
}

impl<B, P> I2c for Controller<B, P> {
    fn transaction(&mut self, address: u8, operations: &mut [Operation<'_>]) -> Result<(), Error> {
        match operations {
            [] => Ok(()),
            [Operation::Write(bytes)] if bytes.len() <= 0xFFFF => {
                self.prepare(address);
                self.write_all(bytes);
                self.end()
            }
            [Operation::Read(buffer)] if (1..=0xFFFF).contains(&buffer.len()) => {
                self.prepare(address);
                self.read_all(buffer);
                self.end()
            }
            [Operation::Write(bytes), Operation::Read(buffer)]
                if bytes.len() <= FIFO && (1..=0xFFFF).contains(&buffer.len()) =>
            {
                self.prepare(address);
                self.begin_write(bytes);
                // A start while the write is active is sent at its end, instead of a stop.
                while self.registers.s.get() & (S::TA::SET.value | S::DONE::SET.value) == 0 && !self.failed()
                {
                }
                if !self.failed() {
                    self.read_all(buffer);
                }
                self.end()
            }
            _ => Err(Error::Unsupported),
        }
    }
}

#[cfg(test)]
mod tests {
    use lm75::{Address, Lm75};
    use rpi_registers::fake::Fake;
    use rpi_registers::gpio::GPIO;

    use super::*;
    use crate::gpio;

    fn controller() -> (Controller<I2c1, impl Pins<I2c1>>, Fake<I2C>) {
        let (mut bank, pins) = gpio::split(Fake::<GPIO>::new().0);
        let pins = (pins.gpio2.into_alternate(&mut bank), pins.gpio3.into_alternate(&mut bank));
        let (block, memory) = Fake::<I2C>::new();
        (Controller::new(block, pins, 250_000_000, 100_000), memory)
    }

    #[test]
    fn divides_the_clock_and_rejects_unreachable_rates() {
        let (mut i2c, memory) = controller();
        assert_eq!(memory.get(0x14), 2500);
        let mut buffer = [0; 2];
        let mut other = [0; 2];
        let two_reads = &mut [Operation::Read(&mut buffer), Operation::Read(&mut other)];
        assert_eq!(i2c.transaction(0x48, two_reads), Err(Error::Unsupported));
        assert_eq!(i2c.write_read(0x48, &[0; 17], &mut buffer), Err(Error::Unsupported));
        assert_eq!(memory.get(0x00), 0, "nothing was begun");
    }

    /// The driver depends only on `embedded-hal`.
    #[test]
    fn runs_thermometer_driver() {
        let (i2c, memory) = controller();
        let mut thermometer = Lm75::new(i2c, Address::default());
        // Memory stores the ones that clear errors in a controller, so the driver reports an error.
        // The program `thermometer` tests in QEMU that clearing works.
        assert!(matches!(thermometer.disable(), Err(lm75::Error::I2C(Error::Timeout))));
        assert_eq!(memory.get(0x0C), 0x48);
        assert_eq!(memory.get(0x08), 2, "the number of the register and its new value");
        assert_eq!(memory.get(0x00), 0x8080, "started, to write");
    }
}
