//! Scheduler entries and exits by BPF programs, on this machine's kernel.
#![cfg(feature = "bpf")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use punctual_process::scheduling::set_policy;
use punctual_trace::event::{Event, Kind, Tid};
use punctual_trace::jobs::{self, Actor, Bounds, Decomposer, Flaw, FutexWaits, Job, Select};
use punctual_trace::read::Trace;
use punctual_trace::record::{Config, Filter, Group, Live, LiveError, RecordError};
use punctual_trace::write::dat;
use test_skip::{Need, skip};

use crate::recording::{self, config, has_programs, play, start_with_programs, without_vain_calls};

/// Runs pairs of threads that wake each other, with one that computes and displaces them. Returns
/// their IDs.
fn busy_pairs() -> BTreeSet<Tid> {
    let compute = std::thread::spawn(|| {
        let start = Instant::now();
        let mut sum = 0u64;
        while start.elapsed() < Duration::from_millis(200) {
            sum = std::hint::black_box(sum + 1);
        }
        rustix::thread::gettid().as_raw_nonzero().get() as Tid
    });
    let pairs: Vec<_> = (0..4)
        .map(|priority| {
            std::thread::spawn(move || {
                // Without the privilege, all have the ordinary policy.
                let _ = become_fifo(priority);
                play()
            })
        })
        .collect();
    let mut threads: BTreeSet<_> = pairs.into_iter().map(|pair| pair.join().unwrap()).collect();
    threads.insert(compute.join().unwrap());
    threads
}

/// Gives the calling thread and its descendants a real-time priority, if it is not 0.
fn become_fifo(priority: i32) -> std::io::Result<()> {
    let policy = if priority == 0 { libc::SCHED_OTHER } else { libc::SCHED_FIFO };
    set_policy(policy, priority)
}

/// Returns the jobs of these threads: their activity between two sleeps.
fn decompose(events: impl IntoIterator<Item = Event>, threads: &BTreeSet<Tid>) -> Vec<Job> {
    decompose_counted(events, threads).0
}

fn decompose_counted(
    events: impl IntoIterator<Item = Event>,
    threads: &BTreeSet<Tid>,
) -> (Vec<Job>, jobs::Counters) {
    let select = Select { tids: threads.iter().copied().collect(), ..Select::default() };
    let config =
        jobs::Config { select, futex: FutexWaits::Suspend, monotonic: true, ..jobs::Config::default() };
    let (mut decomposer, mut jobs) = (Decomposer::new(config), Vec::new());
    for event in events {
        decomposer.feed(&event, &mut |job| jobs.push(job.clone()));
    }
    (jobs, decomposer.counters())
}

fn read(path: &std::path::Path) -> Vec<Event> {
    Trace::open(path).unwrap().events().unwrap().collect::<Result<_, _>>().unwrap()
}

/// Lists the events on a job's CPUs during the job.
fn story(events: &[Event], job: &Job) -> String {
    let here = |event: &&Event| {
        (job.start..=job.end).contains(&event.time) && [job.first_cpu, job.last_cpu].contains(&event.cpu)
    };
    let line = |event: &Event| format!("\n  {:+} {event:?}", event.time - job.start);
    format!("{:?} {:?}{}", job.actor, job.flaw, events.iter().filter(here).map(line).collect::<String>())
}

fn is_schedule(event: &Event) -> bool {
    matches!(event.kind, Kind::ScheduleEnter | Kind::ScheduleExit)
}

