//! Tasks of 1, 2 and 5 ms that share a resource, with bounds on their response times derived by
//! hand.
//!
//! | task | T | C | B | R at most |
//! |---|---|---|---|---|
//! | `high` | 1 ms | 100 µs | 100 µs, while `low` has the resource | C + B = 200 µs |
//! | `middle` | 2 ms | 200 µs | 100 µs, by the same critical section: its ceiling is above | C + B + 100 µs of `high` = 400 µs |
//! | `low` | 5 ms | 800 µs | none: no task is below | C + 2 · 100 µs of `high` + 200 µs of `middle` = 1200 µs |
//!
//! All releases are at multiples of 1 ms. So that one of them coincides with the start of the
//! critical section, `low` enters it at a different time in each job, with the same total execution
//! time.
//!
//! On threads of the kernel there are further costs: the kernel's timer, its context switches,
//! interrupts, and the executor itself. To measure them and compute the bounds, run:
//!
//! ```text
//! cargo build --release --example response_bounds
//! JOBS=1000 punctual rta -- target/release/examples/response_bounds
//! ```
//!
//! `JOBS` is the number of jobs of `low`, 100 by default.

#[punctual::app(profile)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        data: u32,
    }

    #[local]
    struct Local {
        /// Number of jobs of `low`, and number so far.
        most: u32,
        jobs: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let most = std::env::var("JOBS").map_or(100, |jobs| jobs.parse().expect("JOBS is a number"));
        (Shared { data: 0 }, Local { most, jobs: 0 })
    }

    #[task(priority = 3, period = 1.millis(), shared = [data])]
    fn high(mut cx: high::Context) {
        cx.shared.data.lock(|data| *data += 1);
        punctual::spend(100.micros());
    }

    #[task(priority = 2, period = 2.millis())]
    fn middle(_: middle::Context) {
        punctual::spend(200.micros());
    }

    #[task(priority = 1, period = 5.millis(), shared = [data], local = [most, jobs])]
    fn low(mut cx: low::Context) {
        let before = 500 + u64::from(3 * *cx.local.jobs % 200);
        punctual::spend(before.micros());
        cx.shared.data.lock(|_| punctual::spend(100.micros()));
        punctual::spend((700 - before).micros());
        *cx.local.jobs += 1;
        if cx.local.jobs == cx.local.most {
            punctual::shutdown();
        }
    }

    /// Here, because a job that prints waits for the output.
    #[shutdown(local = [jobs])]
    fn shutdown(cx: shutdown::Context) {
        println!("{} jobs of `low`", cx.local.jobs);
    }
}
