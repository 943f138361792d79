//! Answers a rising edge at one pin with an impulse at another, in the handler of the interrupt:
//! the baseline for [`latency`](super).
//!
//! needs-in-qemu: virt: QEMU models no events of the pins of a Raspberry Pi
#![no_std]
#![no_main]

use core::cell::RefCell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use programs::pins::{self, Response, Stimulus};
use punctual_bare::interrupt::{self, Handler};

punctual_bare::entry!(main);

#[cfg(not(feature = "raspberry-pi"))]
use interrupt::GPIO as EDGE;
#[cfg(feature = "raspberry-pi")]
use interrupt::GPIO0 as EDGE;

/// Belongs to the handler as soon as the handler may be called.
static PINS: AtomicPtr<RefCell<(Stimulus, Response)>> = AtomicPtr::new(ptr::null_mut());

static HANDLER: Handler = Handler { timer: || (), interrupt: edge, after: || () };

fn edge(_: u32) {
    #[cfg(not(feature = "raspberry-pi"))]
    pins::reached();
    // SAFETY: the pointer is null or derives from a reference to a value that `main` keeps for as
    // long as it runs. Only this handler uses it, and nothing interrupts the handler.
    if let Some(pins) = unsafe { PINS.load(Ordering::Relaxed).as_ref() } {
        let (stimulus, response) = &mut *pins.borrow_mut();
        pins::answer(response);
        stimulus.clear();
    }
}

fn main() -> ! {
    programs::cycles::enable();
    let pins = RefCell::new(pins::stimulus_and_response());
    PINS.store(ptr::from_ref(&pins).cast_mut(), Ordering::Relaxed);
    interrupt::handle(&HANDLER);
    interrupt::enable(EDGE);
    // SAFETY: the handler uses only the pins, which `main` leaves to it, and atomics.
    unsafe { interrupt::unmask() };
    #[cfg(not(feature = "raspberry-pi"))]
    {
        pins::measure_latency();
        punctual_bare::exit(0)
    }
    #[cfg(feature = "raspberry-pi")]
    loop {
        interrupt::wait();
    }
}
