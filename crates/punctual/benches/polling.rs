//! Measures the latency of a spawn into a polling partition on another CPU, in comparison with the
//! transfer of a cache line.
//!
//! `cargo bench -p punctual --bench polling`. Two round-trip operations, in short alternating
//! windows, so that other load of the machine affects both:
//!
//! * *line*: one thread stores a number; the other waits for it and stores it in a second location,
//!   which the first waits for. Half of it is the minimum latency of any message between two CPUs.
//! * *spawn*: one thread spawns a job in the polling partition, and the job stores its argument in
//!   the location that the first waits for. Minus the way back, which is half a *line*, it is the
//!   time from the call of `spawn` to the job's first instruction.
//!
//! Both sides of *line* are jobs too, on the same threads and CPUs. The first line of the output is
//! the maximum ratio of all windows; no window is excluded.

use std::process::ExitCode;
use std::sync::mpsc::channel;

const WINDOWS: usize = 400;
const ROUNDS: u64 = 2_000;

fn main() -> ExitCode {
    // The arguments that cargo passes, `--bench` and filters, are ignored.
    let (answer, results) = channel();
    match app::run(punctual::Config::new(), answer) {
        Ok(report) if report.exit_code() == 0 => {
            show(&results.recv().expect("the driver answers"));
            ExitCode::SUCCESS
        }
        Ok(report) => {
            eprintln!("{report}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// One window of each, in ns per round trip.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    line: f64,
    spawn: f64,
}

impl Window {
    fn line(self) -> f64 {
        self.line / 2.0
    }

    fn spawn(self) -> f64 {
        self.spawn - self.line / 2.0
    }

    fn ratio(self) -> f64 {
        self.spawn() / self.line()
    }
}

fn show(windows: &[Window]) {
    let row = |name: &str, of: fn(Window) -> f64, unit: &str| {
        let mut values: Vec<f64> = windows.iter().map(|&window| of(window)).collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[(share * (values.len() - 1) as f64) as usize];
        println!(
            "{name:36} max {:8.1}{unit}  p99 {:7.1}{unit}  p50 {:6.1}{unit}  min {:6.1}{unit}",
            at(1.0),
            at(0.99),
            at(0.5),
            at(0.0)
        );
    };
    println!("{} windows of {ROUNDS} rounds each", windows.len());
    row("spawn : line", Window::ratio, "  ");
    row("line, one way", Window::line, " ns");
    row("spawn to run, other CPU, polling", Window::spawn, " ns");
}

#[punctual::app(partitions = [caller, fast(poll)], main = false, monitor = false)]
mod app {
    use std::hint::spin_loop;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::Sender;
    use std::time::Instant;

    use super::{ROUNDS, WINDOWS, Window};

    #[repr(align(128))]
    struct Line(AtomicU64);

    static THERE: Line = Line(AtomicU64::new(0));
    static BACK: Line = Line(AtomicU64::new(0));

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        answer: Sender<Vec<Window>>,
        windows: Vec<Window>,
    }

    #[init]
    fn init(_: init::Context, answer: Sender<Vec<Window>>) -> (Shared, Local) {
        window::spawn().expect("it is spawned once");
        (Shared {}, Local { answer, windows: Vec::with_capacity(WINDOWS) })
    }

    /// Waits until `line` holds `value`.
    fn wait_for(line: &Line, value: u64) {
        while line.0.load(Ordering::Acquire) != value {
            spin_loop();
        }
    }

    fn there_and_back(mut there: impl FnMut(u64)) -> f64 {
        let start = Instant::now();
        for round in 1..=ROUNDS {
            there(round);
            wait_for(&BACK, round);
        }
        let took = start.elapsed();
        BACK.0.store(0, Ordering::Relaxed);
        took.as_nanos() as f64 / ROUNDS as f64
    }

    /// One window of each. In between, other threads get the CPU, because this is a real-time
    /// thread.
    #[task(core = caller, local = [answer, windows])]
    fn window(cx: window::Context) {
        THERE.0.store(0, Ordering::Relaxed);
        // Both sides are ready before the clock is read.
        land::spawn(u64::MAX).expect("it has landed");
        wait_for(&BACK, u64::MAX);
        echo::spawn().expect("it has ended");
        let line = there_and_back(|round| THERE.0.store(round, Ordering::Release));
        let spawn = there_and_back(|round| land::spawn(round).expect("it has landed"));
        cx.local.windows.push(Window { line, spawn });
        if cx.local.windows.len() < WINDOWS {
            let pause = punctual::Duration::from_millis(2);
            window::spawn_after(pause).expect("the last has ended");
            return;
        }
        cx.local.answer.send(std::mem::take(cx.local.windows)).expect("the bench waits for it");
        punctual::shutdown();
    }

    #[task(core = fast)]
    fn echo(_: echo::Context) {
        for round in 1..=ROUNDS {
            wait_for(&THERE, round);
            BACK.0.store(round, Ordering::Release);
        }
    }

    #[task(core = fast, capacity = 2)]
    fn land(_: land::Context, round: u64) {
        BACK.0.store(round, Ordering::Release);
    }
}
