//! Locks nest. The level rises with each and falls back with its release.
//!
//! `a` has ceiling 2, `b` has ceiling 3. Of the jobs spawned in the innermost section, `four` is
//! above both ceilings and runs at once, `three` runs when `b` is released, `two` when `a` is.

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
        one::spawn().unwrap();
        (Shared { a: 0, b: 0 }, Local {})
    }

    #[task(priority = 1, shared = [a, b])]
    fn one(mut cx: one::Context) {
        cx.shared.a.lock(|_| {
            println!("a is locked");
            cx.shared.b.lock(|_| {
                println!("  b is locked");
                two::spawn().unwrap();
                three::spawn().unwrap();
                four::spawn().unwrap();
                println!("  b is about to be released");
            });
            println!("a is about to be released");
        });
        println!("nothing is locked");
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [a])]
    fn two(_: two::Context) {
        println!("two");
    }

    #[task(priority = 3, shared = [b])]
    fn three(_: three::Context) {
        println!("  three");
    }

    #[task(priority = 4)]
    fn four(_: four::Context) {
        println!("    four");
    }
}
