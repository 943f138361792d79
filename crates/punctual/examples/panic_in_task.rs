//! A panic in a task ends the app, after the `#[shutdown]` hook.
//!
//! The panic releases the lock that the job holds. Jobs that have not been released are dropped,
//! and the hook finds the resources as the panic left them.
//!
//! exit: 101

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        pressure: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        pump::spawn().unwrap();
        (Shared { pressure: 8 }, Local {})
    }

    #[task(priority = 2, shared = [pressure])]
    fn pump(mut cx: pump::Context) {
        log::spawn_after(1.secs()).unwrap();
        println!("pump");
        cx.shared.pressure.lock(|pressure| {
            *pressure += 4;
            assert!(*pressure < 10, "the pressure is too high");
        });
        println!("never reached");
    }

    #[task(priority = 1, shared = [pressure])]
    fn log(_: log::Context) {
        println!("never reached either");
    }

    #[shutdown(shared = [pressure])]
    fn shutdown(cx: shutdown::Context) {
        println!("shutdown at pressure {}", cx.shared.pressure);
    }
}
