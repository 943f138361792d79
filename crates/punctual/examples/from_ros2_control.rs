//! virtual-only: the times have to be exact
//!
//! A controller of ros2_control after porting: `read`, `update` and `write` at one rate, a command
//! from a topic, and an update of a slower controller.
//!
//! The controller manager's loop became a periodic task, the command's buffer a shared resource,
//! and the division of rates a task with its own period and a lower level.

// ANCHOR: app
#[punctual::app]
mod app {
    use punctual::prelude::*;

    /// A hardware interface: a motor with an encoder, simulated here.
    struct Motor {
        position: f32,
    }

    #[shared]
    struct Shared {
        reference: f32, // realtime_tools::RealtimeBuffer, filled by a subscription
    }

    #[local]
    struct Local {
        motor: Motor,
    }

    #[init] // on_init, on_configure, on_activate
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { reference: 0.0 }, Local { motor: Motor { position: 0.0 } })
    }

    // update_rate: 100
    #[task(priority = 2, period = 10.millis(), shared = [reference], local = [motor, n: u32 = 0])]
    fn control(mut cx: control::Context) {
        let measured = cx.local.motor.position; // HardwareInterface::read
        let reference = cx.shared.reference.lock(|reference| *reference);
        let command = 0.5 * (reference - measured); // ControllerInterface::update
        cx.local.motor.position += command; // HardwareInterface::write
        *cx.local.n += 1;
        if *cx.local.n == 4 {
            println!("at {:.2} of {reference:.2} rad", cx.local.motor.position);
            punctual::shutdown();
        }
    }

    // A chained controller with update_rate: 20; a topic releases it without a period.
    #[task(priority = 1, period = 50.millis(), offset = 5.millis(), shared = [reference])]
    fn plan(mut cx: plan::Context) {
        cx.shared.reference.lock(|reference| *reference += 0.8);
        println!("another reference");
    }

    #[shutdown(local = [motor])] // on_deactivate, also after a panic
    fn stop(cx: stop::Context) {
        cx.local.motor.position = 0.0;
        println!("safe");
    }
}
// ANCHOR_END: app
