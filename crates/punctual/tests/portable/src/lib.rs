//! An app for any platform: it depends on `punctual` without features, and compiles both alone, for
//! a board, and in a graph in which other packages enable all features.
#![no_std]

use core::time::Duration;

use punctual::report::{Outcome, Report, Summary};
use punctual::{Config, StartError};

/// Counts to three, then stops.
#[punctual::app(main = false)]
pub mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        count: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { count: 0 }, Local {})
    }

    /// Counts.
    #[task(priority = 2, period = 1.millis(), shared = [count])]
    fn sample(mut cx: sample::Context) {
        let count = cx.shared.count.lock(|count| {
            *count += 1;
            *count
        });
        if count == 3 {
            last::spawn().expect("no other job spawns it");
        }
    }

    /// Stops the app.
    #[task(priority = 1)]
    fn last(_: last::Context) {
        punctual::shutdown();
    }
}

/// A quantity of a task, copied out of its report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// The maximum, in ns.
    pub max: u64,
    /// The mean, in ns.
    pub mean: f64,
    /// The median, in ns, if it is known.
    pub median: Option<u64>,
}

/// The parts of a report that every platform has, with their types.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Excerpt {
    /// The app.
    pub app: &'static str,
    /// The duration of the run.
    pub elapsed: Duration,
    /// The task of the highest level.
    pub first: &'static str,
    /// The number of its jobs.
    pub jobs: u64,
    /// Its response time.
    pub response: Quantity,
    /// The number of tasks.
    pub tasks: usize,
    /// The task that overran, if that ended the run.
    pub overrun: Option<&'static str>,
}

/// Runs the app.
///
/// # Errors
/// As the app.
pub fn run(config: Config) -> Result<Excerpt, StartError> {
    match app::run(config) {
        Ok(report) => Ok(excerpt(&report)),
        Err(StartError::AlreadyRunning(app)) => Err(StartError::AlreadyRunning(app)),
        Err(StartError::NoCore { app, partition, core }) => Err(StartError::NoCore { app, partition, core }),
        Err(error) => Err(error),
    }
}

/// Returns the excerpt of a report.
///
/// # Panics
/// Panics if the app has no task.
pub fn excerpt(report: &Report) -> Excerpt {
    let Some(first) = report.tasks.iter().find(|task| task.partition.is_none()) else {
        panic!("{} has a task, and one partition", report.app)
    };
    let Summary { max, mean, p50, .. } = first.response;
    let overrun = match report.outcome {
        Outcome::Overrun { task } => Some(task),
        _ => None,
    };
    let tasks = (&report.tasks).into_iter().count();
    Excerpt {
        app: report.app,
        elapsed: report.elapsed,
        first: first.name,
        jobs: first.jobs,
        response: Quantity { max, mean, median: p50 },
        tasks,
        overrun,
    }
}
