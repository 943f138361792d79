//! Warnings of unlisted resources, of jobs that sleep, and of a `main` in the module. They are uses
//! of deprecated items, so `#[allow(deprecated)]` suppresses them.

#![deny(deprecated)]

#[punctual::app]
mod app {
    use std::thread;
    use std::time::Duration;

    use punctual::prelude::*;

    #[shared]
    struct Shared {
        state: f32,
        listed: u32,
        #[allow(dead_code)]
        allowed: u32,
    }

    #[local]
    struct Local {
        sensor: u32,
        _kept_until_the_end: u32,
        of_another_build: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let shared = Shared { state: 0.0, listed: 0, allowed: 0 };
        (shared, Local { sensor: 0, _kept_until_the_end: 0, of_another_build: 0 })
    }

    #[idle]
    fn idle(_: idle::Context) {
        thread::sleep(Duration::from_millis(1));
    }

    #[task(priority = 2, period = 10.millis(), shared = [listed])]
    fn control(mut cx: control::Context) {
        std::thread::sleep(Duration::from_millis(1));
        cx.shared.listed.lock(|listed| *listed += 1);
    }

    #[task]
    async fn wait(_: wait::Context) {
        thread::sleep(Duration::from_millis(1));
    }

    #[allow(deprecated)]
    #[task]
    fn allowed(_: allowed::Context) {
        thread::sleep(Duration::from_millis(1));
    }

    fn main() {}

    #[cfg(any())]
    #[task(local = [of_another_build])]
    fn absent(_: absent::Context) {}
}