#[test]
fn measures_overhead_within_bounds_known_without_bpf() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let (directory, file) = (place.path().join("raw"), place.path().join("trace.dat"));
    let Some(recording) = start_with_programs(config(), &place) else { return };
    let threads = busy_pairs();
    let summary = recording.stop().unwrap();
    assert!(summary.losses.iter().all(|loss| loss.lost == 0), "{:?}", summary.losses);
    dat::write(&directory, &file).unwrap();

    let events = read(&directory);
    assert_eq!(events, read(&file));
    let with = decompose(without_vain_calls(&events), &threads);
    let without = decompose(events.iter().filter(|event| !is_schedule(event)).copied(), &threads);
    let (all, counters) = decompose_counted(events.iter().copied(), &threads);
    assert!(with.len() > 1_000, "{} jobs", with.len());
    fn by_key(jobs: &[Job]) -> BTreeMap<(Actor, u64, u64), &Job> {
        jobs.iter().map(|job| ((job.actor, job.start, job.end), job)).collect()
    }
    let (without, all) = (by_key(&without), by_key(&all));
    // A new thread starts after the scheduler's exit, and the ID of an ending one may already be
    // gone.
    let (mut first, mut last) = (BTreeMap::new(), BTreeMap::new());
    for job in &with {
        first.entry(job.actor).or_insert(job.start);
        last.insert(job.actor, job.start);
    }
    let (mut exact, mut flawed, mut sum) = (0, 0, [0; 3]);
    for with in &with {
        assert_eq!(with.check(), Ok(()));
        let key = (with.actor, with.start, with.end);
        let others = without
            .get(&key)
            .zip(all.get(&key))
            .filter(|(without, all)| without.complete() && all.complete());
        let Some((without, all)) = others.filter(|_| with.complete()) else {
            flawed += 1;
            continue;
        };
        let (narrow, wide) = (with.overhead, without.overhead);
        let within = |ns: Option<u64>| ns.is_some_and(|ns| wide.allows(ns));
        if !within(narrow.lo()) || !within(narrow.hi()) {
            panic!("{narrow:?} is not within {wide:?}: {}", story(&events, with));
        }
        assert!(all.overhead.lo() >= narrow.lo());
        if matches!(narrow, Bounds::Exact(_)) {
            exact += 1;
            let bounds = [wide.lo(), narrow.lo(), wide.hi()];
            sum.iter_mut().zip(bounds).for_each(|(sum, ns)| *sum += ns.unwrap_or(0));
        } else {
            let ends = [first[&with.actor], last[&with.actor]];
            assert!(ends.contains(&with.start), "{narrow:?}: {}", story(&events, with));
        }
    }
    let mean = sum.map(|sum| sum / exact.max(1));
    eprintln!(
        "{exact} of {} jobs exact, {flawed} flawed; mean of SS {} ns, known without: {} to {} ns",
        with.len(),
        mean[1],
        mean[0],
        mean[2]
    );
    assert!(exact as usize + 2 * threads.len() + flawed >= with.len());
    // An event that the kernel omits spoils the jobs on both sides of it.
    if recording::whole(counters) {
        assert!(flawed < with.len() / 20 + 2 * counters.unseen_switches as usize, "{counters:?}");
    }
}

#[test]
fn records_only_traced_threads_and_cpus() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let callers = |filter: Filter, cpus: Vec<u32>| {
        let _ = fs::remove_dir_all(place.path().join("raw"));
        let recording = start_with_programs(Config { filter, cpus, ..config() }, &place)?;
        let partner = play();
        let boosted = std::thread::spawn(|| {
            let fifo = become_fifo(17).is_ok();
            (fifo, play(), rustix::thread::gettid().as_raw_nonzero().get() as Tid)
        });
        let boosted = boosted.join().unwrap();
        recording.stop().unwrap();
        let events = read(&place.path().join("raw"));
        let calls = events.into_iter().filter(is_schedule).map(|event| (event.by, event.cpu));
        Some((partner, boosted, calls.collect::<BTreeSet<_>>()))
    };
    let names = Filter { names: vec!["partner".into()], ..Filter::default() };
    let Some((partner, (_, other, waiter), calls)) = callers(names, vec![]) else { return };
    let called = |calls: &BTreeSet<(Tid, u16)>, thread| calls.iter().any(|call| call.0 == thread);
    assert!(called(&calls, partner) && called(&calls, other) && !called(&calls, waiter), "{calls:?}");

    // Threads started before their parent is selected by ID are not followed, but have the priority
    // themselves.
    let priorities = Filter { priorities: Some(17..=17), ..Filter::default() };
    let (partner, (fifo, other, waiter), calls) = callers(priorities, vec![]).unwrap();
    assert!(!called(&calls, partner));
    if fifo {
        assert!(called(&calls, other) && called(&calls, waiter), "{calls:?}");
    } else {
        test_skip::skip(test_skip::Need::RealTime, "calls by priority");
    }

    let all = Filter { processes: vec![std::process::id()], ..Filter::default() };
    let (_, _, calls) = callers(all, vec![0]).unwrap();
    assert!(calls.iter().all(|(_, cpu)| *cpu == 0), "{calls:?}");
    // Idle threads are excluded even if all threads are selected.
    let (partner, _, calls) = callers(Filter::default(), vec![]).unwrap();
    assert!(called(&calls, partner) && !called(&calls, 0));
}

