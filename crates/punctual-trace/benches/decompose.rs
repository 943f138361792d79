//! Measures the throughput of the decomposer, on one thread and by itself.
//!
//!     cargo bench -p punctual-trace --bench decompose [-- MILLIONS]
//!
//! The trace is generated: on each of 4 CPUs ordinary threads take turns, and timer and device
//! interrupts wake real-time threads, whose jobs are selected. It contains only sched and irq
//! events, 20 million by default. The slowest of five runs comes first; the rate in CPU time
//! excludes the time that the machine spent on other processes.

mod traces;

use std::convert::Infallible;
use std::hint::black_box;

use punctual_trace::event::Event;
use punctual_trace::jobs::{Config, Decomposer};
use punctual_trace::stats::Watch;

use self::traces::{ROUND, Scene, peak_memory, show, timed};

const CPUS: u16 = 4;
/// Number of rounds of the trace that are kept in memory, and repeated.
const ROUNDS: u64 = 3_000;

fn main() {
    let millions = std::env::args().skip(1).find_map(|arg| arg.parse::<u64>().ok()).unwrap_or(20);
    let span = ROUNDS * ROUND;
    let events: Vec<Event> = Scene::Rounds.events(CPUS).take_while(|event| event.time < span).collect();
    let repeats = (millions * 1_000_000).div_ceil(events.len() as u64);

    let run = |name: &str, feed: &mut dyn FnMut(&Event)| {
        let runs = (0..5).map(|turn| {
            timed(|| {
                for repeat in turn * repeats..(turn + 1) * repeats {
                    for event in &events {
                        feed(&Event { time: event.time + repeat * span, ..*event });
                    }
                }
                Ok(repeats * events.len() as u64)
            })
        });
        let runs: Result<Vec<_>, Infallible> = runs.collect();
        show(name, &runs.unwrap_or_else(|never| match never {}));
    };
    let chosen = Config::default();
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
    watch.default_deadline(Some(1_000_000));
    run("… with statistics and the worst 10", &mut |event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    println!("peak memory {:.1} MB", peak_memory());
}
