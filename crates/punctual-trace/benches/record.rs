//! Measures the cost and the losses of recording.
//!
//! `cargo bench -p punctual-trace --bench record [-- SECONDS]`, on machines with usable tracefs.
//! Pairs of threads, one on each CPU, wake each other while all default groups except system calls
//! are recorded into cargo's directory for temporary files: once at about 200 000 events per
//! second, once at full speed. The recorder's threads report their own CPU time; the kernel's cost
//! of generating the events is not included.

mod load;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use load::{BURSTS, drain_time, pair};
use punctual_trace::record::{Config, Group, Recording};

fn main() -> ExitCode {
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(5);
    let place =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("record-bench-{}", std::process::id()));
    let time = Duration::from_secs(seconds);
    let result = [Some(200_000), None].into_iter().try_for_each(|rate| run(&place, time, rate));
    let _ = fs::remove_dir_all(&place);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(place: &std::path::Path, time: Duration, rate: Option<u64>) -> Result<(), Box<dyn std::error::Error>> {
    let without = [Group::Sched, Group::Irq, Group::Vectors, Group::Softirq, Group::Timer, Group::Lock];
    let config = Config { groups: without.to_vec(), ..Config::default() };
    let recording = Recording::start(config, place)?;
    let stop = Arc::new(AtomicBool::new(false));
    let cpus = std::thread::available_parallelism()?.get();
    let burst = rate.map_or(usize::MAX, |rate| (rate / TURN_EVENTS / BURSTS) as usize / cpus);
    let pairs: Vec<_> = (0..cpus).flat_map(|cpu| pair(cpu, burst, stop.clone(), Arc::default())).collect();
    let start = Instant::now();
    sleep(time);
    let spent = drain_time();
    let elapsed = start.elapsed().as_secs_f64();
    // Relaxed: the threads end when they see it, at any later time.
    stop.store(true, Ordering::Relaxed);
    let summary = recording.stop()?;
    for thread in pairs {
        thread.join().map_err(|_| "a thread of the load panicked")?;
    }
    let (read, lost) = summary.losses.iter().fold((0, 0), |sum, cpu| (sum.0 + cpu.read, sum.1 + cpu.lost));
    println!(
        "{:.0} events/s of {:.1} bytes, {lost} lost",
        read as f64 / elapsed,
        summary.bytes as f64 / read as f64
    );
    println!(
        "{:.2} % of a CPU to move them, {:.0} ns for each",
        100.0 * spent / elapsed,
        spent * 1e9 / read as f64
    );
    Ok(())
}

/// Events of one turn in both directions: for each of two wake-ups three events of the scheduler,
/// and some for locks.
const TURN_EVENTS: u64 = 7;
