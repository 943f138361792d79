//! An app on a CPU beside Linux: a task at 1 kHz, with its report for Linux to show when it is asked to end.
#![no_std]
#![no_main]

#[punctual::app(report = "always")]
mod app {
    use punctual::prelude::*;
    use punctual_bare::{amp, println};

    #[shared]
    struct Shared {
        ticks: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        println!("periodic: on CPU {}", amp::cpu());
        (Shared { ticks: 0 }, Local {})
    }

    #[task(priority = 2, period = 1.millis(), deadline = 1.millis(), shared = [ticks])]
    fn tick(mut cx: tick::Context) {
        cx.shared.ticks.lock(|ticks| *ticks += 1);
    }

    #[task(priority = 3, binds = BELL)]
    fn rung(_: rung::Context) {
        // The answer to one who rings is a ring.
        amp::ring();
    }

    #[shutdown(shared = [ticks])]
    fn shutdown(cx: shutdown::Context) {
        println!("periodic: safe after {} ticks", cx.shared.ticks);
    }
}
