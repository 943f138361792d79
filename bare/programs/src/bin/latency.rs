//! Answers a rising edge at one pin with an impulse at another, in a task of an app.
//!
//! On a board, an oscilloscope measures the latency. In QEMU, the program makes the edges itself
//! and counts the instructions from the edge to the first instruction of the task.
//!
//! unmonitored: as an app is that measures nothing
//! needs-in-qemu: virt: QEMU models no events of the pins of a Raspberry Pi
#![no_std]
#![no_main]

extern crate punctual_bare;

#[punctual::app(report = "never")]
mod app {
    use programs::pins::{self, Response, Stimulus};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        stimulus: Stimulus,
        response: Response,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        programs::cycles::enable();
        let (stimulus, response) = pins::stimulus_and_response();
        (Shared {}, Local { stimulus, response })
    }

    #[cfg(not(feature = "raspberry-pi"))]
    #[idle]
    fn idle(_: idle::Context) {
        pins::measure_latency();
        punctual::shutdown();
    }

    #[cfg(not(feature = "raspberry-pi"))]
    #[task(binds = GPIO, local = [stimulus, response])]
    fn edge(cx: edge::Context) {
        pins::reached();
        pins::answer(cx.local.response);
        cx.local.stimulus.clear();
    }

    /// Pins 0 to 27 share this interrupt.
    #[cfg(feature = "raspberry-pi")]
    #[task(binds = GPIO0, local = [stimulus, response])]
    fn edge(cx: edge::Context) {
        pins::answer(cx.local.response);
        cx.local.stimulus.clear();
    }
}
