//! `#[cfg]` removes a task together with its generated code.
//!
//! A ceiling includes only the tasks of this build. `absent` would raise that of `total` to 3;
//! without it the ceiling is 1, so `present`, at level 2, runs inside the critical section of
//! `foo`.

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
