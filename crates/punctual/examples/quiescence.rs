//! virtual-only: on threads an app waits for ever when nothing is left to do
//!
//! In virtual time an app ends when no further event is possible.
//!
//! `foo` arms `bar`, and `bar` arms nothing. The clock stops at the end of the last job.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time())?;
    println!("{} after {} ms", report.outcome, report.elapsed.as_millis());
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
        foo::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task(execution = 2.millis())]
    fn foo(_: foo::Context) {
        bar::spawn_after(10.millis()).unwrap();
        println!("foo at {} ms", punctual::now().duration_since_epoch().as_millis());
    }

    #[task]
    fn bar(_: bar::Context) {
        println!("bar at {} ms", punctual::now().duration_since_epoch().as_millis());
        punctual::spend(3.millis());
        println!("bar ends at {} ms", punctual::now().duration_since_epoch().as_millis());
    }
}
