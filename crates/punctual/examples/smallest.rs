//! The smallest app: nothing but `init`.
//!
//! `init` returns the resources, of which there are none here. `shutdown` may be called anywhere in an app;
//! called in `init` it ends the app as soon as `init` has returned.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        println!("init");
        punctual::shutdown();
        (Shared {}, Local {})
    }
}
