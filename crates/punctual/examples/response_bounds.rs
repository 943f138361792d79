//! Tasks of 1, 2 and 5 ms that share a resource, with bounds on their response times worked out by hand.
//!
//! | task | T | C | B | R at most |
//! |---|---|---|---|---|
//! | `high` | 1 ms | 100 µs | 100 µs, while `low` has the resource | C + B = 200 µs |
//! | `middle` | 2 ms | 200 µs | 100 µs, by the same critical section: its ceiling is above | C + B + 100 µs of `high` = 400 µs |
//! | `low` | 5 ms | 500 µs | none: nobody is below | C + 100 µs of `high` + 200 µs of `middle` = 800 µs |
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
        punctual::spend(300.micros());
        cx.shared.data.lock(|_| punctual::spend(100.micros()));
        punctual::spend(100.micros());
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
