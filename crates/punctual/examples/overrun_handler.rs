//! virtual-only: the times have to be exact
//!
//! `on_overrun = <task>` skips the release and spawns that task.
//!
//! `late` is above `sample`, so it runs exactly at the grid point, in the middle of the overrunning
//! job; a handler below would run after that job has ended. It reduces the load, so the next job is
//! on time.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time())?;
    println!("{} overruns", report.task("sample").map_or(0, |task| task.overruns));
    Ok(())
}

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        load: u64,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { load: 25 }, Local {})
    }

    #[task(priority = 1, period = 10.millis(), on_overrun = late, shared = [load], local = [jobs: u32 = 0])]
    fn sample(mut cx: sample::Context) {
        *cx.local.jobs += 1;
        let load = cx.shared.load.lock(|load| *load);
        println!("{} ms: job {} of {load} ms starts", now_ms(), cx.local.jobs);
        punctual::spend(load.millis());
        println!("{} ms: job {} ends", now_ms(), cx.local.jobs);
        if *cx.local.jobs == 2 {
            punctual::shutdown();
        }
    }

    #[task(priority = 2, shared = [load])]
    fn late(mut cx: late::Context) {
        cx.shared.load.lock(|load| *load -= 10);
        println!("{} ms: overrun", now_ms());
    }

    fn now_ms() -> u64 {
        punctual::now().duration_since_epoch().as_millis()
    }
}
