//! A motor is tuned while it runs.
//!
//! ```text
//! cargo run -p punctual-bridge --features parameters --example tuning
//! ```
//!
//! `control` reads its gains at the start of each job: a copy, without allocating, waiting or
//! entering the kernel. In this run, in virtual time, `operator` changes them as `punctual set`
//! would from outside. With `live` it runs for two minutes on threads, to be tuned by hand,
//! starting with the gains of a file if one is given:
//!
//! ```text
//! cargo run -p punctual-bridge --features parameters --example tuning -- live [gains.toml]
//! punctual get motor
//! punctual set motor pid.kp=4 pid.kd=0.4
//! ```

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

use punctual::{Config, Duration};
use punctual_bridge::{Parameters, Tunable};

// ANCHOR: parameters
#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Pid {
    #[parameter(default = 2.0, range = 0.0..=10.0, unit = "A/rad")]
    kp: f64,
    #[parameter(default = 0.0, range = 0.0..=1.0, unit = "A s/rad")]
    kd: f64,
}

#[derive(Debug, Clone, Copy, Parameters)]
#[message(name = "motor_msgs/msg/Gains")]
pub(crate) struct Gains {
    #[parameter(nested)]
    pid: Pid,
    #[parameter(default = 1.0, range = 0.1..=2.5, unit = "A")]
    max_current: f64,
    #[parameter(default = true)]
    enabled: bool,
}

static GAINS: Tunable<Gains> = Tunable::new();
// ANCHOR_END: parameters

/// The operator's commands, one line every 100 ms.
const COMMANDS: [&[(&str, &str)]; 4] = [
    &[("pid.kd", "0.25")],
    &[("pid.kp", "4"), ("pid.kd", "NaN")],
    &[("pid.kp", "40"), ("pid.ki", "1")],
    &[("pid.kp", "4"), ("pid.kd", "0.5")],
];

/// Runs the motor in virtual time for half a second; `out` gets the events.
///
/// # Errors
/// If the app cannot be started.
pub(crate) fn tune(out: Box<dyn Write + Send>) -> Result<(), Box<dyn Error>> {
    let config = Config::new().virtual_time().until(Duration::from_millis(500));
    app::run(config, Setup { out, file: None, commands: &COMMANDS })?;
    Ok(())
}

/// The app's arguments.
pub(crate) struct Setup {
    out: Box<dyn Write + Send>,
    /// The gains at the start.
    file: Option<PathBuf>,
    commands: &'static [&'static [(&'static str, &'static str)]],
}

#[allow(dead_code, reason = "the tests call `tune`")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        None => tune(Box::new(std::io::stdout())),
        Some(word) if word == "live" => {
            let setup = Setup {
                out: Box::new(std::io::stdout()),
                file: arguments.next().map(Into::into),
                commands: &[],
            };
            app::run(Config::new().until(Duration::from_secs(120)), setup)?;
            Ok(())
        }
        Some(_) => Err("usage: tuning [live [GAINS.toml]]".into()),
    }
}

// ANCHOR: app
#[punctual::app(main = false)]
mod app {
    use std::error::Error;
    use std::io::Write;

    use punctual::prelude::*;
    use punctual_bridge::{TunableReader, Tuning, TuningServer};

    use super::{GAINS, Gains, Setup};

    #[shared]
    struct Shared {
        angle: f64,
    }

    #[local]
    struct Local {
        gains: TunableReader<Gains>,
        server: Option<TuningServer<Gains>>,
        setup: Setup,
    }

    #[init]
    fn init(_: init::Context, setup: Setup) -> (Shared, Local) {
        let server = start(&setup);
        if let Err(error) = &server {
            eprintln!("error: {error}");
            punctual::shutdown();
        }
        let gains = GAINS.reader().expect("the reader is free");
        (Shared { angle: 0.0 }, Local { gains, server: server.ok(), setup })
    }

    // ANCHOR: start
    fn start(setup: &Setup) -> Result<TuningServer<Gains>, Box<dyn Error>> {
        let mut tuning = Tuning::new(&GAINS);
        if let Some(file) = &setup.file {
            tuning = tuning.file(file)?;
        }
        Ok(tuning.start("motor")?)
    }
    // ANCHOR_END: start

    #[task(priority = 2, period = 1.millis(), shared = [angle], local = [gains, speed: f64 = 0.0])]
    fn control(mut cx: control::Context) {
        let gains = cx.local.gains.read().value;
        let speed = cx.local.speed;
        cx.shared.angle.lock(|angle| {
            let wanted = (1.0 - *angle) * gains.pid.kp - *speed * gains.pid.kd;
            let current =
                if gains.enabled { wanted.clamp(-gains.max_current, gains.max_current) } else { 0.0 };
            *speed += current * 500.0 / 1024.0;
            *angle += *speed / 1024.0;
        });
    }

    #[task(priority = 1, period = 100.millis(), shared = [angle], local = [server, setup, number: usize = 0])]
    fn operator(mut cx: operator::Context) {
        let (setup, number) = (cx.local.setup, cx.local.number);
        let angle = cx.shared.angle.lock(|angle| *angle);
        let _ = writeln!(setup.out, "angle {angle:.3} rad");
        if let (Some(server), Some(command)) = (cx.local.server, setup.commands.get(*number)) {
            // The task has a low priority: this allocates, and waits for concurrent changes.
            match server.set(command) {
                Ok(changes) => changes.iter().for_each(|change| {
                    let _ = writeln!(setup.out, "  {}: {} -> {}", change.name, change.before, change.now);
                }),
                Err(refused) => refused.0.iter().for_each(|reason| {
                    let _ = writeln!(setup.out, "  refused: {reason}");
                }),
            }
        }
        *number += 1;
    }
}
// ANCHOR_END: app
