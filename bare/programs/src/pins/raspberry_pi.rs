//! Pins of a Raspberry Pi.

use embedded_hal::digital::{InputPin, OutputPin};
use punctual_bare::{board, raspberry_pi};
use rpi_hal::gpio::{self, Bank, Event, Input, Output, Pin, Pull, Unused};
use rpi_registers::Peripherals;

/// The LED: the board's green one, or pin 17 of the header where the VideoCore drives that LED.
pub type Led = Pin<{ board::LED.unwrap() }, Output>;

/// Returns the LED.
///
/// # Panics
/// If the peripherals have been taken.
pub fn led() -> Led {
    let (mut bank, pins) = gpio::split(Peripherals::take().expect("nothing else takes them").gpio);
    pins.into_pin().into_output(&mut bank)
}

/// Returns the clock of the UART in Hz.
///
/// # Panics
/// If the firmware does not report it.
pub fn uart_clock() -> u32 {
    raspberry_pi::clocks().uart.expect("the firmware reports the UART's clock")
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
    stimulus_and_response_of(&mut bank, pins.gpio23, pins.gpio24)
}

/// Returns the pins of the latency program, for programs that use further peripherals.
pub fn stimulus_and_response_of(
    bank: &mut Bank,
    stimulus: Pin<23, Unused>,
    response: Pin<24, Unused>,
) -> (Stimulus, Response) {
    let mut stimulus = stimulus.into_input(bank, Pull::Down);
    stimulus.listen(bank, Event::RisingEdge);
    (Stimulus(stimulus), response.into_output(bank))
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

/// The interrupt of the stimulus, which pins 0 to 27 share.
pub const EDGE: u32 = punctual_bare::interrupt::GPIO0;

/// The stimulus and the response, among pins 0 to 31.
const STIMULUS: u32 = 1 << 23;
const RESPONSE: u32 = 1 << 24;

/// Registers of pins 0 to 31 in which ones have an effect and zeros do not: set, clear, and events.
const SET: usize = 0x1C;
const CLEAR: usize = 0x28;
const EVENTS: usize = 0x40;

fn write(offset: usize, ones: u32) {
    // SAFETY: the register exists on this board, and only the pins of this module change.
    unsafe { ((raspberry_pi::map().gpio() + offset) as *mut u32).write_volatile(ones) };
}

/// Returns why no edges can be made at the stimulus: they come from the response, by a wire. Must
/// be called after [`stimulus_and_response`].
///
/// # Errors
/// Returns the reason.
pub fn check_wire(pins: &mut (Stimulus, Response)) -> Result<(), &'static str> {
    if cfg!(feature = "semihosting") {
        return Err("QEMU models no events of the pins of a Raspberry Pi");
    }
    let is_wired = [false, true, false, true].into_iter().all(|high| {
        let Ok(()) = pins.1.set_state(high.into());
        let end = punctual_bare::time::now() + 10_000;
        while punctual_bare::time::now() < end {}
        pins.0.is_high() == high
    });
    if is_wired { Ok(()) } else { Err("no wire connects pin 24 (18 on the header) with pin 23 (16)") }
}

/// Makes a rising edge at the stimulus and returns the cycle counter just before it.
#[inline(never)]
pub fn stimulate() -> u32 {
    write(CLEAR, RESPONSE);
    // The level must last for the two clocks of an edge detector.
    let end = punctual_bare::time::now() + 1_000;
    while punctual_bare::time::now() < end {}
    let before = crate::cycles::count();
    write(SET, RESPONSE);
    before
}

/// Clears the interrupt of an edge at the stimulus.
#[inline]
pub fn clear_stimulus() {
    write(EVENTS, STIMULUS);
}

/// Sends an impulse at the response pin.
#[inline]
pub fn answer(response: &mut Response) {
    let Ok(()) = response.set_high();
    let Ok(()) = response.set_low();
}
