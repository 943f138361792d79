//! Pins, with types that encode their function.
//!
//! Setting, clearing and reading a pin, and clearing its event, take one access and need only the
//! pin. All other registers contain the bits of several pins, so access to them also requires the
//! [`Bank`].

use core::convert::Infallible;
use core::hint;
use core::marker::PhantomData;

use embedded_hal::digital::{ErrorType, InputPin, OutputPin, PinState, StatefulOutputPin};
use rpi_registers::Block;
use rpi_registers::gpio::GPIO;
use rpi_registers::interfaces::{Readable, Writeable};

/// Mode of a pin that has not been configured, as the firmware has left it.
#[derive(Debug)]
pub struct Unused(());
/// Mode of an input.
#[derive(Debug)]
pub struct Input(());
/// Mode of an output.
#[derive(Debug)]
pub struct Output(());
/// Mode of a pin that a peripheral uses, by the alternate function with this number.
#[derive(Debug)]
pub struct Alternate<const FUNCTION: u8>(());

/// The resistor of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// None.
    Off,
    /// To ground.
    Down,
    /// To 3.3 V.
    Up,
}

/// The condition that sets the event of a pin, which interrupts until it is
/// [cleared](Pin::clear_event).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A rising edge sampled by the clock: the level was low, high, high.
    RisingEdge,
    /// A falling edge sampled by the clock: the level was high, low, low.
    FallingEdge,
    /// A rising edge, however short the impulse.
    AsynchronousRisingEdge,
    /// A falling edge, however short the impulse.
    AsynchronousFallingEdge,
    /// A high level, for as long as it lasts.
    High,
    /// A low level, for as long as it lasts.
    Low,
}

/// The registers that contain the bits of several pins.
#[derive(Debug)]
pub struct Bank(PhantomData<*const ()>);

// SAFETY: it is a token. A shared reference to it permits no access.
unsafe impl Send for Bank {}

/// A pin.
pub struct Pin<const N: u8, Mode> {
    registers: &'static GPIO,
    mode: PhantomData<fn() -> Mode>,
}

// SAFETY: of the shared registers, each pin changes only its own bits, either by a single write to
// a register that allows it or with the bank.
unsafe impl<const N: u8, Mode> Send for Pin<N, Mode> {}

impl<const N: u8, Mode> core::fmt::Debug for Pin<N, Mode> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "GPIO {N}")
    }
}

macro_rules! pins {
    ($($name:ident = $n:literal),*) => {
        /// The pins. The header of a board has pins 0 to 27.
        #[derive(Debug)]
        #[expect(missing_docs, reason = "they are numbered")]
        #[non_exhaustive]
        pub struct Pins {
            $(pub $name: Pin<$n, Unused>,)*
        }

        impl Pins {
            /// Returns the pin with this number and drops the others, for programs that are
            /// generic over boards.
            pub fn into_pin<const N: u8>(self) -> Pin<N, Unused> {
                const { assert!($(N == $n)||*, "the pins are 0 to 53") };
                Pin { registers: self.gpio0.registers, mode: PhantomData }
            }
        }

        /// Splits the GPIO into its pins.
        pub fn split(block: Block<GPIO>) -> (Bank, Pins) {
            let registers = block.leak();
            (Bank(PhantomData), Pins { $($name: Pin { registers, mode: PhantomData },)* })
        }
    };
}

pins! {
    gpio0 = 0, gpio1 = 1, gpio2 = 2, gpio3 = 3, gpio4 = 4, gpio5 = 5, gpio6 = 6, gpio7 = 7, gpio8 = 8, gpio9 = 9, gpio10 = 10,
    gpio11 = 11, gpio12 = 12, gpio13 = 13, gpio14 = 14, gpio15 = 15, gpio16 = 16, gpio17 = 17, gpio18 = 18, gpio19 = 19,
    gpio20 = 20, gpio21 = 21, gpio22 = 22, gpio23 = 23, gpio24 = 24, gpio25 = 25, gpio26 = 26, gpio27 = 27, gpio28 = 28,
    gpio29 = 29, gpio30 = 30, gpio31 = 31, gpio32 = 32, gpio33 = 33, gpio34 = 34, gpio35 = 35, gpio36 = 36, gpio37 = 37,
    gpio38 = 38, gpio39 = 39, gpio40 = 40, gpio41 = 41, gpio42 = 42, gpio43 = 43, gpio44 = 44, gpio45 = 45, gpio46 = 46,
    gpio47 = 47, gpio48 = 48, gpio49 = 49, gpio50 = 50, gpio51 = 51, gpio52 = 52, gpio53 = 53
}

/// Values of the function select field: input and output.
const INPUT: u32 = 0b000;
const OUTPUT: u32 = 0b001;
/// Values of the function select field for the alternate functions 0 to 5.
const ALTERNATE: [u32; 6] = [0b100, 0b101, 0b110, 0b111, 0b011, 0b010];

