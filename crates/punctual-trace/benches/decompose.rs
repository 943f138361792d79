//! How many events a second the decomposer takes, on one thread and by itself, in its CPU time.
//!
//!     cargo bench -p punctual-trace --bench decompose [-- MILLIONS]
//!
//! The trace is generated: on each of 4 CPUs ordinary threads take turns, and timer and device interrupts wake real-time
//! threads, whose jobs are wanted. Only sched and irq events, 20 million of them if not said otherwise.

use std::hint::black_box;

use punctual_trace::event::{Event, Kind, Left, Task};
use punctual_trace::jobs::{Config, Decomposer};
use punctual_trace::stats::Watch;

const CPUS: u16 = 4;

/// One round of a CPU: 12 to 16 events within 100 µs.
fn round(events: &mut Vec<Event>, start: u64, cpu: u16, round: u32) {
    let base = 1000 + u32::from(cpu) * 100;
    let idle = Task { id: 0, priority: 120 };
    let worker = Task { id: base + round % 37, priority: 120 };
    let control = Task { id: base + 50 + round % 5, priority: 20 };
    let mut at =
        |offset: u64, by: Task, kind| events.push(Event { time: start + offset, cpu, by: by.id, kind });
    at(0, idle, Kind::Waking { task: worker, cpu });
    at(400, idle, Kind::Wakeup { task: worker, cpu, new: false });
    at(2_000, idle, Kind::Switch { from: idle, left: Left::Runnable, to: worker });
    at(10_000, worker, Kind::VectorEntry { vector: 236 });
    at(11_000, worker, Kind::Waking { task: control, cpu });
    at(11_300, worker, Kind::Wakeup { task: control, cpu, new: false });
    at(12_000, worker, Kind::VectorExit { vector: 236 });
    at(13_000, worker, Kind::Switch { from: worker, left: Left::Runnable, to: control });
    if round.is_multiple_of(3) {
        at(20_000, control, Kind::IrqEntry { irq: 24 });
        at(21_000, control, Kind::IrqExit { irq: 24 });
        at(21_200, control, Kind::SoftirqEntry { softirq: 3 });
        at(24_000, control, Kind::SoftirqExit { softirq: 3 });
    }
    at(40_000, control, Kind::Switch { from: control, left: Left::Sleeping, to: worker });
    at(70_000, worker, Kind::Switch { from: worker, left: Left::Sleeping, to: idle });
    at(80_000, idle, Kind::IrqEntry { irq: 30 });
    at(81_000, idle, Kind::IrqExit { irq: 30 });
}

/// What this thread has used of a CPU, in s: on a machine that others use too, only that says what the work costs.
fn used() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("the kernel counts CPU time") / 1e9
}

fn main() {
    let millions = std::env::args().skip(1).find_map(|arg| arg.parse::<u64>().ok()).unwrap_or(20);
    let mut events = Vec::new();
    let rounds = 3_000;
    for number in 0..rounds {
        for cpu in 0..CPUS {
            round(&mut events, u64::from(number) * 100_000 + u64::from(cpu) * 7_000, cpu, number);
        }
    }
    events.sort_by_key(|event| event.time);
    let span = u64::from(rounds) * 100_000;
    let repeats = (millions * 1_000_000).div_ceil(events.len() as u64);
    let total = repeats * events.len() as u64;

    let chosen = Config::default();
    let run = |name: &str, feed: &mut dyn FnMut(&Event)| {
        let (mut slowest, mut fastest) = (f64::INFINITY, 0.0_f64);
        for turn in 0..5 {
            let start = used();
            for repeat in turn * repeats..(turn + 1) * repeats {
                for event in &events {
                    feed(&Event { time: event.time + repeat * span, ..*event });
                }
            }
            let rate = total as f64 / (used() - start) / 1e6;
            (slowest, fastest) = (slowest.min(rate), fastest.max(rate));
        }
        println!("{name:34} {slowest:6.1} to {fastest:6.1} M events/s, 5 times {total} events");
    };
    for (name, config) in [
        ("decompose real-time threads", chosen.clone()),
        ("… with segments", Config { segments: true, ..chosen.clone() }),
        ("… and handlers", Config { handlers: true, ..chosen.clone() }),
    ] {
        let mut decomposer = Decomposer::new(config);
        let mut jobs = 0_u64;
        run(name, &mut |event| {
            decomposer.feed(event, &mut |job| jobs += u64::from(black_box(job).complete()))
        });
        assert_eq!((decomposer.counters().flawed, decomposer.counters().jobs), (0, jobs));
    }
    let mut watch = Watch::new(chosen, 10);
    watch.max_response(Some(1_000_000));
    run("… with statistics and the worst 10", &mut |event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    println!("peak memory {}", peak());
}

/// The most memory the process had.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("unknown".into(), |kb| kb.trim().to_owned())
}
