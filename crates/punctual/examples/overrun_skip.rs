//! virtual-only: the times have to be exact
//!
//! `on_overrun = skip`, the default, skips every release that finds the previous job unfinished.
//!
//! The period is 10 ms. Job 1 takes 12 ms, so the release at 10 ms is skipped; job 3 takes 25 ms
//! and costs two releases. The grid does not move: the next job is released at the next grid point.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time())?;
    let task = &report.tasks[0];
    println!("{} jobs, {} overruns", task.jobs, task.overruns);
    assert_eq!((task.jobs, task.overruns), (4, 3));
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

    #[task(period = 10.millis(), on_overrun = skip, local = [jobs: u64 = 0])]
    fn sample(cx: sample::Context) {
        *cx.local.jobs += 1;
        let released = cx.released.duration_since_epoch().as_millis();
        let started = punctual::now().duration_since_epoch().as_millis();
        println!("job {}: released at {released} ms, started at {started} ms", cx.local.jobs);
        match *cx.local.jobs {
            1 => punctual::spend(12.millis()),
            3 => punctual::spend(25.millis()),
            4 => punctual::shutdown(),
            _ => punctual::spend(3.millis()),
        }
    }
}
