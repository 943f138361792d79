//! Recordings of two machines merged: their times agree to within the stated uncertainty, their
//! threads and CPUs stay separate, and the terms of their jobs stay the same.

use crate::trace_cmd;

use std::fs;
use std::path::Path;

use crate::support::records;
use punctual_trace::event::{Comm, Event, Kind, SwitchOut, Task};
use punctual_trace::jobs::{Actor, Config, Decomposer, Job, Select};
use punctual_trace::machines::exchange::Message;
use punctual_trace::machines::{ClockError, IRQS, MergeError, Merged, Relation, THREADS, merge};
use punctual_trace::read::Trace;
use punctual_trace::recorded::Source;
use punctual_trace::write::synthetic::Synthetic;
use tempfile::TempDir;

const IDLE: Task = Task { id: 0, priority: 120 };
const TIMER: u64 = 0xffff_8881_0000_4000;
const PERIOD: u64 = 1_000_000;
const JOBS: u64 = 400;
/// Start of the first machine's clock.
const BEGIN: u64 = 90_000_000_000;

/// Records a machine with a thread that a timer releases every millisecond, an interrupt that
/// delays it, and messages, on a clock that converts the first machine's times by `clock`.
fn record(
    path: &Path,
    name: &str,
    clock: impl Fn(u64) -> u64,
    messages: &[Message],
    phase: u64,
) -> Vec<Event> {
    let thread = Task { id: 411, priority: 9 };
    let mut synthetic = Synthetic::create(path).unwrap();
    synthetic.name(411, name);
    let mut events = Vec::new();
    for job in 0..JOBS {
        let t = BEGIN + phase + job * PERIOD;
        let (due, late) = (clock(t), 4_000 + job * 37 % 900);
        let mut add = |after: u64, by: u32, kind| {
            events.push(Event { time: clock(t + after), cpu: 1, by, kind });
        };
        add(late, 0, Kind::VectorEntry { vector: 236 });
        add(late + 300, 0, Kind::TimerExpire { timer: TIMER, now: due + late + 200 });
        add(late + 400, 0, Kind::Waking { task: thread, cpu: 1 });
        add(late + 500, 0, Kind::Wakeup { task: thread, cpu: 1, new: false });
        add(late + 600, 0, Kind::TimerExpired { timer: TIMER });
        add(late + 900, 0, Kind::VectorExit { vector: 236 });
        add(late + 2_000, 0, Kind::Switch { from: IDLE, reason: SwitchOut::Runnable, to: thread });
        add(late + 50_000, 411, Kind::IrqEntry { irq: 24 });
        add(late + 57_000 + job % 50, 411, Kind::IrqExit { irq: 24 });
        add(late + 100_000, 411, Kind::TimerStart { timer: TIMER, expires: clock(t + PERIOD) });
        add(late + 102_000, 411, Kind::Switch { from: thread, reason: SwitchOut::Sleeping, to: IDLE });
    }
    let mut messages: Vec<_> = messages.to_vec();
    messages.sort_by_key(|message| message.time);
    for message in messages {
        synthetic.message(0, 77, message).unwrap();
    }
    events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();
    events
}

/// Returns messages in both directions every 5 ms, with delays of 15 µs and more, on both clocks.
fn exchanged(clock: impl Fn(u64) -> u64) -> (Vec<Message>, Vec<Message>) {
    let (mut first, mut other) = (Vec::new(), Vec::new());
    for number in 0..80 {
        let t = BEGIN + number * 5_000_000;
        let delay = |of: u64| 15_000 + (number * 7_919 + of * 104_729) % 60_000;
        let (there, back) = (t + delay(0), t + delay(0) + 3_000);
        first.push(Message { number: 2 * number, time: t, sent: true });
        other.push(Message { number: 2 * number, time: clock(there), sent: false });
        other.push(Message { number: 2 * number + 1, time: clock(back), sent: true });
        first.push(Message { number: 2 * number + 1, time: back + delay(1), sent: false });
    }
    (first, other)
}

