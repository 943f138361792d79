//! Two partitions, each on its own CPU: they spawn each other's tasks and share a resource.
//!
//! `sample` and `filter` keep their CPU regardless of the load that `log` puts on the other.
//! Resources shared across partitions are locked under MSRP, as the page of `app::run` in the
//! generated documentation shows. The CPUs can be selected when the program is run:
//! `PUNCTUAL_CPU=control=1,io=0`.
//!
//! cpus: 2

// ANCHOR: app
#[punctual::app(partitions = [control, io])]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        /// Used in both partitions.
        total: u32,
        /// Used in `control` only: its ceiling protects it.
        last: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { total: 0, last: 0 }, Local {})
    }

    #[task(core = control, priority = 2, period = 100.millis(), shared = [last], local = [n: u32 = 0])]
    fn sample(mut cx: sample::Context) {
        *cx.local.n += 1;
        cx.shared.last.lock(|last| *last = *cx.local.n);
        filter::spawn().expect("the last sample was filtered");
    }

    #[task(core = control, priority = 1, shared = [last, total])]
    fn filter(mut cx: filter::Context) {
        let last = cx.shared.last.lock(|last| *last);
        let total = cx.shared.total.lock(|total| {
            *total += last;
            *total
        });
        log::spawn(last, total).expect("the last line was written");
    }

    #[task(core = io, shared = [total])]
    fn log(mut cx: log::Context, sample: u32, total: u32) {
        println!("sample {sample}, total {total}");
        let seen = cx.shared.total.lock(|total| *total);
        if seen >= 10 {
            punctual::shutdown();
        }
    }
}
