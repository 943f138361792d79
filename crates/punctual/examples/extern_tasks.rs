//! Handlers may live outside the app's module, which then declares them in an `extern "Rust"` block.
//!
//! The order is that of the levels, wherever the functions are: `blink` is above `report`, so it preempts it
//! at the spawn.

mod handlers {
    use super::app::{Local, Shared, blink, idle, init, report};
    use punctual::prelude::*;

    pub(super) fn init(_: init::Context) -> (Shared, Local) {
        println!("init");
        report::spawn().unwrap();
        (Shared { lit: false }, Local {})
    }

    pub(super) fn idle(_: idle::Context) {
        println!("idle");
        punctual::shutdown();
    }

    pub(super) fn report(mut cx: report::Context) {
        for n in 1..=2 {
            blink::spawn(n).unwrap();
            cx.shared.lit.lock(|lit| println!("lit: {lit}"));
        }
    }

    pub(super) fn blink(mut cx: blink::Context, n: u32) {
        println!("blink {n}");
        cx.shared.lit.lock(|lit| *lit = !*lit);
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

        #[task(priority = 2, shared = [lit])]
        fn blink(_: blink::Context, n: u32);
    }
}
