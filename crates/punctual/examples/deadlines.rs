//! virtual-only: the times have to be exact
//! one-cpu: the deadlines are missed because another task has the CPU
//!
//! A deadline is relative to the release, so it covers both a late start and the execution.
//!
//! `sample` executes for 4 ms and has a deadline of 6 ms. The first `hog`, from 19 ms to 24 ms,
//! delays its third job; the second, from 32 ms to 37 ms, preempts the fourth. Both miss. The
//! report distinguishes them: J is the delay of a job's start, R the time from its release to its
//! end, C its execution time without preemption.

use punctual::{Config, Duration, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time().until(Duration::from_millis(40)))?;
    for task in &report.tasks {
        let [j, r, c] = [&task.jitter, &task.response, &task.execution].map(|q| q.max / 1_000_000);
        println!("{}: J {j} ms, R {r} ms, C {c} ms, {} of {} missed", task.name, task.misses, task.jobs);
    }
    Ok(())
}

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        hog::spawn_after(19.millis()).unwrap();
        hog::spawn_after(32.millis()).unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 2, capacity = 2, execution = 5.millis())]
    fn hog(_: hog::Context) {}

    #[task(priority = 1, period = 10.millis(), deadline = 6.millis())]
    fn sample(cx: sample::Context) {
        let started = punctual::now();
        punctual::spend(4.millis());
        let times = [cx.released, started, punctual::now()].map(|t| t.duration_since_epoch().as_millis());
        let [released, started, ended] = times;
        let verdict = if ended - released > 6 { ": too late" } else { "" };
        println!("released at {released} ms, started at {started} ms, ended at {ended} ms{verdict}");
    }
}
