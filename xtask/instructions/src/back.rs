//! An app in which each job spawns one of a higher level, which runs as a call and spawns the next
//! one of the lower level. Apart from the other apps, whose driver would have other registers.

use std::time::Duration;

use punctual::Config;

use crate::apps::Operation;

/// Performs this operation `iterations` times. The time is unknown.
pub(crate) fn measure(config: Config, _: Operation, iterations: u64) -> Duration {
    app::run(config, iterations).expect("the app starts");
    Duration::ZERO
}

#[punctual::app(main = false, monitor = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, iterations: u64) -> (Shared, Local) {
        down::spawn(iterations).expect("it is spawned once");
        (Shared {}, Local {})
    }

    #[task(priority = 1, capacity = 4)]
    fn down(_: down::Context, left: u64) {
        match left {
            0 => punctual::shutdown(),
            left => up::spawn(left).expect("it runs at once"),
        }
    }

    #[task(priority = 2)]
    fn up(_: up::Context, left: u64) {
        down::spawn(left - 1).expect("one job waits at a time");
    }
}
