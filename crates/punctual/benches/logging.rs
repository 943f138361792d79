//! Measures the cost of a `punctual::log!` record: 200 in sequence in a job, with three arguments
//! each, 150 times.
//!
//! `cargo bench -p punctual --bench logging`. The job reads the clock twice for all of its records,
//! and each record reads it once.

use std::hint::black_box;
use std::sync::Mutex;

use log::{LevelFilter, Log, Metadata, Record};
use punctual::Config;

const JOBS: u32 = 150;
/// As many as fit into the ring, so that none is lost.
const RECORDS: u32 = 200;

/// Time per record in each job, in ns.
static TIMES: Mutex<Vec<f64>> = Mutex::new(Vec::new());

/// Formats, and discards the result.
struct Formatting;

impl Log for Formatting {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        black_box(record.args().to_string());
    }

    fn flush(&self) {}
}

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        count: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        super::TIMES.lock().unwrap().reserve(super::JOBS as usize);
        (Shared {}, Local { count: 0 })
    }

    #[task(priority = 1, period = 20.millis(), local = [count])]
    fn job(cx: job::Context) {
        let start = punctual::now();
        for number in 0..super::RECORDS {
            punctual::log!(Info, "sample {number}: {:.3} {}", 0.25_f32, *cx.local.count);
        }
        let took = punctual::now().as_ticks() - start.as_ticks();
        super::TIMES.lock().unwrap().push(took as f64 / f64::from(super::RECORDS));
        *cx.local.count += 1;
        if *cx.local.count == super::JOBS {
            punctual::shutdown();
        }
    }
}

fn main() {
    log::set_logger(&Formatting).expect("there is no other");
    log::set_max_level(LevelFilter::Info);
    drop(app::run(Config::new()).expect("it can be started"));
    let mut times = TIMES.lock().unwrap().clone();
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!(
        "a record: min {:.1} ns, median {:.1} ns, 90 % below {:.1} ns, max {:.1} ns, of {} jobs",
        at(0),
        at(50),
        at(90),
        at(100),
        times.len()
    );
}
