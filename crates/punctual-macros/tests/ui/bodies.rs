//! Common mistakes in the bodies of handlers. Each is reported where it is, with the remedy.

mod misused_context {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            samples: Vec<f32>,
            gains: [f32; 2],
        }

        #[local]
        struct Local {
            count: u32,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let config = std::fs::read_to_string("gains")?;
            (Shared { samples: Vec::new(), gains: [0.0; 2] }, Local { count: 0 })
        }

        #[idle]
        fn idle(cx: idle::Context) {
            let local = cx.local;
        }

        #[task(priority = 2, period = 10.millis(), shared = [samples, &gains], local = [count])]
        fn control(mut cx: control::Context) {
            cx.sharde.samples.lock(|samples| samples.clear());
            *cx.shared.count += 1;
            cx.local.samples.push(cx.released);
            let late = cx.deadline;
            cx.shared.gains[0] = 1.0;
            log::spawn()?;
            log::spawn_at(10.millis()).ok();
            let control::SharedResources { samples, totals, .. } = cx.shared;
            cx.shared.samples.lock(async |samples| samples.clear());
        }

        #[task(shared = [samples])]
        fn log(cx: log::Context) {
            println!("{} {:?}", cx.released, cx.shared.gains);
        }
    }
}

mod references_that_leave_their_critical_section {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            samples: Vec<f32>,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { samples: Vec::new() }, Local {})
        }

        #[task(shared = [samples])]
        fn control(mut cx: control::Context) {
            let samples = cx.shared.samples.lock(|samples| samples);
            let some = cx.shared.samples.lock(|samples| Some(samples));
            let first = cx.shared.samples.lock(|samples| &samples[0]);
            let iter = cx.shared.samples.lock(|samples| samples.iter());
            let mut last = None;
            cx.shared.samples.lock(|samples| last = samples.last());
        }
    }
}

fn main() {}