fn events(trace: &Trace) -> Vec<Event> {
    records(trace).unwrap().map(Result::unwrap).collect()
}

fn jobs(trace: &Trace, thread: u32) -> Vec<Job> {
    let mut jobs = Vec::new();
    let recorded = trace.recorded().unwrap();
    let select = Select::real_time();
    let mut decomposer =
        Decomposer::new(Config { select, recorded, monotonic: trace.clock() == "mono", ..Config::default() });
    for event in events(trace) {
        decomposer.feed(&event, &mut |job| jobs.push(job.clone()));
    }
    jobs.retain(|job| job.actor == Actor::Thread(thread) && job.complete());
    jobs
}

fn merged(place: &TempDir, relation: Relation) -> Result<(Merged, Trace), MergeError> {
    let traces = ["one", "other"].map(|name| Trace::open(&place.path().join(name)).unwrap());
    let file = place.path().join("merged.dat");
    let merged = merge(&traces, relation, &file)?;
    Ok((merged, Trace::open(&file).unwrap()))
}

#[test]
fn aligns_times_within_stated_error() {
    // Ahead by days, and behind the start of the first machine's clock; with different rates.
    for (name, ahead, ppm) in [("ahead", 400_000_000_000_000_i128, 25), ("behind", -89_950_000_000, -40)] {
        let place = tempfile::tempdir().unwrap();
        let clock = |time: u64| {
            let drift = (i128::from(time) - i128::from(BEGIN)) * ppm / 1_000_000;
            u64::try_from(i128::from(time) + ahead + drift).unwrap()
        };
        let (to, from) = exchanged(clock);
        record(&place.path().join("one"), "control", |time| time, &to, 0);
        record(&place.path().join("other"), "motor", clock, &from, 333_000);
        let (merged, trace) = merged(&place, Relation::Messages).unwrap();
        let uncertainty = merged.clocks[0].uncertainty();
        assert!(uncertainty < 30_000, "{merged:?}");
        let found = events(&trace);
        assert_eq!(found.len(), 2 * 11 * JOBS as usize, "messages are no events");
        let higher = THREADS + 411;
        let starts = |thread: u32| {
            let to = move |event: &&Event| matches!(event.kind, Kind::Switch { to, .. } if to.id == thread);
            found.iter().filter(to).map(|event| event.time - merged.shift).collect::<Vec<_>>()
        };
        for (thread, phase) in [(411, 0), (higher, 333_000)] {
            let starts = starts(thread);
            assert_eq!(starts.len() as u64, JOBS);
            for (job, start) in (0..).zip(starts) {
                let truth = BEGIN + phase + job * PERIOD + 4_000 + job * 37 % 900 + 2_000;
                let wrong = start.abs_diff(truth);
                let allowed = if thread == 411 { 0 } else { uncertainty + 1 };
                assert!(
                    wrong <= allowed,
                    "{name}: job {job} of {thread} is off by {wrong} ns, and not {allowed}"
                );
            }
        }
        let mut names = trace.events().unwrap();
        names.by_ref().for_each(drop);
        assert_eq!(
            (names.threads().get(411), names.threads().get(higher)),
            (Some(Comm::new("control")), Some(Comm::new("motor")))
        );
        assert!(trace.system().contains("its times ±"), "{}", trace.system());
    }
}

