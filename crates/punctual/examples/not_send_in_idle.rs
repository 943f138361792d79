//! A value that stays on one thread need not be `Send`.
//!
//! `init` and `idle` run on the thread that called `run`, so an `Rc` may pass from one to the
//! other. Values that a task uses have to be `Send`, and the macro checks it.

#[punctual::app]
mod app {
    use std::rc::Rc;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        handle: Rc<str>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { handle: Rc::from("a handle without Send") })
    }

    #[idle(local = [handle])]
    fn idle(cx: idle::Context) {
        let again = Rc::clone(cx.local.handle);
        println!("{again}, held {} times", Rc::strong_count(&again));
        punctual::shutdown();
    }
}
