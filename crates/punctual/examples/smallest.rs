//! The smallest app: only `init`.
//!
//! `init` returns the resources, here none. `shutdown` may be called anywhere in an app; in `init`
//! it ends the app as soon as `init` has returned.

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
