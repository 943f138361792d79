//! `lock` delays exactly those tasks that might use the resource.
//!
//! The ceiling of `total` is 2, the level of `bar`. While `foo` holds it, the partition's level is
//! 2: `bar`, at that level, has to wait until the lock is released, and then runs at once. `baz` is
//! above the ceiling and cannot use the resource, so it preempts the critical section.

// ANCHOR: app
#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        total: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        (Shared { total: 0 }, Local {})
    }

    #[task(priority = 1, shared = [total])]
    fn foo(mut cx: foo::Context) {
        println!("A: foo");
        cx.shared.total.lock(|total| {
            *total += 1;
            bar::spawn().unwrap();
            println!("B: foo, total = {total}");
            baz::spawn().unwrap();
        });
        println!("E: foo");
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [total])]
    fn bar(mut cx: bar::Context) {
        let total = cx.shared.total.lock(|total| {
            *total += 1;
            *total
        });
        println!("D: bar, total = {total}");
    }

    #[task(priority = 3)]
    fn baz(_: baz::Context) {
        println!("C: baz");
    }
}