#[test]
fn counts_losses_and_flags_jobs() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    // The rings are read only at the start and at the end, and hold about 2700 records.
    let config = Config { buffer_kib: 64, every: Duration::from_secs(3600), ..config() };
    let groups = vec![Group::Sched, Group::Schedule];
    let Some(recording) = start_with_programs(Config { groups, ..config }, &place) else { return };
    let mut threads = busy_pairs();
    threads.extend(busy_pairs());
    let summary = recording.stop().unwrap();
    eprintln!("{:?}", summary.losses);
    let trace = Trace::open(&place.path().join("raw")).unwrap();
    let of = |ours: bool| -> Vec<Event> {
        let events = trace.events_of(|buffer| (buffer.name == "schedule") == ours).unwrap();
        events.map(Result::unwrap).collect()
    };
    // The other buffers lose events too, which is a separate issue.
    let (schedule, mut others) = (of(true), of(false));
    others.retain(|event| !matches!(event.kind, Kind::Lost { .. }));
    let mut lost = BTreeMap::<u16, u64>::new();
    for event in &schedule {
        if let Kind::Lost { count } = event.kind {
            *lost.entry(event.cpu).or_default() += count;
        }
    }
    assert!(lost.values().sum::<u64>() > 0);
    for (cpu, lost) in lost {
        let counted = format!("CPU: {cpu}\nentries: 0\noverrun: 0\ndropped events: {lost}\n");
        assert!(trace.statistics().iter().any(|text| text.starts_with(&counted)), "{counted}");
        assert!(summary.losses.iter().any(|loss| loss.cpu == u32::from(cpu) && loss.lost >= lost));
    }
    let mut all = [schedule, others].concat();
    all.sort_by_key(|event| event.time);
    let flawed = decompose(all, &threads).iter().filter(|job| job.flaw == Some(Flaw::Lost)).count();
    assert!(flawed > 0);
}

#[test]
fn delivers_events_live() {
    let _alone = test_skip::alone();
    let mut live = match Live::start(&config()) {
        Err(LiveError::Start(error @ (RecordError::NoTracefs | RecordError::Permission { .. }))) => {
            skip(Need::Tracefs, error);
            return;
        }
        result => result.unwrap(),
    };
    if !has_programs(live.absent()) {
        return;
    }
    let (mut events, mut threads) = (Vec::new(), BTreeSet::new());
    for _ in 0..3 {
        threads.extend(busy_pairs());
        live.take(&mut events).unwrap();
    }
    live.stop(&mut events).unwrap();
    assert!(events.is_sorted_by_key(|event| (event.time, event.cpu)));
    let jobs = decompose(events, &threads);
    let whole: Vec<_> = jobs.iter().filter(|job| job.complete()).collect();
    let exact = whole.iter().filter(|job| matches!(job.overhead, Bounds::Exact(_))).count();
    eprintln!("{exact} of {} jobs exact", jobs.len());
    assert!(exact > 1_000 && exact + 2 * threads.len() >= whole.len());
}
