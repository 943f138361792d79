//! Recordings of real kernels: of third parties, whose number of events equals the output of
//! `trace-cmd report`, and pages of a kernel 6.18 (x86-64) in `tests/data`, a capture directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::recording::without_vain_calls;
use crate::trace_cmd::{event_of, is_recorded, printed};
use punctual_trace::event::{Comm, Event, Kind, Tid};
use punctual_trace::jobs::{Actor, Bounds, Config, Decomposer, Job, Select};
use punctual_trace::machines::{MergeError, Relation, merge};
use punctual_trace::read::{ReadError, Trace};
use punctual_trace::recorded::{Recorded, Source};

/// Environment variable with the directory of the recordings.
const PLACE: &str = "PUNCTUAL_TRACES";

fn place() -> PathBuf {
    std::env::var_os(PLACE).unwrap_or_else(|| panic!("{PLACE} is the directory of recordings")).into()
}

fn recordings() -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(place()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "dat"));
    files.sort();
    files
}

/// Counts the records: by event if it is unknown to the analysis, and all others together.
fn read(file: &Path) -> (BTreeMap<String, u64>, u64) {
    let trace = match Trace::open(file) {
        Err(ReadError::Empty { .. }) => return (BTreeMap::new(), 0),
        trace => trace.unwrap(),
    };
    let mut events = trace.events().unwrap();
    let mut known = 0;
    let mut decomposer = Decomposer::new(Config {
        select: Select { priorities: Some(i32::MIN..=i32::MAX), ..Select::real_time() },
        handlers: true,
        ..Config::default()
    });
    for event in events.by_ref() {
        let event = event.unwrap();
        known += u64::from(is_recorded(event.kind));
        decomposer.feed(&event, &mut |job| {
            if job.complete() {
                assert_eq!(job.check(), Ok(()), "{job:?}");
            }
        });
    }
    decomposer.finish(&mut |_| {});
    let skipped = trace.skipped(&events);
    let name = |event: String| event.rsplit(':').next().unwrap_or_default().to_owned();
    (skipped.into_iter().map(|(event, count)| (name(event), count)).collect(), known)
}

