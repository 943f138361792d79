//! Candidates that alternate in short windows.
//!
//! Disturbances by the machine, such as the migration of a virtual CPU, affect all alike; the
//! result is the ratio of neighboring windows. No window is dropped.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const WINDOWS: usize = 41;
/// The subject of a candidate's row.
const OURS: &str = "punctual-sync";

/// Runs one window; returns nanoseconds per item.
pub(crate) type Window = fn() -> f64;

/// A comparison: the candidate, and the peer whose time it should not exceed by more than the
/// `goal`.
pub(crate) struct Pair {
    pub(crate) what: &'static str,
    pub(crate) goal: f64,
    /// The window of `punctual-sync`.
    pub(crate) candidate: Window,
    pub(crate) peer: (&'static str, Window),
    /// `true` if the comparison involves two CPUs.
    pub(crate) crosses: bool,
    /// Operations in a window.
    pub(crate) operations: u64,
}

/// Compares all pairs `runs` times, and prints each run, and the number of runs in which each goal
/// was met.
///
/// A run's ratio is the median of the ratios of its neighboring windows.
pub(crate) fn compare(pairs: &[Pair], runs: usize) {
    let mut ratios = vec![Vec::new(); pairs.len()];
    for run in 1..=runs {
        for (pair, ratios) in pairs.iter().zip(&mut ratios) {
            println!("{}, run {run}", pair.what);
            ratios.push(pair.run().ratio);
        }
    }
    println!("\nratios to the peer over {runs} runs");
    for (pair, ratios) in pairs.iter().zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        let met = ratios.iter().filter(|&&ratio| ratio <= pair.goal).count();
        println!(
            "  {:<44} max {:.3}   median {:.3}   min {:.3}   at most {} in {met} of {runs}",
            pair.what,
            ratios[runs - 1],
            ratios[runs / 2],
            ratios[0],
            pair.goal
        );
    }
}

/// Compares all pairs once; returns a suite in the format of `punctual bench --json`.
pub(crate) fn suite(pairs: &[Pair]) -> String {
    let mut rows = Vec::new();
    for pair in pairs {
        println!("{}", pair.what);
        let run = pair.run();
        for (subject, times) in [(OURS, run.ours), (pair.peer.0, run.peers)] {
            rows.push(format!(
                r#"{{"operation":"{}","subject":"{subject}","operations_per_sample":{},"figures":{{"max_ns":{},"p50_ns":{}}}}}"#,
                pair.what,
                pair.operations,
                times[WINDOWS - 1],
                times[WINDOWS / 2]
            ));
        }
    }
    format!(r#"{{"name":"cells","rows":[{}]}}"#, rows.join(","))
}

/// The windows of a run, in ns per item and sorted, and the median of the ratios.
struct Run {
    ours: Vec<f64>,
    peers: Vec<f64>,
    ratio: f64,
}

impl Pair {
    /// Runs all windows, and prints ns per item of both.
    fn run(&self) -> Run {
        let (mut lines, mut ours, mut peers) = (Vec::new(), Vec::new(), Vec::new());
        for window in 0..WINDOWS {
            if self.crosses {
                lines.push(cache_line());
            }
            // The order alternates, so that neither always finds the caches that the other left.
            if window % 2 == 0 {
                ours.push((self.candidate)());
                peers.push(self.peer.1());
            } else {
                peers.push(self.peer.1());
                ours.push((self.candidate)());
            }
        }
        let mut ratios: Vec<f64> = ours.iter().zip(&peers).map(|(own, peer)| own / peer).collect();
        if self.crosses {
            print_spread("a cache line, one way", &mut lines);
        }
        print_spread(OURS, &mut ours);
        print_spread(self.peer.0, &mut peers);
        ratios.sort_by(f64::total_cmp);
        let ratio = ratios[WINDOWS / 2];
        println!("  {:<24} {ratio:.3}", "median of the ratios");
        Run { ours, peers, ratio }
    }
}

fn print_spread(name: &str, times: &mut [f64]) {
    times.sort_by(f64::total_cmp);
    let (max, median, min) = (times[times.len() - 1], times[times.len() / 2], times[0]);
    println!("  {name:<24} max {max:7.1}   median {median:6.2}   min {min:6.2}");
}

/// Returns the mean time of an operation that is repeated `times` times on this thread, in
/// nanoseconds.
pub(crate) fn repeated<T>(times: u64, mut what: impl FnMut() -> T) -> f64 {
    let begin = Instant::now();
    for _ in 0..times {
        black_box(what());
    }
    begin.elapsed().as_nanos() as f64 / times as f64
}

/// Runs `there` on another CPU and `here` on this one, started together; returns the time until
/// both have ended, in nanoseconds.
pub(crate) fn together(there: impl FnOnce() + Send, here: impl FnOnce()) -> f64 {
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            pin(1);
            start.wait();
            there();
        });
        start.wait();
        let begin = Instant::now();
        here();
        other.join().unwrap();
        begin.elapsed().as_nanos() as f64
    })
}

/// Pins the thread to one CPU, if the machine has that many; otherwise the figures mean less, but
/// stay comparable.
pub(crate) fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        eprintln!("cannot pin a thread to CPU {cpu}: {error}");
    }
}

/// Repeats `attempt` until it succeeds. Lets other programs run now and then: the machine may be
/// shared.
pub(crate) fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut turns = 0_u32;
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        spin_loop();
        turns += 1;
        if turns.is_multiple_of(10_000) {
            std::thread::yield_now();
        }
    }
}

/// Measures the one-way time of a cache line from one CPU to the other, in nanoseconds.
fn cache_line() -> f64 {
    const TURNS: u32 = 20_000;
    let line = AtomicU32::new(0);
    let answer = || {
        for turn in 0..TURNS {
            until(|| (line.load(Ordering::Acquire) == 2 * turn + 1).then_some(()));
            line.store(2 * turn + 2, Ordering::Release);
        }
    };
    let ask = || {
        for turn in 0..TURNS {
            line.store(2 * turn + 1, Ordering::Release);
            until(|| (line.load(Ordering::Acquire) == 2 * turn + 2).then_some(()));
        }
    };
    together(answer, ask) / f64::from(2 * TURNS)
}
