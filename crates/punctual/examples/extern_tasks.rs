//! Handlers may be defined outside the app's module, which then declares them in an `extern "Rust"`
//! block.
//!
//! The order is that of the levels, wherever the functions are defined: `idle` is below `report`,
//! which preempts it at the spawn, and `blink` is above both.

mod handlers {
    use super::app::{Local, Shared, blink, idle, init, report};
    use punctual::prelude::*;

    pub(super) fn init(_: init::Context) -> (Shared, Local) {
        println!("init");
        (Shared { lit: false }, Local {})
    }

    pub(super) fn idle(_: idle::Context) {
        println!("idle");
        report::spawn().unwrap();
    }

    pub(super) fn report(mut cx: report::Context) {
        println!("report");
        cx.shared.lit.lock(|lit| *lit = true);
        for n in 1..=2 {
            blink::spawn(n).unwrap();
        }
    }

    pub(super) fn blink(mut cx: blink::Context, n: u32) {
        cx.shared.lit.lock(|lit| {
            *lit = !*lit;
            println!("blink {n}: lit = {lit}");
        });
        if n == 2 {
            punctual::shutdown();
        }
    }
}

#[punctual::app]
mod app {
    use super::handlers::{blink, idle, init, report};

    #[shared]
    pub(super) struct Shared {
        pub(super) lit: bool,
    }

    #[local]
    pub(super) struct Local {}

    extern "Rust" {
        #[init]
        fn init(_: init::Context) -> (Shared, Local);

        #[idle]
        fn idle(_: idle::Context);

        #[task(priority = 1, shared = [lit])]
        fn report(_: report::Context);

        #[task(priority = 2, capacity = 2, shared = [lit])]
        fn blink(_: blink::Context, n: u32);
    }
}
