//! A message task that spawns itself on a grid: periodic, but only as long as it chooses.
//!
//! Each job gets its nominal release and computes the next from it, not from `now()`, so lateness
//! does not accumulate. The period grows from job to job, which `period = …` cannot do.

#[punctual::app]
mod app {
    use punctual::Instant;
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        start: Instant,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let start = punctual::now();
        step::spawn_at(start, start, 5).unwrap();
        (Shared {}, Local { start })
    }

    #[task(local = [start])]
    fn step(cx: step::Context, planned: Instant, pause: u64) {
        println!("at {} ms", (planned - *cx.local.start).as_millis());
        if pause > 20 {
            return punctual::shutdown();
        }
        let next = planned + pause.millis();
        step::spawn_at(next, next, 2 * pause).unwrap();
    }
}
