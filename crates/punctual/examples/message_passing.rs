//! A spawn passes the task's arguments, as many as it declares.
//!
//! Jobs of one level run in the order of their release, each with its own arguments. If a parameter
//! is a pattern, the argument is destructured on arrival.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn(1, "one", (1.0, -1.0)).unwrap();
        foo::spawn(2, "two", (2.0, -2.0)).unwrap();
        foo::spawn(3, "three", (3.0, -3.0)).unwrap();
        done::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task(capacity = 3)]
    fn foo(_: foo::Context, n: u32, name: &'static str, (x, y): (f32, f32)) {
        println!("foo {n} {name} ({x}, {y})");
    }

    #[task]
    fn done(_: done::Context) {
        println!("done");
        punctual::shutdown();
    }
}
