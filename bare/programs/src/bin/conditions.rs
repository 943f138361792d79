//! An app that prints its report, which ends with the clocks and conditions of the board: the times
//! depend on them.
#![no_std]
#![no_main]

extern crate punctual_bare;

#[punctual::app(report = "always")]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(priority = 1, period = 100.millis(), local = [ticks: u32 = 0])]
    fn tick(cx: tick::Context) {
        *cx.local.ticks += 1;
        if *cx.local.ticks == 3 {
            punctual::shutdown();
        }
    }
}
