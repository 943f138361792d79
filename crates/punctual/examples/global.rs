//! The global executor: each level has a thread, which runs on any free CPU.
//!
//! `low` holds `total` for 5 ms. `high` uses it too and waits for it, under the Priority Ceiling
//! Protocol. `urgent` does not, so it runs in that time, on another CPU if there is one. A spawn
//! wakes the level's thread; no job is ever called on the stack of the spawner.

#[punctual::app(executor = "global")]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        total: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        (Shared { total: 0 }, Local {})
    }

    #[task(priority = 1, shared = [total])]
    fn low(mut cx: low::Context) {
        cx.shared.total.lock(|total| {
            println!("low locks, total = {total}");
            high::spawn().unwrap();
            urgent::spawn().unwrap();
            punctual::spend(5.millis());
            *total += 1;
            println!("low unlocks, total = {total}");
        });
    }

    #[task(priority = 2, shared = [total])]
    fn high(mut cx: high::Context) {
        cx.shared.total.lock(|total| {
            *total += 10;
            println!("  high, total = {total}");
        });
        punctual::shutdown();
    }

    #[task(priority = 3)]
    fn urgent(_: urgent::Context) {
        println!("    urgent");
    }
}
