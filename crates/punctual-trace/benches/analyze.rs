//! Measures the whole analysis of a trace on one thread: reading, translation, merging, and
//! decomposition into jobs.
//!
//!     cargo bench -p punctual-trace --bench analyze [-- MILLIONS [TRACE.DAT]]
//!
//! The trace is the one that `--bench decompose` decomposes, as a file, of 20 million events by
//! default. It takes about 40 bytes per event twice, in cargo's directory for temporary files, and
//! is removed. A file given as the last argument is analyzed as well. The slowest of five runs
//! comes first; the rate in CPU time excludes the time that the machine spent on other processes.

mod traces;

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use punctual_trace::event::Event;
use punctual_trace::jobs::{Config, Decomposer};
use punctual_trace::read::Trace;
use punctual_trace::stats::Watch;

use self::traces::{Outcome, Run, Scene, peak_memory, show, timed};

const ROUNDS: usize = 5;
const CPUS: u16 = 4;

fn main() -> ExitCode {
    let arguments = traces::arguments();
    let millions: u64 = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(20);
    traces::in_a_directory("analyze", |place| {
        run(place, millions * 1_000_000, arguments.get(1).map(Path::new))
    })
}

fn run(place: &Path, count: u64, real: Option<&Path>) -> Outcome<()> {
    let file = traces::write(&place.join("rounds"), Scene::Rounds, count, CPUS)?;
    analyze("generated", &file)?;
    if let Some(real) = real {
        analyze(&real.display().to_string(), real)?;
    }
    println!("{:42} {:8.1} MB", "peak memory", peak_memory());
    Ok(())
}

fn analyze(name: &str, file: &Path) -> Outcome<()> {
    let threads = Config::default();
    let handlers = Config { handlers: true, ..Config::default() };
    let mut runs: [Vec<Run>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let mut last = 0;
        runs[0].push(each(file, |event| last = event.time.max(last))?);
        black_box(last);
        for (config, runs) in [&threads, &handlers].into_iter().zip(&mut runs[1..]) {
            let mut decomposer = Decomposer::new(config.clone());
            let mut jobs = 0_u64;
            runs.push(each(file, |event| {
                decomposer.feed(event, &mut |job| jobs += u64::from(black_box(job).complete()));
            })?);
        }
        let mut watch = Watch::new(threads.clone(), 10);
        runs[3].push(each(file, |event| watch.feed(event, &mut |_| {}, &mut |_| {}))?);
    }
    let count = runs[0][0].0;
    let size = fs::metadata(file)?.len();
    println!("{name}: {count} events, {:.1} bytes each", size as f64 / count as f64);
    let names = [
        "read, translate, merge",
        "… and decompose into jobs of threads",
        "… and of handlers",
        "… with statistics and the worst 10 whole",
    ];
    for (name, runs) in names.iter().zip(&runs) {
        show(name, runs);
    }
    Ok(())
}

/// Reads the file and calls `act` with every event.
fn each(file: &Path, mut act: impl FnMut(&Event)) -> Outcome<Run> {
    timed(|| {
        let mut count = 0;
        let mut events = Trace::open(file)?.events()?;
        while let Some(run) = events.next_run() {
            let run = run?;
            run.iter().for_each(&mut act);
            count += run.len() as u64;
        }
        Ok(count)
    })
}
