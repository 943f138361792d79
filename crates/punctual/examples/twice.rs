//! An app can be run any number of times in one process, one run after the other.
//!
//! Each run starts fresh: `init` returns the resources, and locals declared in place have their
//! initial values again.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    for name in ["first", "second"] {
        println!("the {name} run");
        let report = app::run(Config::from_env(), name)?;
        println!("the {name} run: {} after {} jobs", report.outcome, report.tasks[0].jobs);
    }
    Ok(())
}

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        total: u32,
    }

    #[local]
    struct Local {
        name: &'static str,
    }

    #[init]
    fn init(_: init::Context, name: &'static str) -> (Shared, Local) {
        count::spawn().unwrap();
        (Shared { total: 0 }, Local { name })
    }

    #[task(shared = [total], local = [name, calls: u32 = 0])]
    fn count(mut cx: count::Context) {
        *cx.local.calls += 1;
        let total = cx.shared.total.lock(|total| {
            *total += 10;
            *total
        });
        println!("{}: calls = {}, total = {total}", cx.local.name, cx.local.calls);
        if *cx.local.calls == 2 {
            punctual::shutdown();
        } else {
            count::spawn().unwrap();
        }
    }
}
