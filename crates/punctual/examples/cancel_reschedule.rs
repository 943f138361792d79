//! A job that has not been released yet can be canceled or moved, by the handle that `spawn_after`
//! returned.
//!
//! `tick` runs first, because it is armed for the earliest time. It cancels `a`, which returns the
//! arguments, and moves `b` from 5 s to 10 ms from now. After `b` has run it can no longer be
//! moved. Dropping a handle changes nothing.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        a: Option<alarm::SpawnHandle>,
        b: Option<alarm::SpawnHandle>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let a = alarm::spawn_after(5.secs(), "a").ok();
        let b = alarm::spawn_after(5.secs(), "b").ok();
        tick::spawn_after(10.millis()).unwrap();
        (Shared {}, Local { a, b })
    }

    #[task(local = [a, b])]
    fn tick(cx: tick::Context) {
        if let Some(a) = cx.local.a.take() {
            println!("tick cancels a: {:?}", a.cancel());
            *cx.local.b = cx.local.b.take().and_then(|b| b.reschedule_after(10.millis()).ok());
            println!("tick moves b: {}", cx.local.b.is_some());
        } else if let Some(b) = cx.local.b.take() {
            println!("tick is too late for b: {}", b.reschedule_after(10.millis()).is_err());
            punctual::shutdown();
        }
    }

    #[task(capacity = 2)]
    fn alarm(_: alarm::Context, which: &'static str) {
        println!("alarm {which}");
        tick::spawn().unwrap();
    }
}
