//! Random schedules of a model of the kernel: no job takes longer than the bound inferred from its
//! recording.

use punctual_analysis::analyse;
use punctual_analysis::infer::system::{Inferred, system};
use punctual_analysis::infer::thread::Reading;
use punctual_trace::event::Event;
use punctual_trace::jobs::{Config, Decomposer, Select};
use punctual_trace::names::Names;

use super::observe::Observer;

/// From the tests of the decomposition, where it is the ground truth.
#[path = "../../../../punctual-trace/tests/it/model/mod.rs"]
mod model;
#[path = "../../../../punctual-trace/tests/it/random/mod.rs"]
mod random;

use model::{Machine, Random, Style};

/// Number of schedules. `SEEDS=100000` for a long search.
fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40)
}

fn observe(events: &[Event]) -> Observer {
    let mut decomposer = Decomposer::new(Config {
        select: Select { marked: true, ..Select::real_time() },
        handlers: true,
        monotonic: true,
        ..Config::default()
    });
    let mut observer = Observer::default();
    for event in events {
        observer.event(event);
        decomposer.feed(event, &mut |job| observer.job(job));
    }
    decomposer.finish(&mut |job| observer.job(job));
    observer.finish();
    observer
}

#[test]
fn no_job_takes_longer_than_its_inferred_bound() {
    let (mut bounds, mut shared) = (0_u64, 0_u64);
    for seed in 0..seeds() {
        let mut random = Random::new(seed ^ 0xbeef);
        let style = Style {
            cpus: random.range(1, 2) as usize,
            threads: random.range(1, 4) as usize,
            locks: random.range(0, 2) as usize,
            edges: random.once_in(2),
            interrupts: !random.once_in(4),
            timers: random.once_in(2),
        };
        let mut machine = Machine::new(seed, style);
        machine.run(4_000);
        let observer = observe(&machine.events);
        let names = Names::new();
        let mut threads: Vec<_> = observer.threads(&names).into_iter().map(|(_, thread)| thread).collect();
        let length = machine.events.last().map_or(0, |event| event.time);
        for reading in [Reading::Sleeps, Reading::Timers] {
            threads.iter_mut().for_each(|thread| thread.reading = reading);
            let Inferred { system, threads: of, .. } =
                system("", &threads, &observer.handlers(&names), length);
            let analysis = analyse(&system);
            for (&at, outcome) in of.iter().zip(&analysis.tasks) {
                let (Ok(bound), Some(slowest)) = (outcome, threads[at].seen().slowest) else { continue };
                let seen = slowest.response().unwrap();
                bounds += 1;
                shared += u64::from(slowest.displaced > 0 && slowest.waiting > 0);
                assert!(
                    bound.response >= seen,
                    "seed {seed}: {} took {seen}: {slowest:?}\n{bound:?}\n{system:?}",
                    threads[at].name
                );
                let parts = slowest.lateness
                    + slowest.execution
                    + slowest.waiting
                    + slowest.suspended
                    + slowest.displaced;
                assert_eq!(parts, seen, "seed {seed}: {} {slowest:?}", threads[at].name);
            }
        }
    }
    // Otherwise nothing was tested.
    assert!(
        bounds > seeds() / 2 && shared > 0,
        "{bounds} bounds, {shared} of jobs that were displaced and waited"
    );
}
