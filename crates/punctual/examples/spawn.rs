//! Spawning a task releases a job of it.
//!
//! `init` delays all tasks, so `foo` runs after it.

// ANCHOR: app
#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        println!("init");
        (Shared {}, Local {})
    }

    #[task]
    fn foo(_: foo::Context) {
        println!("foo");
        punctual::shutdown();
    }
}