/// Set-up time of a pull resistor: 150 cycles of a clock that is slower than the cores.
const PULL_SPINS: u32 = 150 * 8;

impl<const N: u8, Mode> Pin<N, Mode> {
    const WORD: usize = N as usize / 32;
    const BIT: u32 = 1 << (N % 32);

    /// Makes the pin an input.
    pub fn into_input(self, bank: &mut Bank, pull: Pull) -> Pin<N, Input> {
        let pin = self.select(bank, INPUT);
        pin.pull(bank, pull);
        pin
    }

    /// Makes the pin an output, initially low.
    pub fn into_output(self, bank: &mut Bank) -> Pin<N, Output> {
        self.registers.gpclr[Self::WORD].set(Self::BIT);
        self.select(bank, OUTPUT)
    }

    /// Connects the pin to a peripheral.
    pub fn into_alternate<const FUNCTION: u8>(self, bank: &mut Bank) -> Pin<N, Alternate<FUNCTION>> {
        const { assert!(FUNCTION < 6, "the alternate functions are 0 to 5") };
        self.select(bank, ALTERNATE[FUNCTION as usize])
    }

    fn select<New>(self, _: &mut Bank, function: u32) -> Pin<N, New> {
        let register = &self.registers.gpfsel[N as usize / 10];
        let shift = 3 * (u32::from(N) % 10);
        register.set(register.get() & !(0b111 << shift) | function << shift);
        Pin { registers: self.registers, mode: PhantomData }
    }

    /// Sets the resistor. Waits for a few microseconds, except on a BCM2711.
    fn pull(&self, _: &mut Bank, pull: Pull) {
        if cfg!(feature = "bcm2711") {
            let register = &self.registers.gpio_pup_pdn_cntrl_reg[N as usize / 16];
            let shift = 2 * (u32::from(N) % 16);
            let value = match pull {
                Pull::Off => 0,
                Pull::Up => 1,
                Pull::Down => 2,
            };
            return register.set(register.get() & !(0b11 << shift) | value << shift);
        }
        // The sequence is that of BCM2835 ARM Peripherals, p. 101.
        let wait = || (0..PULL_SPINS).for_each(|_| hint::spin_loop());
        self.registers.gppud.set(match pull {
            Pull::Off => 0,
            Pull::Down => 1,
            Pull::Up => 2,
        });
        wait();
        self.registers.gppudclk[Self::WORD].set(Self::BIT);
        wait();
        self.registers.gppud.set(0);
        self.registers.gppudclk[Self::WORD].set(0);
    }

    fn level(&self) -> bool {
        self.registers.gplev[Self::WORD].get() & Self::BIT != 0
    }
}

impl<const N: u8> Pin<N, Input> {
    /// Adds `event` to the conditions that set the event of the pin.
    pub fn listen(&mut self, _: &mut Bank, event: Event) {
        let register = self.enable(event);
        register.set(register.get() | Self::BIT);
    }

    /// Removes `event` from the conditions that set the event of the pin.
    pub fn unlisten(&mut self, _: &mut Bank, event: Event) {
        let register = self.enable(event);
        register.set(register.get() & !Self::BIT);
    }

    fn enable(
        &self,
        event: Event,
    ) -> &'static (impl Readable<T = u32, R = ()> + Writeable<T = u32, R = ()> + use<N>) {
        let registers = self.registers;
        let words = match event {
            Event::RisingEdge => &registers.gpren,
            Event::FallingEdge => &registers.gpfen,
            Event::AsynchronousRisingEdge => &registers.gparen,
            Event::AsynchronousFallingEdge => &registers.gpafen,
            Event::High => &registers.gphen,
            Event::Low => &registers.gplen,
        };
        &words[Self::WORD]
    }

    /// Returns whether the event is set.
    pub fn has_event(&self) -> bool {
        self.registers.gpeds[Self::WORD].get() & Self::BIT != 0
    }

    /// Clears the event. A level that lasts sets it again at once.
    pub fn clear_event(&mut self) {
        // Writing ones clears, so the write clears no other pin's event.
        self.registers.gpeds[Self::WORD].set(Self::BIT);
    }

    /// Clears the event, and returns the level after that.
    ///
    /// On a BCM283x, an edge that follows another closely may set no event
    /// (<https://github.com/raspberrypi/linux/pull/5457>). A handler that listens to both edges
    /// calls this function and compares the level with that of its previous call: if they are
    /// equal, there was an edge without an event in between. An edge after the call sets the event
    /// again, because the level is read last.
    pub fn clear_event_and_read(&mut self) -> PinState {
        self.clear_event();
        PinState::from(self.level())
    }
}

impl<const N: u8, Mode> ErrorType for Pin<N, Mode> {
    type Error = Infallible;
}

impl<const N: u8> InputPin for Pin<N, Input> {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.level())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(!self.level())
    }
}