#[test]
#[ignore = "needs trace-cmd and recordings; `cargo xtask check recordings` fetches them"]
fn reads_as_many_events_as_trace_cmd() {
    let recordings = recordings();
    assert!(!recordings.is_empty());
    let mut failed = Vec::new();
    for file in &recordings {
        let mut printed = printed(file).expect("trace-cmd is installed");
        let (skipped, known) = read(file);
        let all: u64 = printed.values().sum();
        let mut wrong = Vec::new();
        for (event, count) in &skipped {
            let found = printed.remove(event).unwrap_or(0);
            if found != *count {
                wrong.push(format!("{event}: {count}, and trace-cmd prints {found}"));
            }
        }
        let rest: u64 = printed.values().sum();
        if rest != known {
            wrong.push(format!(
                "{known} of the kinds that are known, and trace-cmd prints {rest}: {printed:?}"
            ));
        }
        println!(
            "{}: {all} events, {known} understood{}",
            file.display(),
            if wrong.is_empty() { "" } else { ", WRONG" }
        );
        failed.extend(wrong.into_iter().map(|what| format!("{}: {what}", file.display())));
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Each twice, as if from two machines with one clock.
#[test]
#[ignore = "needs trace-cmd and recordings; `cargo xtask check recordings` fetches them"]
fn merged_recordings_are_readable_by_trace_cmd() {
    let mut all = recordings();
    all.extend(fs::read_dir(place().join("ctf")).unwrap().map(|entry| entry.unwrap().path()));
    let file = std::env::temp_dir().join(format!("punctual-corpus-merged-{}.dat", std::process::id()));
    let mut compared = 0;
    for recording in &all {
        let open = || Trace::open(recording);
        let traces = match (open(), open()) {
            (Ok(one), Ok(other)) => [one, other],
            (Err(ReadError::Empty { .. }), _) => continue,
            (result, _) => panic!("{}: {:?}", recording.display(), result.err()),
        };
        match merge(&traces, Relation::Shared(0), &file) {
            Ok(merged) => println!("{}: {:?}", recording.display(), merged.damage),
            Err(MergeError::Unsupported { what, .. }) => {
                println!("{}: not merged: {what}", recording.display());
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        let twice: u64 = printed(&file).expect("trace-cmd is installed").values().sum();
        let once: u64 = if recording.is_dir() {
            let events = traces[0].events().unwrap().with_others().map(Result::unwrap);
            events.filter(|event| is_recorded(event.kind)).count() as u64
        } else {
            printed(recording).expect("trace-cmd is installed").values().sum()
        };
        assert_eq!(twice, 2 * once, "{}", recording.display());
        compared += 1;
    }
    let _ = fs::remove_file(&file);
    assert!(compared * 2 > all.len(), "{compared} of {} are compared", all.len());
}

/// A kind of events, and the source that is no longer complete without it, if a recording can
/// declare that.
type Kinds = (fn(Kind) -> bool, Option<Source>);

const KINDS: [Kinds; 23] = [
    (|kind| matches!(kind, Kind::Waking { .. }), Some(Source::Wakings)),
    (|kind| matches!(kind, Kind::Wakeup { new: false, .. }), Some(Source::Wakeups)),
    // No recording declares the absence of wake-ups of new threads: they run when first seen.
    (|kind| matches!(kind, Kind::Wakeup { new: true, .. }), None),
    (|kind| matches!(kind, Kind::Migrate { .. }), Some(Source::Migrations)),
    (|kind| matches!(kind, Kind::Inherit { .. }), Some(Source::Inheritance)),
    (|kind| matches!(kind, Kind::IrqEntry { .. }), Some(Source::Interrupts)),
    (|kind| matches!(kind, Kind::IrqExit { .. }), Some(Source::Interrupts)),
    (|kind| matches!(kind, Kind::VectorEntry { .. }), Some(Source::Vectors)),
    (|kind| matches!(kind, Kind::VectorExit { .. }), Some(Source::Vectors)),
    (|kind| matches!(kind, Kind::SoftirqEntry { .. }), Some(Source::Softirqs)),
    (|kind| matches!(kind, Kind::SoftirqExit { .. }), Some(Source::Softirqs)),
    (|kind| matches!(kind, Kind::TimerStart { .. } | Kind::BudgetTimerStart { .. }), Some(Source::Timers)),
    (|kind| matches!(kind, Kind::TimerExpire { .. }), Some(Source::Timers)),
    (|kind| matches!(kind, Kind::TimerExpired { .. }), Some(Source::Timers)),
    (|kind| matches!(kind, Kind::ContentionBegin { .. }), Some(Source::Contention)),
    (|kind| matches!(kind, Kind::ContentionEnd { .. }), Some(Source::Contention)),
    (|kind| matches!(kind, Kind::FutexEnter { .. }), Some(Source::Futexes)),
    (|kind| matches!(kind, Kind::FutexExit { .. }), Some(Source::Futexes)),
    (|kind| matches!(kind, Kind::ScheduleEnter | Kind::ScheduleExit), Some(Source::Scheduler)),
    (|kind| matches!(kind, Kind::YieldEnter), Some(Source::Yields)),
    (|kind| matches!(kind, Kind::YieldExit), Some(Source::Yields)),
    // Other calls show only that the thread is outside the scheduler, and names its purpose.
    (|kind| matches!(kind, Kind::SyscallEnter { .. } | Kind::SyscallExit { .. }), None),
    (|kind| matches!(kind, Kind::Named { .. }), None),
];

/// Number of beginnings that are omitted.
const STARTS: usize = 20;

/// Returns the jobs of threads without flaws, from events and listed names.
fn jobs_of((events, listed): (&[Event], &[(Tid, Comm)]), config: Config, gone: fn(Kind) -> bool) -> Vec<Job> {
    let mut decomposer = Decomposer::new(config);
    let mut jobs = Vec::new();
    listed.iter().for_each(|(thread, name)| decomposer.name(*thread, &name.text()));
    for event in events {
        if !gone(event.kind) {
            decomposer.feed(event, &mut |job| jobs.extend(job.complete().then(|| job.clone())));
        }
    }
    jobs
}

/// Returns the sum of two terms; an unknown one is at least 0.
fn sum(one: Bounds, other: Bounds) -> Bounds {
    let least = one.lo().unwrap_or(0) + other.lo().unwrap_or(0);
    let most = one.hi().zip(other.hi());
    most.map_or(Bounds::AtLeast(least), |(one, other)| Bounds::between(least, one + other))
}

/// Returns whether no value is within both bounds.
fn are_disjoint(one: Bounds, other: Bounds) -> bool {
    let above = |one: Bounds, other: Bounds| one.lo().zip(other.hi()).is_some_and(|(lo, hi)| lo > hi);
    above(one, other) || above(other, one)
}

/// Compares the terms of a job with those of a job `known` better, which contains it. `locks` is
/// false if waits for locks may be missing from the former.
fn contradictions(job: &Job, known: &Job, locks: bool, (compared, narrower): (&mut u64, &mut u64)) -> String {
    let mut wrong = String::new();
    for (term, now, then) in [
        ("R", job.response, known.response),
        ("J", job.jitter, known.jitter),
        ("W", job.window, known.window),
        ("B", job.blocking, known.blocking),
        ("I", job.interference, known.interference),
        ("B + I", sum(job.blocking, job.interference), sum(known.blocking, known.interference)),
        ("SS", job.overhead, known.overhead),
        ("SS of entries", job.overhead_entry, known.overhead_entry),
        ("SS of exits", job.overhead_exit, known.overhead_exit),
        ("C", job.execution, known.execution),
    ] {
        *compared += 1;
        *narrower += u64::from(now != then);
        // Displacement of a thread on its way to a lock belongs to B if the wait is recorded, and
        // otherwise to the lower bound of I, as documented.
        let then = match (term, now) {
            ("I", Bounds::AtLeast(_)) if !locks => sum(known.blocking, known.interference),
            _ => then,
        };
        if are_disjoint(now, then) {
            write!(wrong, "{term} {now:?}, was {then:?}; ").unwrap();
        }
    }
    wrong
}

/// Without one kind of events, or without those of the beginning, the results are less precise, and
/// never wrong.
#[test]
#[ignore = "needs recordings; `cargo xtask check recordings` fetches them"]
fn missing_events_lose_but_never_falsify_terms() {
    let (mut compared, mut narrower, mut wrong) = (0u64, 0u64, Vec::new());
    // The temporary directory of targets also contains the recordings of `cargo xtask check
    // recordings`.
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("traces").join("recompute");
    let own = ["own.dat", "losses.dat"].map(|name| own.join(name)).into_iter().filter(|file| file.exists());
    let own: Vec<_> = own.collect();
    let least = if own.is_empty() { 1_000 } else { 10_000 };
    for file in recordings().into_iter().chain(own) {
        let Ok(trace) = Trace::open(&file) else { continue };
        let recorded = trace.recorded().unwrap();
        let mut reader = trace.events().unwrap();
        let listed: Vec<_> = reader.threads().iter().collect();
        let events: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        let events = without_vain_calls(&events);
        let config = |recorded: &Recorded| Config {
            select: Select { priorities: Some(i32::MIN..=i32::MAX), ..Select::real_time() },
            monotonic: trace.clock() == "mono",
            recorded: recorded.clone(),
            ..Config::default()
        };
        let mut whole: BTreeMap<Actor, Vec<Job>> = BTreeMap::new();
        for job in jobs_of((&events, &listed), config(&recorded), |_| false) {
            whole.entry(job.actor).or_default().push(job);
        }
        let present = |&(_, (gone, _)): &(usize, Kinds)| events.iter().any(|event| gone(event.kind));
        let kinds = KINDS.into_iter().enumerate().filter(present);
        let kinds = kinds.map(|(index, (gone, source))| (format!("without {index}"), 0, gone, source));
        let starts = (1..=STARTS).map(|start| {
            let nothing: fn(Kind) -> bool = |_| false;
            (format!("from {start} of {STARTS}"), events.len() * start / (STARTS + 1), nothing, None)
        });
        for (what, start, gone, source) in kinds.chain(starts) {
            let retained = source.map_or(recorded.clone(), |source| recorded.clone().without(source));
            let locks = retained.has(Source::Futexes) && retained.has(Source::Contention);
            // The first job of a thread counts as a whole one, and may be the rest of a job.
            let mut seen: BTreeSet<Actor> = BTreeSet::new();
            for job in jobs_of((&events[start..], &listed), config(&retained), gone) {
                if seen.insert(job.actor) && start > 0 {
                    continue;
                }
                let jobs = whole.get(&job.actor).map_or(&[][..], Vec::as_slice);
                let before = jobs.partition_point(|known| known.end < job.end);
                let Some(known) = jobs.get(before).filter(|known| known.start <= job.start) else { continue };
                let contradictions = contradictions(&job, known, locks, (&mut compared, &mut narrower));
                if !contradictions.is_empty() {
                    let (place, actor, start) = (file.file_name(), job.actor, job.start);
                    wrong.push(format!("{place:?} {what}: {actor:?} at {start}: {contradictions}"));
                }
            }
        }
    }
    println!("{compared} terms, {narrower} of them not as before");
    assert!(
        compared > least && wrong.is_empty(),
        "{} of {compared}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(20)]
    );
}

#[test]
fn finds_names_of_events_in_lines() {
    for (line, event) in [
        ("          <idle>-0     [001]    76.402065: sched_wakeup:         x", Some("sched_wakeup")),
        (" a [003] b: c-1 [3]: -17  [000] d..1 26.5: print: ip: foo", Some("print")),
        ("       trace-cmd-6973  [002]259445106948920: bprint:               x", Some("bprint")),
        ("cpus=2", None),
        ("CPU:1 [12 EVENTS DROPPED]", None),
    ] {
        assert_eq!(event_of(line), event, "{line}");
    }
}

/// Two threads that wake each other, with interrupts. The expected contents are in `events.txt`,
/// one event per line; to regenerate it, set `BLESS` and compare it with the output of `trace-cmd
/// report` for the same pages.
#[test]
fn decodes_pages_of_real_kernel() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let trace = Trace::open(&directory).unwrap();
    let mut events = trace.events().unwrap();
    let mut text = String::new();
    for event in events.by_ref() {
        let event = event.unwrap();
        writeln!(text, "{} cpu {} by {}: {:?}", event.time, event.cpu, event.by, event.kind).unwrap();
    }
    assert!(events.incomplete().is_empty());
    assert!(trace.unreadable().is_empty());
    let mut names: Vec<_> = events.threads().iter().map(|(_, name)| name.text().into_owned()).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.iter().any(|name| name == "partner"), "{names:?}");
    let path = directory.join("events.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (line, (found, expected)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", line + 1);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
}
