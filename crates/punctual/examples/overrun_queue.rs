//! virtual-only: the times have to be exact
//!
//! `on_overrun = queue` releases nevertheless, up to the task's capacity of unfinished jobs.
//!
//! The period is 10 ms, and a job takes 3 ms, but job 1 takes 12 ms and job 3 takes 35 ms. The jobs
//! released during these run back to back afterwards, each with its nominal release. At 50 ms jobs
//! 3, 4 and 5 are unfinished, as many as the capacity allows, so that release is skipped. By 70 ms
//! the task has caught up.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time())?;
    let task = &report.tasks[0];
    println!("{} jobs, {} overruns", task.jobs, task.overruns);
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
        (Shared {}, Local {})
    }

    #[task(period = 10.millis(), on_overrun = queue, capacity = 3, local = [jobs: u64 = 0])]
    fn sample(cx: sample::Context) {
        *cx.local.jobs += 1;
        let released = cx.released.duration_since_epoch().as_millis();
        let started = punctual::now().duration_since_epoch().as_millis();
        println!("job {}: released at {released} ms, started at {started} ms", cx.local.jobs);
        match *cx.local.jobs {
            1 => punctual::spend(12.millis()),
            3 => punctual::spend(35.millis()),
            7 => punctual::shutdown(),
            _ => punctual::spend(3.millis()),
        }
    }
}
