//! An `idle` that never returns waits for events in its loop.
//!
//! Tasks preempt `idle` at any point. When the app stops, `wait_for_event` does not return: it
//! leaves `idle` by unwinding, so destructors run, and then the `#[shutdown]` hook.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[idle]
    fn idle(_: idle::Context) -> ! {
        let _leaving = Leaving;
        println!("idle starts");
        tick::spawn_after(20.millis(), 1).unwrap();
        loop {
            punctual::wait_for_event();
        }
    }

    struct Leaving;

    impl Drop for Leaving {
        fn drop(&mut self) {
            println!("idle is left");
        }
    }

    #[task]
    fn tick(_: tick::Context, n: u32) {
        println!("tick {n}");
        if n < 3 {
            tick::spawn_after(20.millis(), n + 1).unwrap();
        } else {
            punctual::shutdown();
        }
    }

    #[shutdown]
    fn shutdown(_: shutdown::Context) {
        println!("shutdown");
    }
}
