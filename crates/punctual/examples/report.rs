//! virtual-only: the times have to be exact
//! one-cpu: the deadlines are missed because another task has the CPU
//!
//! The report of a run shows for each task how late its jobs started, how long they took, and how
//! many missed their deadline.
//!
//! `sample` executes for 4 ms and has a deadline of 6 ms. `hog` delays its third job, from 19 ms to
//! 24 ms, and preempts the fourth, from 32 ms to 37 ms. Both miss: the third started 4 ms late and
//! took 8 ms, the fourth took 9 ms.

// ANCHOR: app
use punctual::{Config, Duration, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time().until(Duration::from_millis(40)))?;
    print!("{report}");
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

    #[task(priority = 1, period = 10.millis(), deadline = 6.millis(), execution = 4.millis())]
    fn sample(_: sample::Context) {}
}
