//! Tasks leave work to `idle`, which runs when no task does.
//!
//! The resource's ceiling is the level of `sample`. Locking it in `idle` delays `sample` only while
//! the samples are taken; printing them, which may block, is done outside.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        samples: Vec<u32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        sample::spawn(1).unwrap();
        (Shared { samples: Vec::with_capacity(8) }, Local {})
    }

    #[idle(shared = [samples], local = [sum: u32 = 0])]
    fn idle(mut cx: idle::Context) -> ! {
        loop {
            for sample in cx.shared.samples.lock(std::mem::take) {
                *cx.local.sum += sample;
                println!("{sample}, together {}", cx.local.sum);
            }
            if *cx.local.sum == 30 {
                punctual::shutdown();
            }
            punctual::wait_for_event();
        }
    }

    #[task(shared = [samples])]
    fn sample(mut cx: sample::Context, n: u32) {
        cx.shared.samples.lock(|samples| samples.push(n * n));
        if n < 4 {
            sample::spawn_after(5.millis(), n + 1).unwrap();
        }
    }
}
