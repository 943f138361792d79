//! `spawn_at` releases a job at a point in time.
//!
//! Jobs of one level armed for the same time are released in the order of the calls. A time in the
//! past releases at once; `late` is at the level of `foo`, so it waits until `foo 3` has ended.

#[punctual::app]
mod app {
    use punctual::Instant;
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        start: Instant,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let start = punctual::now();
        foo::spawn_at(start + 50.millis(), 3).unwrap();
        foo::spawn_at(start + 10.millis(), 1).unwrap();
        bar::spawn_at(start + 10.millis()).unwrap();
        foo::spawn_at(start + 10.millis(), 2).unwrap();
        (Shared {}, Local { start })
    }

    #[task(capacity = 3, local = [start])]
    fn foo(cx: foo::Context, n: u32) {
        println!("foo {n}");
        if n == 3 {
            late::spawn_at(*cx.local.start).unwrap();
            println!("foo {n} ends");
        }
    }

    #[task]
    fn bar(_: bar::Context) {
        println!("bar");
    }

    #[task]
    fn late(_: late::Context) {
        println!("late");
        punctual::shutdown();
    }
}
