//! Questions to the firmware, which runs on the VideoCore: clocks, temperature, throttling, board
//! and memory.
//!
//! *Mailbox property interface*,
//! <https://github.com/raspberrypi/firmware/wiki/Mailbox-property-interface>;
//! the tags that it lacks are those of `include/soc/bcm2835/raspberrypi-firmware.h` in Linux.
//! Firmware versions differ in the tags that they know: a question that the firmware does not
//! answer is an [`Unknown`](Error::Unknown) error, never a zero.

use core::fmt;
use core::ops::Range;

use rpi_registers::Block;
use rpi_registers::interfaces::{Readable, Writeable};
use rpi_registers::mailbox::{Mailbox as Registers, STATUS, WORD};

/// Number of words of a message: header, one tag with at most three values, and padding to a
/// multiple of the largest cache line.
const WORDS: usize = 16;

/// Alias of the memory for the VideoCore without its L2 cache. *BCM2835 ARM Peripherals*, 1.2.3.
const UNCACHED: u32 = 0xC000_0000;

/// The end of the memory that the firmware can access.
const REACHABLE: u32 = 1 << 30;

/// Number of reads of a register before a call fails. Each takes about 100 ns, and the firmware
/// answers within a few milliseconds, even if it has to change a voltage.
const MAX_POLLS: u32 = 10_000_000;

/// Number of words of other channels and calls that are dropped while waiting for an answer.
const MAX_FOREIGN: u32 = 16;

/// A bit of the codes: this is an answer.
const ANSWER: u32 = 1 << 31;

/// Reason for an unanswered question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The firmware does not respond within a second, or did not respond to an earlier question.
    Timeout,
    /// The firmware cannot parse the message.
    Rejected,
    /// The firmware does not know the property.
    Unknown,
    /// The firmware cannot access the memory of the message, which lies above 1 GiB.
    Unreachable,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "the firmware does not respond",
            Self::Rejected => "the firmware cannot parse the message",
            Self::Unknown => "this version of the firmware does not know the property",
            Self::Unreachable => "the firmware cannot access memory above 1 GiB",
        })
    }
}

impl core::error::Error for Error {}

/// A message, in cache lines of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Message([u32; WORDS]);

impl Message {
    /// The memory of a message.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// Returns the words.
    pub fn words(&mut self) -> &mut [u32; WORDS] {
        &mut self.0
    }
}

/// Passes messages to the firmware.
pub trait Transport {
    /// Passes a message, and waits until the firmware has replaced it by its answer.
    ///
    /// # Errors
    /// If the firmware does not respond.
    fn exchange(&mut self, message: &mut Message) -> Result<(), Error>;
}

/// The mailboxes of a board.
#[derive(Debug)]
pub struct Mailbox {
    registers: Block<Registers>,
    /// Writes a range of addresses back to memory and removes it from the caches.
    flush: fn(Range<usize>),
    /// The memory that the firmware writes to. It may do so at any time after a timeout, so it is
    /// never used for anything else.
    message: &'static mut Message,
    /// True if a question has not been answered: its answer may still come.
    is_pending: bool,
}

impl Mailbox {
    /// Takes the registers, and the memory through which questions and answers pass. `flush` writes
    /// a range of addresses back to memory and removes it from the data caches of the calling core.
    pub const fn new(
        registers: Block<Registers>,
        flush: fn(Range<usize>),
        message: &'static mut Message,
    ) -> Self {
        Self { registers, flush, message, is_pending: false }
    }

    /// Sends a word, and waits until the firmware returns it. Fails for ever after a word that did
    /// not come back: it would be taken for the answer to the next.
    fn send(&mut self, word: u32) -> Result<(), Error> {
        let registers = &*self.registers;
        if self.is_pending {
            return Err(Error::Timeout);
        }
        poll(|| !registers.write_status.is_set(STATUS::FULL))?;
        registers.write.set(word);
        self.is_pending = true;
        for _ in 0..MAX_FOREIGN {
            poll(|| !registers.read_status.is_set(STATUS::EMPTY))?;
            if registers.read.get() == word {
                self.is_pending = false;
                return Ok(());
            }
        }
        Err(Error::Timeout)
    }
}

