//! A first app: a periodic task measures, a higher one controls, a lower one prints.
//!
//! `control` is above `sample`, so it has run when its `spawn` returns. `log` is below and runs
//! when `sample` has ended.
//!
//! one-cpu: `control` has run before the next sample is taken

// ANCHOR: app
#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        error: f32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { error: 8.0 }, Local {})
    }

    /// Released by the clock every 10 ms, on a grid that does not drift.
    #[task(
        priority = 2, period = 10.millis(), deadline = 5.millis(),
        shared = [error], local = [n: u32 = 0]
    )]
    fn sample(mut cx: sample::Context) {
        *cx.local.n += 1;
        let measured = cx.shared.error.lock(|error| *error);
        // Above `sample`, so it runs right here, as a function call.
        control::spawn(measured).expect("the last job of `control` has ended");
        // Below `sample`, so it waits until `sample` has ended.
        log::spawn(*cx.local.n, measured).expect("there is room for five lines");
        if *cx.local.n == 5 {
            // Jobs that wait, as that of `log`, still run.
            punctual::shutdown();
        }
    }

    #[task(priority = 3, shared = [error])]
    fn control(mut cx: control::Context, measured: f32) {
        cx.shared.error.lock(|error| *error -= 0.5 * measured);
    }

    #[task(priority = 1, capacity = 5)]
    fn log(_: log::Context, n: u32, error: f32) {
        println!("sample {n}: {error:.2} V off");
    }
}
