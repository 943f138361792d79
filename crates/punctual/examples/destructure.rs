//! Contexts can be destructured, whole or in part.
//!
//! `foo` does it in its body, `bar` in its parameter. Every part has a named type:
//! `foo::SharedResources` and `foo::LocalResources`. Both jobs are of level 1, so they run in the
//! order of their release.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        x: u32,
        y: u32,
    }

    #[local]
    struct Local {
        a: u32,
        b: u32,
        c: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        bar::spawn().unwrap();
        (Shared { x: 10, y: 20 }, Local { a: 0, b: 1, c: 2 })
    }

    #[task(shared = [x, y], local = [a, b])]
    fn foo(cx: foo::Context) {
        let foo::SharedResources { mut x, mut y, .. } = cx.shared;
        let foo::LocalResources { a, b, .. } = cx.local;
        x.lock(|x| y.lock(|y| println!("foo: a = {a}, b = {b}, x = {x}, y = {y}")));
    }

    #[task(shared = [x], local = [c])]
    fn bar(bar::Context { shared: bar::SharedResources { mut x, .. }, local, .. }: bar::Context) {
        x.lock(|x| println!("bar: c = {}, x = {x}", local.c));
        punctual::shutdown();
    }
}