#[test]
fn keeps_terms_of_jobs_of_both_recordings() {
    let place = tempfile::tempdir().unwrap();
    let clock = |time: u64| time + 7_000_000_000;
    let (to, from) = exchanged(clock);
    record(&place.path().join("one"), "control", |time| time, &to, 0);
    let own = record(&place.path().join("other"), "motor", clock, &from, 333_000);
    let (_, trace) = merged(&place, Relation::Messages).unwrap();
    let alone = jobs(&Trace::open(&place.path().join("other")).unwrap(), 411);
    let together = jobs(&trace, THREADS + 411);
    assert_eq!((alone.len(), together.len()), (JOBS as usize, JOBS as usize));
    assert_eq!(jobs(&trace, 411).len(), JOBS as usize);
    for (alone, together) in alone.iter().zip(&together) {
        for (one, other) in [
            (alone.response, together.response),
            (alone.jitter, together.jitter),
            (alone.interference, together.interference),
            (alone.blocking, together.blocking),
        ] {
            // The rates of the clocks are known to a few ppm.
            let near = |one: Option<u64>, other: Option<u64>| match (one, other) {
                (Some(one), Some(other)) => one.abs_diff(other) <= 60,
                (one, other) => one == other,
            };
            assert!(near(one.lo(), other.lo()) && near(one.hi(), other.hi()), "{one:?} {other:?}");
        }
        assert!(alone.released.is_some() && together.released.is_some(), "a timer releases both");
    }
    // Interrupts, CPUs and timers of the two are distinct.
    let found = events(&trace);
    let of_other: Vec<_> = found.iter().filter(|event| event.cpu >= 2).collect();
    assert_eq!(of_other.len(), own.len());
    assert!(of_other.iter().any(|event| event.kind == Kind::IrqEntry { irq: 24 + IRQS }));
    assert!(of_other.iter().all(|event| !matches!(event.kind, Kind::TimerStart { timer: TIMER, .. })));
    assert!(trace.recorded().unwrap().has(Source::Timers));
}

#[test]
fn keeps_times_of_shared_clock() {
    let place = tempfile::tempdir().unwrap();
    let one = record(&place.path().join("one"), "control", |time| time, &[], 0);
    let other = record(&place.path().join("other"), "motor", |time| time, &[], 333_000);
    let (merged, trace) = merged(&place, Relation::Shared(2_000)).unwrap();
    assert_eq!((merged.clocks[0].uncertainty(), merged.shift), (2_000, 0));
    let mut times: Vec<_> = one.iter().chain(&other).map(|event| event.time).collect();
    times.sort_unstable();
    assert_eq!(events(&trace).iter().map(|event| event.time).collect::<Vec<_>>(), times);
}

/// An event that one of them does not record must not count as absent.
#[test]
fn lists_only_events_recorded_by_both() {
    let place = tempfile::tempdir().unwrap();
    record(&place.path().join("one"), "control", |time| time, &[], 0);
    record(&place.path().join("other"), "motor", |time| time, &[], 333_000);
    fs::write(place.path().join("other/recorded"), "sched:sched_switch\nsched:sched_waking\n").unwrap();
    let (_, trace) = merged(&place, Relation::Shared(2_000)).unwrap();
    let recorded = trace.recorded().unwrap();
    assert!(recorded.has(Source::Switches) && recorded.has(Source::Wakings));
    assert!(!recorded.has(Source::Timers) && !recorded.has(Source::Interrupts));
}

#[test]
fn rejects_recordings_without_messages() {
    let place = tempfile::tempdir().unwrap();
    record(&place.path().join("one"), "control", |time| time, &[], 0);
    record(&place.path().join("other"), "motor", |time| time, &[], 0);
    let error = merged(&place, Relation::Messages).err().unwrap();
    assert!(matches!(&error, MergeError::Clocks { error: ClockError::TooFew(0, 0), .. }));
    assert!(error.to_string().contains("punctual trace exchange"), "{error}");
}

/// Even if the recording's clock is unknown.
#[test]
fn writes_files_that_trace_cmd_reads() {
    for clock in ["[mono]", ""] {
        let place = tempfile::tempdir().unwrap();
        record(&place.path().join("one"), "control", |time| time, &[], 0);
        record(&place.path().join("other"), "motor", |time| time, &[], 333_000);
        for name in ["one", "other"] {
            fs::write(place.path().join(name).join("trace_clock"), clock).unwrap();
        }
        let (_, trace) = merged(&place, Relation::Shared(2_000)).unwrap();
        let Some(printed) = trace_cmd::printed(&place.path().join("merged.dat")) else { return };
        assert_eq!(printed.values().sum::<u64>(), events(&trace).len() as u64, "{clock}: {printed:?}");
    }
}
