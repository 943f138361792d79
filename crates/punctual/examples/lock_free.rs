//! A `#[lock_free]` resource is a plain `&mut` in every task that uses it.
//!
//! That is sound because all of them run at one level, so none can preempt another; the macro
//! checks it. `bar`, spawned by `foo`, waits until `foo` has ended. `baz` may preempt either, but
//! does not use it.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        #[lock_free]
        history: Vec<&'static str>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        (Shared { history: Vec::new() }, Local {})
    }

    #[task(shared = [history])]
    fn foo(cx: foo::Context) {
        cx.shared.history.push("foo starts");
        bar::spawn().unwrap();
        baz::spawn().unwrap();
        cx.shared.history.push("foo ends");
        println!("{:?}", cx.shared.history);
    }

    #[task(shared = [history])]
    fn bar(cx: bar::Context) {
        cx.shared.history.push("bar");
        println!("{:?}", cx.shared.history);
        punctual::shutdown();
    }

    #[task(priority = 2)]
    fn baz(_: baz::Context) {
        println!("baz");
    }
}
