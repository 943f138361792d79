//! `idle` shares resources like any task: at level 0, below all others.
//!
//! While `idle` holds `total` the level is 2. `low`, at level 1, has to wait as well, although it
//! does not use `total`: running it would delay `middle`. `high` is above the ceiling and preempts
//! `idle`. At the release the higher of the two waiting jobs goes first.

#[punctual::app]
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
        (Shared { total: 1 }, Local {})
    }

    #[idle(shared = [total])]
    fn idle(mut cx: idle::Context) {
        cx.shared.total.lock(|total| {
            println!("idle locks, total = {total}");
            low::spawn().unwrap();
            middle::spawn().unwrap();
            high::spawn().unwrap();
            *total += 1;
            println!("idle unlocks, total = {total}");
        });
        println!("idle ends");
        punctual::shutdown();
    }

    #[task(priority = 1)]
    fn low(_: low::Context) {
        println!("low");
    }

    #[task(priority = 2, shared = [total])]
    fn middle(mut cx: middle::Context) {
        cx.shared.total.lock(|total| println!("middle, total = {total}"));
    }

    #[task(priority = 3)]
    fn high(_: high::Context) {
        println!("high");
    }
}
