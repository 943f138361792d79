//! A real-time controller for ROS 2: `punctual-ros2`, a separate process, makes it a node.
//!
//! | task | level | released | does |
//! |---|---|---|---|
//! | `control` | 1 | every millisecond | reads the sensor and the newest setpoint, computes the output; publishes every tenth value |
//!
//! `cargo test` runs it in virtual time and without topics; `cargo run` on threads of the kernel,
//! until Ctrl-C.

use std::error::Error;
use std::process::ExitCode;

use punctual::Config;
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Incoming, Running, Topic, TransportServer};

/// Maximum accepted setpoint.
const LIMIT: f64 = 10.0;

/// The state of the controller: x is the value, y the setpoint.
static STATE: Topic<Vector3, 256> = Topic::new("/state").hz(100);
/// The newest command: x is the setpoint.
static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });

fn main() -> ExitCode {
    match controller::run(Config::from_env(), connect) {
        Ok(report) => {
            println!("{report}");
            report.exit_code().into()
        }
        Err(error) => {
            eprintln!("{error}");
            error.exit_code().into()
        }
    }
}

/// Connects the topics.
type Connect = fn() -> Result<Option<Running>, Box<dyn Error>>;

/// Admits `punctual-ros2` to both topics. No fault of it affects the tasks.
fn connect() -> Result<Option<Running>, Box<dyn Error>> {
    let transports = TransportServer::new("@NAME@").subscribe(SETPOINT.subscribe()?.check(within));
    Ok(Some(Bridge::new().topic(&STATE).transports(transports).start()?))
}

/// Accepts the setpoints that the controller may follow.
fn within(wanted: &Vector3) -> Result<(), String> {
    if wanted.x.abs() <= LIMIT {
        Ok(())
    } else {
        Err(format!("x is {}, beyond -{LIMIT} to {LIMIT}", wanted.x))
    }
}

#[punctual::app(main = false)]
mod controller {
    use punctual_bridge::{IncomingReader, Publisher};

    use super::{Connect, Running, SETPOINT, STATE, Vector3};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        setpoint: IncomingReader<Vector3>,
        state: Publisher<Vector3, 256>,
        value: f64,
        bridge: Option<Running>,
    }

    /// Before the first job: open devices here, allocate, and start threads by
    /// `punctual::background`.
    #[init]
    fn init(_: init::Context, connect: Connect) -> (Shared, Local) {
        let bridge = connect().unwrap_or_else(|error| {
            // Nothing has moved yet, and a controller without topics could not be steered.
            eprintln!("{error}");
            std::process::exit(1)
        });
        let setpoint = SETPOINT.reader().expect("one task reads it");
        let state = STATE.publisher().expect("one task publishes it");
        (Shared {}, Local { setpoint, state, value: 0.0, bridge })
    }

    #[task(
        priority = 1,
        period = 1.millis(),
        deadline = 500.micros(),
        local = [setpoint, state, value, turn: u32 = 0, last: f64 = 0.0]
    )]
    fn control(cx: control::Context) {
        let setpoint = cx.local.setpoint.read().message.x;
        if setpoint != *cx.local.last {
            *cx.local.last = setpoint;
            punctual::log!(Info, "the setpoint is {setpoint}");
        }
        // Replace this by your sensor and actuator: a value that follows the setpoint.
        let value = cx.local.value;
        *value += (setpoint - *value) / 100.0;
        if cx.local.turn.is_multiple_of(10) {
            cx.local.state.publish(cx.released, Vector3 { x: *value, y: setpoint, z: 0.0 });
        }
        *cx.local.turn = cx.local.turn.wrapping_add(1);
    }

    #[shutdown(local = [bridge])]
    fn shutdown(cx: shutdown::Context) {
        if let Some(bridge) = cx.local.bridge.take() {
            eprint!("{}", bridge.finish());
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual::{Config, Duration};
    use punctual_bridge::message::Layout;

    use super::*;

    /// Returns a message in the encoding of ROS 2.
    fn bytes(x: f64) -> Vec<u8> {
        [&[0, 1, 0, 0], [x, 0.0, 0.0].map(f64::to_le_bytes).as_flattened()].concat()
    }

    /// A minute of control takes a moment, and is the same each time.
    #[test]
    fn follows_newest_setpoint_without_misses() {
        let mut peer = SETPOINT.subscribe().expect("there is no transport");
        peer.take(&bytes(0.5), Layout::Cdr, &"a test").expect("it is a setpoint");
        assert!(peer.take(&bytes(f64::NAN), Layout::Cdr, &"a test").is_err());
        let config = Config::new().virtual_time().until(Duration::from_minutes(1));
        let report = controller::run(config, || Ok(None)).expect("virtual time has no requirements");
        let control = report.task("control").expect("it is declared");
        assert_eq!((control.jobs, control.overruns, control.misses), (60_000, 0, 0));
    }

    #[test]
    fn rejects_setpoints_out_of_range() {
        let setpoint = |x| Vector3 { x, y: 0.0, z: 0.0 };
        assert!(within(&setpoint(-LIMIT)).is_ok());
        for x in [LIMIT + 0.1, f64::INFINITY, f64::NAN] {
            assert!(within(&setpoint(x)).is_err(), "{x}");
        }
    }
}
