//! No priority inversion: no intermediate task delays a critical section that a higher task may
//! need.
//!
//! `b` has ceiling 4, `a` has ceiling 2. Inside both the level is 4, so `baz`, at level 3, has to
//! wait, although it uses neither: if it ran now, and `pow` were released, `pow` would wait for
//! `baz` as well as for the lock. Releasing the inner lock changes nothing, because `b` is still
//! held; `baz` runs when `b` is released.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        a: u32,
        b: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        (Shared { a: 0, b: 0 }, Local {})
    }

    #[task(priority = 1, shared = [a, b])]
    fn foo(mut cx: foo::Context) {
        println!("foo starts");
        cx.shared.b.lock(|_| {
            cx.shared.a.lock(|_| {
                println!("foo spawns baz");
                baz::spawn().unwrap();
                println!("foo holds a and b");
            });
            println!("foo holds b");
        });
        println!("foo ends");
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [a])]
    fn bar(_: bar::Context) {
        println!("  bar is never spawned");
    }

    #[task(priority = 3)]
    fn baz(_: baz::Context) {
        println!("  baz");
    }

    #[task(priority = 4, shared = [b])]
    fn pow(_: pow::Context) {
        println!("  pow is never spawned");
    }
}
