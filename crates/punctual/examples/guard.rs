//! The guard names the task that allocates, the call and the stack.
//!
//! The vector has a capacity of four samples, so the mistake would not show in the first jobs.
//! `alarm` is correct: `log!` does not allocate, and neither does a spawn.

use punctual::StartError;
use punctual::config::{Config, Guard};
use punctual::guard::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::system();

fn main() -> Result<(), StartError> {
    // In a program with a generated `main`: PUNCTUAL_GUARD=report.
    let report = app::run(Config::from_env().guard(Guard::Report))?;
    for task in &report.tasks {
        for finding in &task.findings {
            println!("{}: {} × {}", task.name, finding.count, finding.call);
            // The whole stack is in the report that `println!("{report}")` prints.
            let is_named = finding.stack.iter().any(|frame| frame.contains("push"));
            println!("the stack names `push`: {is_named}");
        }
    }
    Ok(())
}

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        samples: Vec<u32>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { samples: Vec::with_capacity(4) })
    }

    #[task(priority = 2, period = 1.millis(), local = [samples])]
    fn sample(cx: sample::Context) {
        if cx.local.samples.len() < 5 {
            cx.local.samples.push(7);
        } else {
            let _ = alarm::spawn();
        }
    }

    #[task(priority = 1)]
    fn alarm(_: alarm::Context) {
        punctual::log!(Warn, "that is enough");
        punctual::shutdown();
    }
}
