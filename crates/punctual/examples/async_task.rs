//! An async task does not occupy its level while it waits.
//!
//! `blink` and `log` are at level 1. While `blink` waits for its next time, `log` runs. The grid is
//! computed by adding to the previous instant, so it does not drift. After `blink` has completed it
//! can be spawned again; before, a spawn returns its arguments.

// ANCHOR: app
#[punctual::app]
mod app {
    use punctual::SpawnError;
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        blinks: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        blink::spawn("first", 3).unwrap();
        let refused = blink::spawn("too early", 1).map_err(SpawnError::into_inner);
        assert_eq!(refused, Err(("too early", 1)));
        (Shared { blinks: 0 }, Local {})
    }

    #[task(priority = 1, shared = [blinks], local = [instances: u32 = 0])]
    async fn blink(mut cx: blink::Context, name: &'static str, times: u32) {
        *cx.local.instances += 1;
        let mut next = punctual::now();
        for _ in 0..times {
            log::spawn(name, cx.shared.blinks.lock(|blinks| *blinks)).unwrap();
            cx.shared.blinks.lock(|blinks| *blinks += 1);
            next += 20.millis();
            punctual::delay_until(next).await;
        }
        println!("{name} ends, instance {}", cx.local.instances);
        end::spawn(*cx.local.instances).unwrap();
    }

    #[task(priority = 1, capacity = 5)]
    fn log(_: log::Context, name: &'static str, blinks: u32) {
        println!("{name}: {blinks} before");
    }

    #[task(priority = 1, shared = [blinks])]
    fn end(mut cx: end::Context, instances: u32) {
        if instances == 1 {
            blink::spawn("second", 2).unwrap();
        } else {
            println!("{} in all", cx.shared.blinks.lock(|blinks| *blinks));
            punctual::shutdown();
        }
    }
}
