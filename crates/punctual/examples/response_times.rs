//! virtual-only: the times have to be exact
//! one-cpu: the analysis is that of tasks that share a CPU
//!
//! Simulated response times equal those of response-time analysis.
//!
//! All three tasks are released at 0, the worst case. `slow` starts after the others, at 8 ms, is
//! preempted by `fast` at 10 ms, and ends at 19 ms. The analysis gives the same: R is the least
//! solution of R = C + Σ ⌈R / T⌉ C over the tasks above. Shorter periods have higher levels, as in
//! rate-monotonic priority assignment.

use punctual::{Config, Duration, StartError};

/// Name, period and execution time in ms, highest level first.
const TASKS: [(&str, u64, u64); 3] = [("fast", 10, 3), ("medium", 20, 5), ("slow", 40, 8)];

fn analyzed(number: usize) -> u64 {
    let own = TASKS[number].2;
    let mut response = own;
    loop {
        let above = TASKS[..number].iter().map(|(_, period, own)| response.div_ceil(*period) * own);
        match own + above.sum::<u64>() {
            next if next == response => return response,
            next => response = next,
        }
    }
}

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time().until(Duration::from_secs(1)))?;
    for (number, (name, ..)) in TASKS.iter().enumerate() {
        let task = report.task(name).expect("every task is reported");
        let simulated = task.response.max / 1_000_000;
        println!("{name}: analyzed {} ms, simulated {simulated} ms", analyzed(number));
        assert_eq!(simulated, analyzed(number));
        assert_eq!(task.misses, 0);
    }
    Ok(())
}

#[punctual::app(main = false)]
mod app {
    use punctual::Instant;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(priority = 3, period = 10.millis(), execution = 3.millis(), local = [jobs: u32 = 0])]
    fn fast(cx: fast::Context) {
        first("fast", cx.local.jobs, cx.released);
    }

    #[task(priority = 2, period = 20.millis(), execution = 5.millis(), local = [jobs: u32 = 0])]
    fn medium(cx: medium::Context) {
        first("medium", cx.local.jobs, cx.released);
    }

    #[task(priority = 1, period = 40.millis(), execution = 8.millis(), local = [jobs: u32 = 0])]
    fn slow(cx: slow::Context) {
        first("slow", cx.local.jobs, cx.released);
    }

    fn first(name: &str, jobs: &mut u32, released: Instant) {
        *jobs += 1;
        if *jobs == 1 {
            let [released, started] =
                [released, punctual::now()].map(|time| time.duration_since_epoch().as_millis());
            println!("{name}: released at {released} ms, started at {started} ms");
        }
    }
}
