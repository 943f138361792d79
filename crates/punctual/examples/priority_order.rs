//! Waiting jobs run highest level first, and in order of release within a level.
//!
//! All jobs are released by `init`, lowest first. When `init` has returned, the two of level 3 run
//! in the order of their release, then level 2, then level 1, then `idle`.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        high::spawn("first").unwrap();
        middle::spawn().unwrap();
        high_too::spawn().unwrap();
        high::spawn("second").unwrap();
        println!("init");
        (Shared {}, Local {})
    }

    #[idle]
    fn idle(_: idle::Context) {
        println!("idle");
        punctual::shutdown();
    }

    #[task(priority = 1)]
    fn low(_: low::Context) {
        println!("low");
    }

    #[task(priority = 2)]
    fn middle(_: middle::Context) {
        println!("middle");
    }

    #[task(priority = 3, capacity = 2)]
    fn high(_: high::Context, which: &'static str) {
        println!("high, {which}");
    }

    #[task(priority = 3)]
    fn high_too(_: high_too::Context) {
        println!("high too");
    }
}
