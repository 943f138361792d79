//! An app on a CPU that Linux gave up: a task at 1 kHz. When asked to end, the app reports to
//! Linux.
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
        // Answers each ring with a ring.
        amp::ring();
    }

    #[shutdown(shared = [ticks])]
    fn shutdown(cx: shutdown::Context) {
        println!("periodic: safe after {} ticks", cx.shared.ticks);
    }
}
