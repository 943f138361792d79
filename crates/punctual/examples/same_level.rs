//! Tasks of one level never preempt each other: they run in order of release.
//!
//! Everything that `foo` spawns waits until it has ended, and then runs as spawned: `bar`, `baz`,
//! `bar`. Jobs spawned by the first `bar` are queued after those already waiting.

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

    #[task(priority = 2)]
    fn foo(_: foo::Context) {
        println!("foo starts");
        bar::spawn(1).unwrap();
        baz::spawn(2).unwrap();
        bar::spawn(3).unwrap();
        println!("foo ends");
    }

    #[task(priority = 2, capacity = 2)]
    fn bar(_: bar::Context, n: u32) {
        println!("bar {n}");
        if n == 1 {
            last::spawn().unwrap();
        }
    }

    #[task(priority = 2)]
    fn baz(_: baz::Context, n: u32) {
        println!("baz {n}");
    }

    #[task(priority = 2)]
    fn last(_: last::Context) {
        println!("last");
        punctual::shutdown();
    }
}
