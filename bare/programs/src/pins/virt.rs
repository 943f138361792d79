//! Pins of QEMU's `virt`: a PL061 with eight pins; and the number of instructions from an edge at a
//! pin to the code that answers it.
//!
//! *PrimeCell General Purpose Input/Output (PL061) Technical Reference Manual*, ARM DDI 0190,
//! chapter 3.

use core::convert::Infallible;
use core::sync::atomic::{AtomicU32, Ordering};

use embedded_hal::digital::{ErrorType, OutputPin, StatefulOutputPin};
use punctual_bare::println;

const BASE: usize = 0x0903_0000;
const DIRECTION: usize = 0x400;
const BOTH_EDGES: usize = 0x408;
const RISING: usize = 0x40C;
const ENABLE: usize = 0x410;
const CLEAR: usize = 0x41C;

fn read(offset: usize) -> u32 {
    // SAFETY: the board has the device at this address, and reading changes nothing.
    unsafe { ((BASE + offset) as *const u32).read_volatile() }
}

fn write(offset: usize, value: u32) {
    // SAFETY: as above; no memory depends on it.
    unsafe { ((BASE + offset) as *mut u32).write_volatile(value) };
}

/// Returns the offset of the data register with a mask in its address, so that a write changes only
/// these pins.
fn data(mask: u32) -> usize {
    (mask as usize) << 2
}

const LED: u32 = 1 << 2;
const STIMULUS: u32 = 1 << 4;
const RESPONSE: u32 = 1 << 5;

/// An output.
#[derive(Debug)]
pub struct Output {
    pin: u32,
}

impl Output {
    fn new(pin: u32) -> Self {
        write(data(pin), 0);
        write(DIRECTION, read(DIRECTION) | pin);
        Self { pin }
    }
}

impl ErrorType for Output {
    type Error = Infallible;
}

impl OutputPin for Output {
    #[inline]
    fn set_low(&mut self) -> Result<(), Infallible> {
        write(data(self.pin), 0);
        Ok(())
    }

    #[inline]
    fn set_high(&mut self) -> Result<(), Infallible> {
        write(data(self.pin), self.pin);
        Ok(())
    }
}

impl StatefulOutputPin for Output {
    fn is_set_high(&mut self) -> Result<bool, Infallible> {
        Ok(read(data(self.pin)) != 0)
    }

    fn is_set_low(&mut self) -> Result<bool, Infallible> {
        Ok(read(data(self.pin)) == 0)
    }
}

/// The output that an LED would use.
pub type Led = Output;

/// Returns that output.
pub fn led() -> Led {
    Output::new(LED)
}

/// The input of the latency program, which interrupts at rising edges.
#[derive(Debug)]
pub struct Stimulus(());

/// The output of the latency program.
pub type Response = Output;

/// Returns the pins of the latency program.
pub fn stimulus_and_response() -> (Stimulus, Response) {
    write(DIRECTION, read(DIRECTION) & !STIMULUS);
    write(BOTH_EDGES, 0);
    write(RISING, STIMULUS);
    write(CLEAR, STIMULUS);
    write(ENABLE, STIMULUS);
    (Stimulus(()), Output::new(RESPONSE))
}

impl Stimulus {
    /// Clears the interrupt of an edge.
    #[inline]
    pub fn clear(&mut self) {
        clear_stimulus();
    }

    /// Returns whether the input is high.
    pub fn is_high(&mut self) -> bool {
        read(data(STIMULUS)) != 0
    }
}

/// The interrupt of the stimulus.
pub const EDGE: u32 = punctual_bare::interrupt::GPIO;

/// Returns why no edges can be made at the stimulus: never.
///
/// # Errors
/// None.
pub fn check_wire(_: &mut (Stimulus, Response)) -> Result<(), &'static str> {
    Ok(())
}

/// Clears the interrupt of an edge at the input.
#[inline]
pub fn clear_stimulus() {
    write(CLEAR, STIMULUS);
}

/// Makes a rising edge at the input and returns the cycle counter just before it.
///
/// Nothing is connected, but the device detects an edge when the pin becomes an input again: it was
/// low, and has been a high output in between.
#[inline(never)]
pub fn stimulate() -> u32 {
    let direction = read(DIRECTION);
    write(DIRECTION, direction | STIMULUS);
    write(data(STIMULUS), 0);
    write(DIRECTION, direction);
    write(DIRECTION, direction | STIMULUS);
    write(data(STIMULUS), STIMULUS);
    let before = crate::cycles::count();
    write(DIRECTION, direction);
    before
}

/// Sends an impulse at the response pin.
#[inline]
pub fn answer(response: &mut Response) {
    let Ok(()) = response.set_high();
    let Ok(()) = response.set_low();
}

static REACHED: AtomicU32 = AtomicU32::new(0);
static ANSWERS: AtomicU32 = AtomicU32::new(0);

/// Number of measurements.
const EDGES: u32 = 10;

/// Marks the arrival of the edge. The answering code must call this first.
#[inline(always)]
pub fn reached() {
    let now = crate::cycles::count();
    REACHED.store(now, Ordering::Relaxed);
    ANSWERS.store(ANSWERS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Makes edges and prints the maximum number of instructions. The answering code must interrupt
/// this function.
pub fn measure_latency() {
    let mut longest = 0;
    for _ in 0..EDGES {
        let before = stimulate();
        let took = REACHED.load(Ordering::Relaxed).wrapping_sub(before);
        longest = longest.max(took);
    }
    println!("answers: {} of {EDGES}", ANSWERS.load(Ordering::Relaxed));
    println!("instructions: {longest}");
}
