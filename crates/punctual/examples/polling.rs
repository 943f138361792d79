//! A polling partition: its thread never sleeps and never enters the kernel, and its timers use the
//! processor's time-stamp counter.
//!
//! `control` runs on its own CPU. Operations that enter the kernel are left to others: `log`, in
//! the other partition, or the background thread that makes the calls of
//! `punctual::background::submit`.
//!
//! cpus: 2

#[punctual::app(partitions = [io, fast(poll)])]
mod app {
    use punctual::background;
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        setpoint: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { setpoint: 3 }, Local {})
    }

    #[task(core = fast, period = 50.micros(), shared = [setpoint], local = [position: u32 = 0])]
    fn control(mut cx: control::Context) {
        let setpoint = cx.shared.setpoint.lock(|setpoint| *setpoint);
        if *cx.local.position == setpoint {
            return;
        }
        *cx.local.position += 1;
        if *cx.local.position == setpoint {
            background::submit(move || println!("reached {setpoint}")).ok();
            log::spawn(setpoint).ok();
        }
    }

    #[task(core = io, shared = [setpoint])]
    fn log(mut cx: log::Context, reached: u32) {
        if reached == 5 {
            return punctual::shutdown();
        }
        cx.shared.setpoint.lock(|setpoint| *setpoint = 5);
    }
}