impl<const N: u8> OutputPin for Pin<N, Output> {
    #[inline]
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.registers.gpclr[Self::WORD].set(Self::BIT);
        Ok(())
    }

    #[inline]
    fn set_high(&mut self) -> Result<(), Infallible> {
        self.registers.gpset[Self::WORD].set(Self::BIT);
        Ok(())
    }
}

impl<const N: u8> StatefulOutputPin for Pin<N, Output> {
    fn is_set_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.level())
    }

    fn is_set_low(&mut self) -> Result<bool, Infallible> {
        Ok(!self.level())
    }

    fn toggle(&mut self) -> Result<(), Infallible> {
        self.set_state(PinState::from(!self.level()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpi_registers::fake::Fake;

    #[test]
    fn reads_the_level_after_clearing_the_event() {
        let (block, memory) = Fake::<GPIO>::new();
        let (mut bank, pins) = split(block);
        let mut pin = pins.gpio23.into_input(&mut bank, Pull::Off);
        memory.set(0x34, 1 << 23);
        assert_eq!(pin.clear_event_and_read(), PinState::High);
        assert_eq!(memory.get(0x40), 1 << 23, "only the event of this pin is cleared");
        memory.set(0x34, !(1 << 23));
        assert_eq!(pin.clear_event_and_read(), PinState::Low);
    }

    #[test]
    fn selects_function_of_own_pin_only() {
        let (block, memory) = Fake::<GPIO>::new();
        memory.set(0x04, 0o11_1111_1111);
        let (mut bank, pins) = split(block);
        let _output = pins.gpio17.into_output(&mut bank);
        assert_eq!(memory.get(0x04), 0o11_1111_1111, "an output it was");
        assert_eq!(memory.get(0x28), 1 << 17, "and is low first");
        let _uart = pins.gpio14.into_alternate::<0>(&mut bank);
        let _mini_uart = pins.gpio15.into_alternate::<5>(&mut bank);
        assert_eq!(memory.get(0x04), 0o11_1124_1111);
        let _input = pins.gpio53.into_input(&mut bank, Pull::Off);
        memory.set(0x14, 0);
        let _clock = pins.gpio50.into_alternate::<3>(&mut bank);
        assert_eq!(memory.get(0x14), 0o7);
    }

    #[test]
    fn sets_and_clears_output_by_one_write() {
        let (block, memory) = Fake::<GPIO>::new();
        let (mut bank, pins) = split(block);
        let mut pin = pins.gpio47.into_output(&mut bank);
        pin.set_high().unwrap();
        assert_eq!((memory.get(0x1C), memory.get(0x20)), (0, 1 << 15));
        memory.set(0x38, 1 << 15);
        assert!(pin.is_set_high().unwrap());
        memory.set(0x2C, 0);
        pin.toggle().unwrap();
        assert_eq!(memory.get(0x2C), 1 << 15);
    }

    #[test]
    fn enables_requested_events_and_clears_no_other() {
        let (block, memory) = Fake::<GPIO>::new();
        let (mut bank, pins) = split(block);
        let mut pin = pins.gpio4.into_input(&mut bank, Pull::Up);
        let events = [
            (Event::RisingEdge, 0x4C),
            (Event::FallingEdge, 0x58),
            (Event::High, 0x64),
            (Event::Low, 0x70),
            (Event::AsynchronousRisingEdge, 0x7C),
            (Event::AsynchronousFallingEdge, 0x88),
        ];
        for (event, offset) in events {
            memory.set(offset, 1 << 9);
            pin.listen(&mut bank, event);
            assert_eq!(memory.get(offset), 1 << 9 | 1 << 4, "{event:?}");
            pin.unlisten(&mut bank, event);
            assert_eq!(memory.get(offset), 1 << 9, "{event:?}");
        }
        memory.set(0x40, 1 << 4 | 1 << 5);
        assert!(pin.has_event());
        pin.clear_event();
        assert_eq!(memory.get(0x40), 1 << 4);
        memory.set(0x34, 1 << 4);
        assert!(pin.is_high().unwrap() && !pin.is_low().unwrap());
    }

    #[test]
    #[cfg(feature = "bcm2711")]
    fn sets_own_two_pull_bits() {
        let (block, memory) = Fake::<GPIO>::new();
        memory.set(0xE8, u32::MAX);
        let (mut bank, pins) = split(block);
        let _pin = pins.gpio17.into_input(&mut bank, Pull::Down);
        assert_eq!(memory.get(0xE8), !0b0100);
        let _pin = pins.gpio18.into_input(&mut bank, Pull::Up);
        assert_eq!(memory.get(0xE8), !0b10_0100);
    }

    #[test]
    #[cfg(not(feature = "bcm2711"))]
    fn restores_pull_registers() {
        let (block, memory) = Fake::<GPIO>::new();
        let (mut bank, pins) = split(block);
        let _pin = pins.gpio17.into_input(&mut bank, Pull::Down);
        assert_eq!((memory.get(0x94), memory.get(0x98), memory.get(0xE4)), (0, 0, 0));
    }
}
