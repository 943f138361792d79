//! Locking in opposite orders cannot deadlock on real threads either.
//!
//! `low` locks `b` and, nested, `a`; `high` locks them in the opposite order. In between, while it
//! holds only one of them, `low` spawns `high`. With ordinary mutexes `high` would take `a` and
//! wait for `b` forever. Here `high` cannot start while the level is its own, 2, and so not before
//! `low` has released both. `urgent` uses neither and is above, so it does not wait.

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
        low::spawn().unwrap();
        (Shared { a: 1, b: 1 }, Local {})
    }

    #[task(priority = 1, shared = [a, b])]
    fn low(mut cx: low::Context) {
        cx.shared.b.lock(|b| {
            println!("low holds b");
            high::spawn().unwrap();
            urgent::spawn().unwrap();
            cx.shared.a.lock(|a| {
                println!("low holds b and a");
                (*a, *b) = (*a + *b, 10);
            });
            println!("low holds b");
        });
        println!("low ends");
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [a, b])]
    fn high(mut cx: high::Context) {
        cx.shared.a.lock(|a| {
            println!("  high holds a = {a}");
            cx.shared.b.lock(|b| println!("  high holds a = {a} and b = {b}"));
        });
    }

    #[task(priority = 3)]
    fn urgent(_: urgent::Context) {
        println!("    urgent");
    }
}
