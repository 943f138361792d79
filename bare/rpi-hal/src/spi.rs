//! SPI0, as a bus: outputs select the device, as in `embedded-hal-bus`.

use core::convert::Infallible;

use embedded_hal::spi::{ErrorType, MODE_0, Mode, Phase, Polarity, SpiBus};
use rpi_registers::Block;
use rpi_registers::interfaces::{ReadWriteable, Readable, Writeable};
use rpi_registers::spi::{CS, SPI};

use crate::gpio::{Alternate, Pin};

/// Pins that lead to SPI0: from the device, to the device, clock.
pub trait Pins {}

impl Pins for (Pin<9, Alternate<0>>, Pin<10, Alternate<0>>, Pin<11, Alternate<0>>) {}
impl Pins for (Pin<37, Alternate<0>>, Pin<38, Alternate<0>>, Pin<39, Alternate<0>>) {}

/// Capacity of the FIFO in bytes.
const FIFO: usize = 16;

/// Configuration of the bus.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The core clock in Hz, from which the bus clock is derived.
    pub core_clock: u32,
    /// The maximum frequency of the bus clock in Hz. The least is `core_clock` / 65536.
    pub frequency: u32,
    /// Polarity and phase of the clock.
    pub mode: Mode,
}

impl Config {
    /// Returns the configuration for a bus of at most 1 MHz, in mode 0. `core_clock` is the
    /// frequency that the firmware reports, see [`crate::mailbox`].
    pub const fn new(core_clock: u32) -> Self {
        Self { core_clock, frequency: 1_000_000, mode: MODE_0 }
    }
}

/// The bus. Its functions wait for the transfer of their bytes.
#[derive(Debug)]
pub struct Spi<P> {
    registers: Block<SPI>,
    pins: P,
}

impl<P: Pins> Spi<P> {
    /// Initializes the bus.
    ///
    /// # Panics
    /// If the frequency is 0.
    pub fn new(registers: Block<SPI>, pins: P, config: Config) -> Self {
        assert!(config.frequency > 0, "a bus needs a clock");
        // Even: otherwise the controller would round the divisor down, to a higher frequency. 65536
        // is written as 0.
        let divisor = config.core_clock.div_ceil(config.frequency).next_multiple_of(2).clamp(2, 65536);
        registers.clk.set(divisor & 0xFFFF);
        let phase = match config.mode.phase {
            Phase::CaptureOnFirstTransition => CS::CPHA::CLEAR,
            Phase::CaptureOnSecondTransition => CS::CPHA::SET,
        };
        let polarity = match config.mode.polarity {
            Polarity::IdleLow => CS::CPOL::CLEAR,
            Polarity::IdleHigh => CS::CPOL::SET,
        };
        registers.cs.write(CS::CLEAR::Both + phase + polarity);
        Self { registers, pins }
    }

    /// Returns the registers and the pins.
    pub fn free(self) -> (Block<SPI>, P) {
        (self.registers, self.pins)
    }
}

impl<P> Spi<P> {
    /// Sends `count` bytes provided by `sent`, and passes each received byte to `received`.
    fn exchange(
        &mut self,
        count: usize,
        mut sent: impl FnMut(usize) -> u8,
        mut received: impl FnMut(usize, u8),
    ) {
        if count == 0 {
            return;
        }
        let cs = &self.registers.cs;
        cs.modify(CS::CLEAR::Both + CS::TA::SET);
        let (mut begun, mut done) = (0, 0);
        while done < count {
            // At most the capacity of the receive FIFO, because each sent byte returns one.
            while begun < count && begun - done < FIFO && cs.is_set(CS::TXD) {
                self.registers.fifo.set(sent(begun).into());
                begun += 1;
            }
            while done < begun && cs.is_set(CS::RXD) {
                received(done, self.registers.fifo.get() as u8);
                done += 1;
            }
        }
        while !cs.is_set(CS::DONE) {}
        cs.modify(CS::TA::CLEAR);
    }
}

impl<P> ErrorType for Spi<P> {
    type Error = Infallible;
}

impl<P> SpiBus for Spi<P> {
    fn read(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        self.exchange(words.len(), |_| 0, |i, byte| words[i] = byte);
        Ok(())
    }

    fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        self.exchange(words.len(), |i| words[i], |_, _| ());
        Ok(())
    }

    fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        let count = read.len().max(write.len());
        self.exchange(
            count,
            |i| write.get(i).copied().unwrap_or(0),
            |i, byte| {
                if let Some(place) = read.get_mut(i) {
                    *place = byte;
                }
            },
        );
        Ok(())
    }

    fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        // Each byte is sent before the received byte replaces it.
        let words = core::cell::Cell::from_mut(words).as_slice_of_cells();
        self.exchange(words.len(), |i| words[i].get(), |i, byte| words[i].set(byte));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use embedded_hal::spi::MODE_3;
    use rpi_registers::fake::Fake;
    use rpi_registers::gpio::GPIO;

    use super::*;
    use crate::gpio;

    fn spi(config: Config) -> (Spi<impl Pins>, Fake<SPI>) {
        let (mut bank, pins) = gpio::split(Fake::<GPIO>::new().0);
        let pins = (
            pins.gpio9.into_alternate(&mut bank),
            pins.gpio10.into_alternate(&mut bank),
            pins.gpio11.into_alternate(&mut bank),
        );
        let (block, memory) = Fake::<SPI>::new();
        let spi = Spi::new(block, pins, config);
        // Always done, always with received data, always with room.
        memory.set(0x00, memory.get(0x00) | 1 << 16 | 1 << 17 | 1 << 18);
        (spi, memory)
    }

    #[test]
    fn respects_maximum_speed() {
        for (frequency, divisor) in
            [(1_000_000, 250), (83_000_000, 4), (125_000_000, 2), (u32::MAX, 2), (1, 0)]
        {
            let (_spi, memory) = spi(Config { frequency, ..Config::new(250_000_000) });
            assert_eq!(memory.get(0x08), divisor, "{frequency} Hz");
        }
    }

    #[test]
    fn transfers_in_own_mode_and_completes() {
        let (mut spi, memory) = spi(Config { mode: MODE_3, ..Config::new(250_000_000) });
        assert_eq!(memory.get(0x00) & 0xFF, 0x3C);
        spi.write(&[1, 2, 0x5A]).unwrap();
        assert_eq!(memory.get(0x04), 0x5A);
        assert_eq!(memory.get(0x00) & 1 << 7, 0, "the transfer has ended");
        // A register in memory answers with the last byte sent.
        let mut words = [7];
        spi.transfer_in_place(&mut words).unwrap();
        assert_eq!(words, [7]);
        let mut read = [9; 3];
        spi.transfer(&mut read, &[4]).unwrap();
        assert_eq!(read, [0; 3], "the driver sends zeros for bytes that are only read");
        spi.read(&mut read).unwrap();
    }
}
