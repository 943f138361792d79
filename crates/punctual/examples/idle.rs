//! `idle` runs when nothing else does.
//!
//! The job that `init` spawned runs before `idle` starts, since every task is above `idle`. For the same
//! reason the job that `idle` spawns has run by the time `spawn` returns. An `idle` that returns leaves the
//! app to its tasks; here it ends the app first. Were `foo` on another CPU, `idle` would not wait for it; hence a second
//! slot, which is not used here.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        println!("init");
        foo::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[idle]
    fn idle(_: idle::Context) {
        println!("idle starts");
        foo::spawn().unwrap();
        println!("idle ends");
        punctual::shutdown();
    }

    #[task(capacity = 2, local = [runs: u32 = 0])]
    fn foo(cx: foo::Context) {
        *cx.local.runs += 1;
        println!("foo {}", cx.local.runs);
    }
}
