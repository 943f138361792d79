//! Blinks an LED three times. It blinks faster in QEMU, where each iteration of a busy loop takes
//! time of the host.
// ANCHOR: board
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;
// ANCHOR_END: board

#[punctual::app(report = "never")]
mod app {
    use embedded_hal::digital::StatefulOutputPin;
    use programs::pins::{self, Led};
    use punctual::Duration;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        led: Led,
        times: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { led: pins::led(), times: 0 })
    }

    const PERIOD: Duration =
        Duration::from_ticks(if cfg!(feature = "semihosting") { 1_000_000 } else { 500_000_000 });

    #[task(period = PERIOD, local = [led, times])]
    fn blink(cx: blink::Context) {
        let Ok(()) = cx.local.led.toggle();
        let Ok(on) = cx.local.led.is_set_high();
        println!("{}", if on { "on" } else { "off" });
        *cx.local.times += 1;
        if *cx.local.times == 6 {
            punctual::shutdown();
        }
    }
}
