//! Spawning a task of a higher level is a preemption: it has run when `spawn` returns.
//!
//! `bar` preempts `foo`, and `baz` preempts `bar` in turn, twice; each resumes at its spawn. A job
//! that runs at once never waits, so the capacity of 1 is enough for `baz`.
//!
//! one-cpu: a job that preempts has run when `spawn` returns, so one slot is enough

// ANCHOR: app
#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn foo(_: foo::Context) {
        println!("foo starts");
        bar::spawn().unwrap();
        println!("foo ends");
        punctual::shutdown();
    }

    #[task(priority = 2)]
    fn bar(_: bar::Context) {
        println!("  bar starts");
        baz::spawn(1).unwrap();
        baz::spawn(2).unwrap();
        println!("  bar ends");
    }

    #[task(priority = 3, capacity = 1)]
    fn baz(_: baz::Context, n: u32) {
        println!("    baz {n}");
    }
}
