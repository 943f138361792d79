//! virtual-only: the times have to be exact
//! exit: 1
//!
//! `on_overrun = stop` ends the app at the first release that finds the previous job unfinished.
//!
//! The overrun is detected at 10 ms, while job 1 is running. That job is finished, as in any
//! shutdown, and then the hook runs. Such an app exits with code 1.

use std::process::ExitCode;

use punctual::{Config, StartError};

fn main() -> Result<ExitCode, StartError> {
    let report = app::run(Config::new().virtual_time())?;
    println!("{}", report.outcome);
    Ok(report.exit_code().into())
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

    #[task(period = 10.millis(), on_overrun = stop)]
    fn sample(_: sample::Context) {
        println!("job starts at {} ms", punctual::now().duration_since_epoch().as_millis());
        punctual::spend(12.millis());
        println!("job ends at {} ms", punctual::now().duration_since_epoch().as_millis());
    }

    #[shutdown]
    fn shutdown(_: shutdown::Context) {
        println!("shutdown");
    }
}
