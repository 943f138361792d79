//! Records how a motor moves to an angle: a recording for viewers, and a table on standard output.
//!
//! ```text
//! cargo run -p punctual-bridge --features mcap --example recording -- run.mcap
//! ```
//!
//! `plant` and `control` run at 1 kHz in virtual time. The state is published every 10 ms, the
//! currents completely, ten per message. Neither task allocates or enters the kernel for that.

use std::env;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

use punctual::{Config, Duration};
use punctual_bridge::{Message, Report, Topic};

/// The state of the motor.
#[derive(Debug, Clone, Copy, Message)]
#[message(name = "motor_msgs/msg/State")]
pub(crate) struct State {
    #[message(unit = "rad")]
    angle: f64,
    #[message(unit = "rad/s")]
    speed: f64,
    settled: bool,
}

/// The currents of the last 10 ms.
#[derive(Debug, Clone, Copy, Message)]
#[message(name = "motor_msgs/msg/Currents")]
pub(crate) struct Currents {
    #[message(unit = "A")]
    samples: [f32; 10],
}

/// The number of messages that may be queued: half a second's.
const ROOM: usize = 64;

static STATE: Topic<State, ROOM> = Topic::new("/motor/state").hz(100);
static CURRENTS: Topic<Currents, ROOM> = Topic::new("/motor/currents").hz(100);

/// Runs the motor for a fifth of a second, recording to a new file; `table` gets the state.
///
/// # Errors
/// If the file cannot be created, or the app cannot be started.
pub(crate) fn record(file: &Path, table: Box<dyn Write + Send>) -> Result<Report, Box<dyn Error>> {
    let (sender, reports) = channel();
    let config = Config::new().virtual_time().until(Duration::from_millis(200));
    let files = Files { recording: file.to_owned(), table, reports: sender };
    drop(app::run(config, files)?);
    reports.try_recv()?.map_err(Into::into)
}

/// The outputs.
pub(crate) struct Files {
    recording: PathBuf,
    table: Box<dyn Write + Send>,
    reports: Sender<Result<Report, String>>,
}

#[allow(dead_code, reason = "the tests call `record`")]
fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args_os().nth(1).ok_or("usage: recording FILE.mcap")?;
    let report = record(file.as_ref(), Box::new(std::io::stdout()))?;
    eprint!("{report}");
    Ok(())
}

// ANCHOR: app
#[punctual::app(main = false)]
mod app {
    use std::error::Error;

    use punctual::prelude::*;
    use punctual_bridge::{Bridge, Csv, Publisher, Recording, Running};

    use super::{CURRENTS, Currents, Files, ROOM, STATE, Sender, State};

    #[shared]
    struct Shared {
        current: f64,
        angle: f64,
        speed: f64,
    }

    #[local]
    struct Local {
        bridge: Option<Running>,
        reports: Sender<Result<super::Report, String>>,
        state: Publisher<State, ROOM>,
        currents: Publisher<Currents, ROOM>,
        samples: [f32; 10],
        count: usize,
    }

    #[init]
    fn init(_: init::Context, files: Files) -> (Shared, Local) {
        // After `init` starts, the helper knows which CPUs to avoid.
        let bridge = start(&files.recording, files.table);
        if let Err(error) = &bridge {
            let _ = files.reports.send(Err(error.to_string()));
            punctual::shutdown();
        }
        let local = Local {
            bridge: bridge.ok(),
            reports: files.reports,
            state: STATE.publisher().expect("the publisher is free"),
            currents: CURRENTS.publisher().expect("the publisher is free"),
            samples: [0.0; 10],
            count: 0,
        };
        (Shared { current: 0.0, angle: 0.0, speed: 0.0 }, local)
    }

    fn start(
        file: &std::path::Path,
        table: Box<dyn std::io::Write + Send>,
    ) -> Result<Running, Box<dyn Error>> {
        let bridge = Bridge::new().topic(&STATE).topic(&CURRENTS).virtual_time(true);
        let table = Csv::new("/motor/state", table);
        Ok(bridge.sink(Recording::create(file)?).sink(table).start()?)
    }

    #[task(priority = 2, period = 1.millis(), shared = [current, angle, speed])]
    fn plant(cx: plant::Context) {
        (cx.shared.current, cx.shared.angle, cx.shared.speed).lock(|current, angle, speed| {
            *speed += (*current * 500.0 - *speed * 4.0) / 1024.0;
            *angle += *speed / 1024.0;
        });
    }

    #[task(priority = 1, period = 1.millis(), shared = [current, angle, speed], local = [state, currents, samples, count])]
    fn control(cx: control::Context) {
        let (angle, speed, current) =
            (cx.shared.current, cx.shared.angle, cx.shared.speed).lock(|current, angle, speed| {
                *current = ((1.0 - *angle) * 2.5 - *speed * 0.125).clamp(-1.0, 1.0);
                (*angle, *speed, *current)
            });
        let index = *cx.local.count % 10;
        *cx.local.count += 1;
        cx.local.samples[index] = current as f32;
        if index == 9 {
            let settled = (angle - 1.0).abs() < 0.01 && speed.abs() < 0.1;
            cx.local.state.publish(cx.released, State { angle, speed, settled });
            cx.local.currents.publish(cx.released, Currents { samples: *cx.local.samples });
        }
    }

    #[shutdown(local = [bridge, reports])]
    fn shutdown(cx: shutdown::Context) {
        if let Some(bridge) = cx.local.bridge.take() {
            let _ = cx.local.reports.send(Ok(bridge.finish()));
        }
    }
}
// ANCHOR_END: app
