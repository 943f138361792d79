//! `#[cfg]` on a task takes with it everything that was generated for it.
//!
//! The resource's ceiling is computed over all tasks, present or not, so it is 3 here. That is why `present`,
//! at level 2, waits until the lock is released.

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

    #[task(shared = [total])]
    fn foo(mut cx: foo::Context) {
        cx.shared.total.lock(|total| {
            #[cfg(unix)]
            present::spawn().unwrap();
            #[cfg(windows)]
            absent::spawn().unwrap();
            println!("total = {total}");
        });
        punctual::shutdown();
    }

    #[cfg(unix)]
    #[task(priority = 2)]
    fn present(_: present::Context) {
        println!("present");
    }

    #[cfg(windows)]
    #[task(priority = 3, shared = [total])]
    fn absent(_: absent::Context) {
        println!("absent");
    }
}