impl Transport for Mailbox {
    fn exchange(&mut self, message: &mut Message) -> Result<(), Error> {
        let start = (&raw mut self.message.0).expose_provenance();
        let range = start..start + size_of::<Message>();
        let address = u32::try_from(start).ok().filter(|&address| address < REACHABLE);
        let address = address.ok_or(Error::Unreachable)?;
        self.message.0 = message.0;
        (self.flush)(range.clone());
        self.send(address | UNCACHED | WORD::CHANNEL::Properties.value)?;
        (self.flush)(range);
        // SAFETY: the pointer is from the reference. A volatile read, because the firmware has
        // changed the words.
        message.0 = unsafe { (&raw const self.message.0).read_volatile() };
        Ok(())
    }
}

/// Waits for a condition, for about a second.
fn poll(condition: impl Fn() -> bool) -> Result<(), Error> {
    (0..MAX_POLLS).any(|_| condition()).then_some(()).ok_or(Error::Timeout)
}

/// A clock of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Clock {
    /// The SD card's controller.
    Emmc = 1,
    /// The PL011s.
    Uart = 2,
    /// The ARM cores.
    Arm = 3,
    /// The VideoCore and the peripherals: SPI, I2C and the mini UART.
    Core = 4,
}

/// Flags of the power supply and the temperature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttling(u32);

impl Throttling {
    /// Bits of the present state; those of the time since power-on are 16 above.
    const CONDITIONS: [(u32, &'static str); 4] =
        [(0, "under-voltage"), (1, "ARM frequency capped"), (2, "throttled"), (3, "soft temperature limit")];

    /// Returns the flags: bits 0 to 3 of the present, and bits 16 to 19 since power-on, for
    /// under-voltage, a capped frequency, throttling, and the soft temperature limit.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether the execution times of the program may differ from those at full speed.
    pub fn is_any(self) -> bool {
        self.0 & 0xF_000F != 0
    }
}

impl fmt::Display for Throttling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (shift, prefix) in [(0, ""), (16, "earlier ")] {
            for (bit, condition) in Self::CONDITIONS {
                if self.0 >> shift & 1 << bit != 0 {
                    write!(f, "{separator}{prefix}{condition}")?;
                    separator = ", ";
                }
            }
        }
        if separator.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

/// The firmware of the board.
#[derive(Debug)]
pub struct Firmware<T>(T);

impl<T: Transport> Firmware<T> {
    /// Talks to the firmware through `transport`.
    pub const fn new(transport: T) -> Self {
        Self(transport)
    }

    /// Asks for a property, with `values` as arguments; returns the values of the answer.
    ///
    /// # Errors
    /// See [`Error`]. An answer with less than `needed` values is [`Error::Unknown`].
    fn ask<const N: usize>(&mut self, tag: u32, values: [u32; N], needed: usize) -> Result<[u32; N], Error> {
        const { assert!(6 + N <= WORDS, "the message has room for the values and the end tag") };
        let mut message = Message::EMPTY;
        let size = 4 * N as u32;
        message.0[..5].copy_from_slice(&[4 * (6 + N as u32), 0, tag, size, 0]);
        message.0[5..5 + N].copy_from_slice(&values);
        self.0.exchange(&mut message)?;
        let [_, code, _, _, answer, ..] = message.0;
        if code != ANSWER {
            return Err(Error::Rejected);
        }
        // The length is that of the whole answer, even if the buffer has been too small for it.
        if answer & ANSWER == 0 || ((answer & !ANSWER) as usize) < 4 * needed {
            return Err(Error::Unknown);
        }
        let mut values = values;
        values.copy_from_slice(&message.0[5..5 + N]);
        Ok(values)
    }

    /// Asks for a rate of a clock. 0 stands for a clock that does not exist.
    fn rate(&mut self, tag: u32, clock: Clock) -> Result<u32, Error> {
        let [_, rate] = self.ask(tag, [clock as u32, 0], 2)?;
        if rate == 0 { Err(Error::Unknown) } else { Ok(rate) }
    }

    /// Returns the frequency of a clock in Hz: as measured, or if this firmware does not measure,
    /// as last set.
    ///
    /// The frequency last set may differ from the actual one: the firmware returns what was
    /// requested even if it has limited the clock.
    /// <https://github.com/raspberrypi/firmware/issues/1521>
    ///
    /// # Errors
    /// See [`Error`].
    pub fn clock_rate(&mut self, clock: Clock) -> Result<u32, Error> {
        match self.rate(0x0003_0047, clock) {
            Err(Error::Unknown) => self.rate(0x0003_0002, clock),
            measured => measured,
        }
    }

    /// Returns the maximum frequency of a clock in Hz.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn max_clock_rate(&mut self, clock: Clock) -> Result<u32, Error> {
        self.rate(0x0003_0004, clock)
    }

    /// Requests a frequency of a clock in Hz. For the ARM clock, the firmware also adjusts the
    /// other clocks and the voltage. [`clock_rate`](Self::clock_rate) returns the result.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn set_clock_rate(&mut self, clock: Clock, hertz: u32) -> Result<(), Error> {
        self.ask(0x0003_8002, [clock as u32, hertz, 0], 2).map(|_| ())
    }

