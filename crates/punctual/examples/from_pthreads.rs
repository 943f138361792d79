//! virtual-only: the times have to be exact
//!
//! Two POSIX threads after porting: a control loop, and a logger behind a queue.
//!
//! The mutex and its priority inheritance became a shared resource with a ceiling, the queue and
//! its condition variable a task with a capacity, and both loops disappeared.

// ANCHOR: app
#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        setpoint: f32, // pthread_mutex_t with PTHREAD_PRIO_INHERIT, and what it protects
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        operator::spawn_after(15.millis(), 2.0).unwrap(); // timer_create
        (Shared { setpoint: 1.0 }, Local {})
    }

    // for (;;) { clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL); .. }
    #[task(priority = 3, period = 10.millis(), shared = [setpoint], local = [cycle: u32 = 0])]
    fn control(mut cx: control::Context) {
        *cx.local.cycle += 1;
        let setpoint = cx.shared.setpoint.lock(|setpoint| *setpoint); // pthread_mutex_lock
        log::spawn(*cx.local.cycle, setpoint).ok(); // mq_send, pthread_cond_signal
        if *cx.local.cycle == 4 {
            punctual::shutdown(); // pthread_cancel, pthread_join
        }
    }

    #[task(priority = 2, shared = [setpoint])]
    fn operator(mut cx: operator::Context, wanted: f32) {
        cx.shared.setpoint.lock(|setpoint| *setpoint = wanted);
    }

    #[task(priority = 1, capacity = 4)]
    fn log(_: log::Context, cycle: u32, setpoint: f32) {
        println!("cycle {cycle}: setpoint {setpoint}");
    }
}
// ANCHOR_END: app
