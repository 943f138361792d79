//! Generated traces, and measurement and output of runs over them.
// Each benchmark uses a part of it.
#![allow(unreachable_pub, dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use punctual_trace::event::{Event, Kind, SwitchOut, Task};
use punctual_trace::write::{dat, synthetic::Synthetic};

pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Returns the arguments without `--bench`, which cargo passes.
pub fn arguments() -> Vec<String> {
    std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect()
}

/// Runs a benchmark with its own directory, which is removed afterwards.
pub fn in_a_directory(name: &str, run: impl FnOnce(&Path) -> Outcome<()>) -> ExitCode {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let result = fs::create_dir_all(&place).map_err(Into::into).and_then(|()| run(&place));
    let removed = fs::remove_dir_all(&place);
    match result.and(removed.map_err(Into::into)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Length of a round of [`Scene::Rounds`], in ns.
pub const ROUND: u64 = 110_000;

/// Contents of a generated trace. Both have events of the scheduler and of interrupts only.
#[derive(Clone, Copy)]
pub enum Scene {
    /// On each CPU ordinary threads take turns, and timer and device interrupts wake real-time
    /// threads, in rounds.
    Rounds,
    /// Random events of all these kinds: for readers, which do not depend on the plausibility of
    /// the schedule.
    Random,
}

impl Scene {
    /// Returns its events on `cpus` CPUs, without end.
    pub fn events(self, cpus: u16) -> Box<dyn Iterator<Item = Event>> {
        match self {
            Self::Rounds => Box::new(rounds(cpus)),
            Self::Random => Box::new(random(cpus)),
        }
    }
}

fn rounds(cpus: u16) -> impl Iterator<Item = Event> {
    (0..u32::MAX).flat_map(move |number| {
        let mut events = Vec::new();
        for cpu in 0..cpus {
            // Each CPU is ahead of the next, so that their events mix.
            let ahead = u64::from(cpu) * 7_000 % (ROUND - 82_000);
            round(&mut events, u64::from(number) * ROUND + ahead, cpu, number);
        }
        events.sort_by_key(|event| event.time);
        events
    })
}

/// Appends a round of a CPU: 12 to 16 events within 82 µs.
fn round(events: &mut Vec<Event>, start: u64, cpu: u16, round: u32) {
    let base = 1000 + u32::from(cpu) * 100;
    let idle = Task { id: 0, priority: 120 };
    let worker = Task { id: base + round % 37, priority: 120 };
    let control = Task { id: base + 50 + round % 5, priority: 20 };
    let mut at =
        |offset: u64, by: Task, kind| events.push(Event { time: start + offset, cpu, by: by.id, kind });
    at(0, idle, Kind::Waking { task: worker, cpu });
    at(400, idle, Kind::Wakeup { task: worker, cpu, new: false });
    at(2_000, idle, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: worker });
    at(10_000, worker, Kind::VectorEntry { vector: 236 });
    at(11_000, worker, Kind::Waking { task: control, cpu });
    at(11_300, worker, Kind::Wakeup { task: control, cpu, new: false });
    at(12_000, worker, Kind::VectorExit { vector: 236 });
    at(13_000, worker, Kind::Switch { from: worker, reason: SwitchOut::Runnable, to: control });
    if round.is_multiple_of(3) {
        at(20_000, control, Kind::IrqEntry { irq: 24 });
        at(21_000, control, Kind::IrqExit { irq: 24 });
        at(21_200, control, Kind::SoftirqEntry { softirq: 3 });
        at(24_000, control, Kind::SoftirqExit { softirq: 3 });
    }
    at(40_000, control, Kind::Switch { from: control, reason: SwitchOut::Sleeping, to: worker });
    at(70_000, worker, Kind::Switch { from: worker, reason: SwitchOut::Sleeping, to: idle });
    at(80_000, idle, Kind::IrqEntry { irq: 30 });
    at(81_000, idle, Kind::IrqExit { irq: 30 });
}

fn random(cpus: u16) -> impl Iterator<Item = Event> {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let mut time = 1_000_000_000;
    let mut running = vec![Task { id: 0, priority: 120 }; usize::from(cpus)];
    std::iter::repeat_with(move || {
        let cpu = random(cpus.into()) as u16;
        let from = running[usize::from(cpu)];
        let thread = 8 * u32::from(cpu) + random(8) as u32;
        let task = Task { id: 100 + thread, priority: 40 + (thread % 8) as i32 };
        let target = random(cpus.into()) as u16;
        let kinds: &[Kind] = match random(4) {
            0 => &[
                Kind::VectorEntry { vector: 236 },
                Kind::SoftirqEntry { softirq: 1 },
                Kind::SoftirqExit { softirq: 1 },
                Kind::VectorExit { vector: 236 },
            ],
            1 => &[Kind::IrqEntry { irq: 24 }, Kind::Waking { task, cpu: target }, Kind::IrqExit { irq: 24 }],
            _ => &[
                Kind::Waking { task, cpu },
                Kind::Wakeup { task, cpu, new: false },
                Kind::Switch { from, reason: SwitchOut::Sleeping, to: task },
            ],
        };
        let mut events = Vec::with_capacity(kinds.len());
        for &kind in kinds {
            time += 100 + random(2_000);
            events.push(Event { time, cpu, by: running[usize::from(cpu)].id, kind });
            if let Kind::Switch { to, .. } = kind {
                running[usize::from(cpu)] = to;
            }
        }
        events
    })
    .flatten()
}

/// Writes a trace of `count` events next to `name`, and returns the file.
pub fn write(name: &Path, scene: Scene, count: u64, cpus: u16) -> Outcome<PathBuf> {
    let (directory, file) = (name.with_extension("raw"), name.with_extension("dat"));
    record(&directory, scene, count, cpus)?;
    dat::write(&directory, &file)?;
    fs::remove_dir_all(&directory)?;
    Ok(file)
}

/// Writes a trace of `count` events as kernel pages.
pub fn record(directory: &Path, scene: Scene, count: u64, cpus: u16) -> Outcome<()> {
    let mut synthetic = Synthetic::create(directory)?;
    for thread in 100..1000 + 100 * u32::from(cpus) {
        synthetic.name(thread, &format!("worker {thread}"));
    }
    for event in scene.events(cpus).take(usize::try_from(count)?) {
        synthetic.push(&event)?;
    }
    Ok(synthetic.finish()?)
}

/// Number of events, wall-clock time in s, and CPU time in s.
pub type Run = (u64, f64, f64);

/// Measures a function that returns a number of events.
pub fn timed<E>(work: impl FnOnce() -> Result<u64, E>) -> Result<Run, E> {
    let cpu = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let (start, before) = (Instant::now(), cpu());
    let count = work()?;
    Ok((count, start.elapsed().as_secs_f64(), cpu() - before))
}

/// Prints the rates of some runs.
pub fn show(name: &str, runs: &[Run]) {
    let sorted = |of: fn(&Run) -> f64| {
        let mut rates: Vec<f64> = runs.iter().map(|run| run.0 as f64 / of(run) / 1e6).collect();
        rates.sort_by(f64::total_cmp);
        rates
    };
    let (rates, cpu) = (sorted(|run| run.1), sorted(|run| run.2));
    let middle = rates.len() / 2;
    print!("{name:42} slowest {:6.2} M events/s, median {:6.2}", rates[0], rates[middle]);
    match cpu[0].is_nan() {
        true => println!(),
        false => println!(
            "; by CPU time slowest {:6.2}, median {:6.2}, best {:6.2}",
            cpu[0],
            cpu[middle],
            cpu[cpu.len() - 1]
        ),
    }
}

/// Returns the peak memory of this process, in MB.
pub fn peak_memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}
