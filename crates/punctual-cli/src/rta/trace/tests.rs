//! Random schedules of a model of the kernel: no job takes longer than the bound inferred from its
//! recording.

use punctual_analysis::analyze;
use punctual_analysis::infer::system::{Inferred, system};
use punctual_analysis::infer::thread::Reading;
use punctual_trace::event::{Event, Kind, SwitchOut, Task};
use punctual_trace::jobs::{Config, Decomposer, Select};
use punctual_trace::names::Names;

use super::observe::Observer;

/// From the tests of the decomposition, where it is the ground truth.
#[path = "../../../../punctual-trace/tests/it/model/mod.rs"]
mod model;
#[path = "../../../../punctual-trace/tests/it/random/mod.rs"]
mod random;

use model::{Machine, Random, Style};

/// Returns the number of schedules.
fn seeds() -> u64 {
    random::inputs(20)
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
fn no_job_exceeds_inferred_bound() {
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
        let mut handlers = observer.handlers(&names);
        handlers.extend(observer.throttling(&names));
        for reading in [Reading::Sleeps, Reading::Timers] {
            threads.iter_mut().for_each(|thread| thread.reading = reading);
            let Inferred { system, threads: of, .. } = system("", &threads, &handlers, length);
            let analysis = analyze(&system);
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

/// A job of 2 ms is displaced by an ordinary thread for 9 ms: that is a rare source, and no demand
/// of the job.
#[test]
fn models_throttling_as_rare_source() {
    let (control, other, idle) = (task(7, 19), task(8, 120), task(0, 120));
    let mut events = Vec::new();
    let mut push = |time, by: Task, kind| events.push(Event { time, cpu: 0, by: by.id, kind });
    let switch = |from, reason, to| Kind::Switch { from, reason, to };
    for job in 0..100 {
        let start = 1_000_000 + job * 20_000_000;
        push(start, idle, Kind::Waking { task: control, cpu: 0 });
        push(start + 1_000, idle, switch(idle, SwitchOut::Runnable, control));
        let mut end = start + 2_000_000;
        if job == 50 {
            push(start + 500_000, control, switch(control, SwitchOut::Runnable, other));
            push(start + 9_500_000, other, switch(other, SwitchOut::Runnable, control));
            end += 9_000_000;
        }
        push(end, control, switch(control, SwitchOut::Sleeping, idle));
    }
    let (observer, names) = (observe(&events), Names::new());
    let threads: Vec<_> = observer.threads(&names).into_iter().map(|(_, thread)| thread).collect();
    let handlers: Vec<_> = observer.throttling(&names).collect();
    let throttling: Vec<_> =
        handlers.iter().map(|it| (it.name.as_str(), it.cpu, it.executions.max())).collect();
    assert_eq!(throttling, [("throttling", 0, Some(9_000_000))]);
    let seen = threads[0].seen();
    assert_eq!((seen.waiting.ns, seen.displaced.ns), (0, 9_000_000));
    let Inferred { system, unbounded, .. } = system("", &threads, &handlers, 2_000_000_000);
    assert!(unbounded.is_empty(), "{unbounded:?}");
    let bound = analyze(&system).tasks.swap_remove(0).unwrap().response;
    assert!((11_000_000..12_000_000).contains(&bound), "{bound}");
}

fn task(id: u32, priority: i32) -> Task {
    Task { id, priority }
}
