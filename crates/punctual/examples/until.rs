//! virtual-only: the number of jobs has to be exact
//!
//! `Config::until` ends an app after a given time, here one simulated hour in virtual time.
//!
//! The clock jumps from event to event, so the hour takes no real time. Both grids begin at 0, and
//! at 3600 s the app ends before anything is released: 3600 jobs of `second`, 60 of `minute`.

use punctual::{Config, Duration, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time().until(Duration::from_hours(1)))?;
    println!("{} after {} s", report.outcome, report.elapsed.as_secs());
    for task in &report.tasks {
        println!("{}: {} jobs", task.name, task.jobs);
    }
    Ok(())
}

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(priority = 2, period = 1.secs())]
    fn second(_: second::Context) {}

    #[task(priority = 1, period = 1.minutes(), local = [n: u32 = 0])]
    fn minute(cx: minute::Context) {
        *cx.local.n += 1;
        if (*cx.local.n).is_multiple_of(20) {
            println!("minute {}", cx.local.n);
        }
    }
}
