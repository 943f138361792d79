//! A periodic task is released by the clock, on a grid that does not drift.
//!
//! `released` is the nominal time of a job's release: the origin of the grid plus a whole number of
//! periods, regardless of the job's actual start and length. So the differences are exact.

// ANCHOR: app
#[punctual::app]
mod app {
    use punctual::Instant;
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(period = 50.millis(), local = [first: Option<Instant> = None])]
    fn sample(cx: sample::Context) {
        let first = *cx.local.first.get_or_insert(cx.released);
        let after = cx.released - first;
        println!("released {} ms after the first", after.as_millis());
        assert!(punctual::now() >= cx.released, "no job begins before its release");
        punctual::spend(1.millis());
        if after >= 150.millis() {
            punctual::shutdown();
        }
    }
}
