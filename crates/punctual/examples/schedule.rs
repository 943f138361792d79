//! `spawn_after` releases a job later.
//!
//! Jobs are released in the order of their times, not of the calls.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn_after(60.millis(), "third").unwrap();
        bar::spawn_after(10.millis(), "first").unwrap();
        baz::spawn_after(20.millis(), "second").unwrap();
        println!("init");
        (Shared {}, Local {})
    }

    #[task]
    fn foo(_: foo::Context, which: &'static str) {
        println!("foo is {which}");
        punctual::shutdown();
    }

    #[task]
    fn bar(_: bar::Context, which: &'static str) {
        println!("bar is {which}");
    }

    #[task]
    fn baz(_: baz::Context, which: &'static str) {
        println!("baz is {which}");
    }
}
