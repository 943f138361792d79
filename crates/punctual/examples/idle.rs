//! `idle` runs when no task does.
//!
//! The job that `init` spawned runs before `idle` starts, because every task is above `idle`. For
//! the same reason a job that `idle` spawns has run when `spawn` returns. If `idle` returns, the
//! tasks continue; here it ends the app first. If `foo` were on another CPU, `idle` would not wait
//! for it; this is the reason for a second slot, which is not used here.

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
