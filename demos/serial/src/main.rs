//! Positions a drive on a serial line.
//!
//!     serial /dev/ttyUSB0     # a drive at 115 200 baud
//!     serial                  # a simulated one

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use punctual::Config;
use serial::simulated::{Drive, Faults};
use serial::{Counts, Goal, app, open};

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let port = match std::env::args_os().nth(1) {
        Some(path) => open(Path::new(&path), 115_200).map_err(|error| {
            let path = path.to_string_lossy();
            format!("cannot open {path}: {error}; check the name, and that you may read and write it")
        })?,
        None => Drive::start(Faults::default())?.1,
    };
    let counts = Arc::<Counts>::default();
    let goal = Goal { position: 2_000, answers: 300 };
    let report = app::run(Config::from_env(), port, Arc::clone(&counts), goal)?;
    print!("{report}");
    let Counts { answers, failures, rejected, position } = &*counts;
    let [answers, failures, rejected, position] =
        [answers, failures, rejected, position].map(|count| count.load(Relaxed));
    println!("position {position}, {answers} answers, {failures} failed exchanges, {rejected} rejected");
    Ok(if answers < goal.answers { ExitCode::FAILURE } else { report.exit_code().into() })
}
