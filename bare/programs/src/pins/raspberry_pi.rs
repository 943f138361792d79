//! Pins of a Raspberry Pi.

use embedded_hal::digital::{InputPin, OutputPin};
use rpi_hal::gpio::{self, Event, Input, Output, Pin, Pull};
use rpi_registers::Peripherals;

/// The pin of the board's green LED. On the 3B, where the VideoCore drives that LED, pin 17 of the
/// header.
#[cfg(feature = "raspi2b")]
pub type Led = Pin<47, Output>;
/// The pin of the board's green LED. On the 3B, where the VideoCore drives that LED, pin 17 of the
/// header.
#[cfg(feature = "raspi3b")]
pub type Led = Pin<17, Output>;
/// The pin of the board's green LED. On the 3B, where the VideoCore drives that LED, pin 17 of the
/// header.
#[cfg(feature = "raspi4b")]
pub type Led = Pin<42, Output>;

/// Returns the LED.
///
/// # Panics
/// If the peripherals have been taken.
pub fn led() -> Led {
    let (mut bank, pins) = gpio::split(Peripherals::take().expect("nothing else takes them").gpio);
    #[cfg(feature = "raspi2b")]
    let pin = pins.gpio47;
    #[cfg(feature = "raspi3b")]
    let pin = pins.gpio17;
    #[cfg(feature = "raspi4b")]
    let pin = pins.gpio42;
    pin.into_output(&mut bank)
}

/// The input of the latency program, pin 23, which interrupts at rising edges.
#[derive(Debug)]
pub struct Stimulus(Pin<23, Input>);

/// The output of the latency program, pin 24.
pub type Response = Pin<24, Output>;

/// Returns the pins of the latency program.
///
/// # Panics
/// If the peripherals have been taken.
pub fn stimulus_and_response() -> (Stimulus, Response) {
    let (mut bank, pins) = gpio::split(Peripherals::take().expect("nothing else takes them").gpio);
    let mut stimulus = pins.gpio23.into_input(&mut bank, Pull::Down);
    stimulus.listen(&mut bank, Event::RisingEdge);
    (Stimulus(stimulus), pins.gpio24.into_output(&mut bank))
}

impl Stimulus {
    /// Clears the interrupt of an edge.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear_event();
    }

    /// Returns whether the input is high.
    pub fn is_high(&mut self) -> bool {
        let Ok(high) = self.0.is_high();
        high
    }
}

/// Sends an impulse at the response pin.
#[inline]
pub fn answer(response: &mut Response) {
    let Ok(()) = response.set_high();
    let Ok(()) = response.set_low();
}
