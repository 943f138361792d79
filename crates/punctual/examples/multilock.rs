//! Several resources are locked together as a tuple, up to eight.
//!
//! The locks are taken in the order written and released in reverse, and no order can deadlock.
//! While all are held the level is the highest of the ceilings, 3, so `bar` waits for `a` and `baz`
//! for `b`; the higher of the two goes first. The hook sees the result.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        a: u32,
        b: u32,
        c: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        (Shared { a: 0, b: 0, c: 0 }, Local {})
    }

    #[task(priority = 1, shared = [a, b, c])]
    fn foo(cx: foo::Context) {
        (cx.shared.a, cx.shared.b, cx.shared.c).lock(|a, b, c| {
            (*a, *b, *c) = (1, 2, 3);
            bar::spawn().unwrap();
            baz::spawn().unwrap();
            println!("foo: {a} {b} {c}");
        });
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [a])]
    fn bar(mut cx: bar::Context) {
        cx.shared.a.lock(|a| *a += 10);
        println!("bar");
    }

    #[task(priority = 3, shared = [b])]
    fn baz(mut cx: baz::Context) {
        cx.shared.b.lock(|b| *b += 20);
        println!("baz");
    }

    #[shutdown(shared = [a, b, c])]
    fn shutdown(cx: shutdown::Context) {
        println!("in the end: {} {} {}", cx.shared.a, cx.shared.b, cx.shared.c);
    }
}
