//! Tasks of 1, 2 and 5 ms that share a resource, with bounds on their response times worked out by hand.
//!
//! | task | T | C | B | R at most |
//! |---|---|---|---|---|
//! | `high` | 1 ms | 100 µs | 100 µs, while `low` has the resource | C + B = 200 µs |
//! | `middle` | 2 ms | 200 µs | 100 µs, by the same critical section: its ceiling is above | C + B + 100 µs of `high` = 400 µs |
//! | `low` | 5 ms | 800 µs | none: nobody is below | C + 2 · 100 µs of `high` + 200 µs of `middle` = 1200 µs |
//!
//! All releases come at multiples of 1 ms. So that one of them meets the critical section when it has just begun, `low` comes to it
//! at another time in each job, and all of them take the same.
//!
//! On threads of the kernel there is more: the kernel's timer, its switches, interrupts, and what the executor itself takes. How much,
//! and with what it adds up to bounds, is found out by running it:
//!
//! ```text
//! cargo build --release --example response_bounds
//! JOBS=1000 punctual rta -- target/release/examples/response_bounds
//! ```
//!
//! The argument is how many jobs of `low` there are, 100 if it is left out.

#[punctual::app(profile)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        data: u32,
    }

    #[local]
    struct Local {
        /// How many jobs of `low` there are to be, and how many there were.
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

    /// Here, since a job that prints waits for whoever shows it.
    #[shutdown(local = [jobs])]
    fn shutdown(cx: shutdown::Context) {
        println!("{} jobs of `low`", cx.local.jobs);
    }
}