    /// Returns the temperature of the chip in thousandths of a degree Celsius.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn temperature(&mut self) -> Result<i32, Error> {
        let [_, temperature] = self.ask(0x0003_0006, [0, 0], 2)?;
        Ok(temperature.cast_signed())
    }

    /// Returns the temperature at which the firmware throttles the chip, in thousandths of a degree
    /// Celsius.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn max_temperature(&mut self) -> Result<i32, Error> {
        let [_, temperature] = self.ask(0x0003_000A, [0, 0], 2)?;
        Ok(temperature.cast_signed())
    }

    /// Returns whether the firmware throttles the chip, or has done so.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn throttling(&mut self) -> Result<Throttling, Error> {
        let [flags] = self.ask(0x0003_0046, [0], 1)?;
        Ok(Throttling(flags))
    }

    /// Returns the code of the board's model and revision.
    /// <https://github.com/raspberrypi/documentation>, *Raspberry Pi revision codes*.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn board_revision(&mut self) -> Result<u32, Error> {
        let [revision] = self.ask(0x0001_0002, [0], 1)?;
        Ok(revision)
    }

    /// Returns the memory that belongs to the ARM cores. It begins at 0, and on a board with more
    /// than 1 GiB, this is only the part below the VideoCore's memory.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn arm_memory(&mut self) -> Result<Range<u64>, Error> {
        let [base, size] = self.ask(0x0001_0005, [0, 0], 2)?;
        Ok(base.into()..u64::from(base) + u64::from(size))
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::string::ToString;
    use std::vec;
    use std::vec::Vec;

    use rpi_registers::fake::Fake;

    use super::*;

    /// Answers with recorded words.
    struct Recorded {
        answers: Vec<Vec<u32>>,
        questions: Vec<[u32; WORDS]>,
    }

    impl Transport for &mut Recorded {
        fn exchange(&mut self, message: &mut Message) -> Result<(), Error> {
            self.questions.push(*message.words());
            let answer = self.answers.remove(0);
            message.words()[..answer.len()].copy_from_slice(&answer);
            Ok(())
        }
    }

    fn recorded(answers: &[&[u32]]) -> Recorded {
        let answers = answers.iter().map(|words| words.to_vec()).collect();
        Recorded { answers, questions: vec![] }
    }

    #[test]
    fn asks_in_the_format_of_the_property_interface() {
        let mut record = recorded(&[&[]]);
        let answer = Firmware::new(&mut record).set_clock_rate(Clock::Arm, 1_200_000_000);
        assert_eq!(answer, Err(Error::Rejected));
        let question = record.questions[0];
        assert_eq!(question[..9], [36, 0, 0x3_8002, 12, 0, 3, 1_200_000_000, 0, 0]);
        assert_eq!(question[9..], [0; 7]);
    }

    /// <https://raspberrypi.stackexchange.com/questions/133040>: a Pi 3 without room for the value
    /// returns the length that it would have had.
    #[test]
    fn accepts_the_length_of_an_answer_that_did_not_fit() {
        let mut record = recorded(&[&[32, 0x8000_0000, 0x1_0001, 0, 0x8000_0004, 0]]);
        assert_eq!(Firmware::new(&mut record).ask(0x1_0001, [], 1), Ok([]));
    }

    /// <https://github.com/raspberrypi/firmware/issues/1969>, firmware of 2025: the answer to "get
    /// clocks" with room for one pair.
    #[test]
    fn reads_values_of_a_recorded_answer() {
        let answer = [0x20, 0x8000_0000, 0x1_0007, 8, 0x8000_0008, 0, 1, 0];
        let mut record = recorded(&[&answer]);
        assert_eq!(Firmware::new(&mut record).ask(0x1_0007, [0, 0], 2), Ok([0, 1]));
    }

    /// QEMU before version 9 marks every tag as answered, with a length of 0 if it does not know
    /// the tag; firmware leaves the code of the request (`vcmailbox(7)`: "the response bit will not
    /// be set").
    #[test]
    fn properties_that_the_firmware_does_not_know_are_unknown_rather_than_zero() {
        for code in [0, 0x8000_0000] {
            let answer = [28, 0x8000_0000, 0x3_0046, 4, code, 0];
            let mut record = recorded(&[&answer]);
            assert_eq!(Firmware::new(&mut record).throttling(), Err(Error::Unknown), "{code:#x}");
        }
    }

    #[test]
    fn falls_back_to_the_rate_last_set_if_the_firmware_does_not_measure() {
        let mut record = recorded(&[
            &[32, 0x8000_0000, 0x3_0047, 8, 0, 4, 0],
            &[32, 0x8000_0000, 0x3_0002, 8, 0x8000_0008, 4, 250_000_000],
        ]);
        assert_eq!(Firmware::new(&mut record).clock_rate(Clock::Core), Ok(250_000_000));
        assert_eq!(record.questions[1][2..7], [0x3_0002, 8, 0, 4, 0]);
    }

    #[test]
    fn a_clock_that_does_not_exist_has_no_rate() {
        let answer = [32, 0x8000_0000, 0x3_0004, 8, 0x8000_0008, 1, 0];
        let mut record = recorded(&[&answer]);
        assert_eq!(Firmware::new(&mut record).max_clock_rate(Clock::Emmc), Err(Error::Unknown));
    }

    #[test]
    fn reports_an_unparsable_message() {
        let mut record = recorded(&[&[32, 0x8000_0001]]);
        assert_eq!(Firmware::new(&mut record).temperature(), Err(Error::Rejected));
    }

    #[test]
    fn names_the_flags_of_the_present_and_of_the_past() {
        assert_eq!(Throttling(0).to_string(), "none");
        assert!(!Throttling(0).is_any());
        // The value that `vcgencmd get_throttled` reports with a weak power supply.
        let weak = Throttling(0x5_0005);
        assert!(weak.is_any());
        assert_eq!(weak.to_string(), "under-voltage, throttled, earlier under-voltage, earlier throttled");
        assert_eq!(Throttling(0x8_0000).to_string(), "earlier soft temperature limit");
    }

    #[test]
    fn a_mailbox_that_stays_full_or_empty_is_a_timeout() {
        let (block, memory) = Fake::<Registers>::new();
        let mut mailbox = Mailbox::new(block, |_| (), Box::leak(Box::new(Message::EMPTY)));
        memory.set(0x38, 1 << 31);
        assert_eq!(mailbox.send(0xC000_1008), Err(Error::Timeout));
        assert_eq!(memory.get(0x20), 0, "nothing is written to a full mailbox");
        memory.set(0x38, 0);
        memory.set(0x18, 1 << 30);
        assert_eq!(mailbox.send(0xC000_1008), Err(Error::Timeout));
        // The late answer is not taken for that to another question at the same address.
        memory.set(0x18, 0);
        memory.set(0x00, 0xC000_1008);
        memory.set(0x20, 0);
        assert_eq!(mailbox.send(0xC000_1008), Err(Error::Timeout));
        assert_eq!(memory.get(0x20), 0);
    }

    #[test]
    fn waits_for_its_own_word() {
        let (block, memory) = Fake::<Registers>::new();
        let mut mailbox = Mailbox::new(block, |_| (), Box::leak(Box::new(Message::EMPTY)));
        memory.set(0x00, 0xC000_1008);
        assert_eq!(mailbox.send(0xC000_1008), Ok(()));
        assert_eq!(memory.get(0x20), 0xC000_1008);
        memory.set(0x00, 0xC000_2008);
        assert_eq!(mailbox.send(0xC000_1008), Err(Error::Timeout));
    }
}
