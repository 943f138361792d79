//! `shutdown` ends an app in order: no new jobs, the released ones finished, then the `#[shutdown]`
//! hook.
//!
//! `stop` is above `queued`, so that job waits until `stop` has ended. It was released before the
//! shutdown, so it still runs. A job spawned after it is not run, which is not reported to the
//! spawner as an error. The hook runs last, when nothing else runs: it accesses shared resources
//! without a lock, and may take over locals of tasks.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        samples: Vec<u32>,
    }

    #[local]
    struct Local {
        valve: &'static str,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        stop::spawn().unwrap();
        (Shared { samples: Vec::new() }, Local { valve: "closed" })
    }

    #[task(priority = 2, local = [valve])]
    fn stop(cx: stop::Context) {
        *cx.local.valve = "open";
        queued::spawn(1).unwrap();
        punctual::shutdown();
        println!("spawn after the shutdown: {:?}", queued::spawn(2));
    }

    #[task(capacity = 2, shared = [samples])]
    fn queued(mut cx: queued::Context, sample: u32) {
        println!("queued {sample}");
        cx.shared.samples.lock(|samples| samples.push(sample));
    }

    #[shutdown(shared = [samples], local = [valve])]
    fn shutdown(cx: shutdown::Context) {
        println!("shutdown with samples {:?}, valve {}", cx.shared.samples, cx.local.valve);
        *cx.local.valve = "closed";
    }
}
