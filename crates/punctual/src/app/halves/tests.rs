//! What the half without Linux shows, written here by a thread of this process.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use punctual_core::metrics::{TaskFigures, bucket_of};
use punctual_core::{Duration, Instant, Worker};

use super::linux::Other;
use super::shown::Shown;
use super::{Halves, Head};
use crate::app::model::Model;
use crate::app::partition::{PartitionConfig, PartitionState, ThreadModel};
use crate::app::report::{Report, TaskReport};
use crate::app::runtime::{Options, Runtime};
use crate::model::OnEarly;
use crate::port::linux::suspension::Suspensions;
use crate::task::monitor::Job;

#[repr(C)]
struct Region {
    head: Head,
    shown: [Shown; 3],
}

static IDLE: Worker = Worker::new(0);
static MODEL: Model = Model::new("app", &[], &[], &[], None);
static RUNTIME: Runtime = Runtime::new(&MODEL, Options::NONE, &[&PART], &PART, &[], None, None);
static PART: PartitionState = {
    let declared = PartitionConfig { name: "ui", model: ThreadModel::Anywhere, cpu: None, stack: None };
    // SAFETY: the worker is of no other partition.
    unsafe { PartitionState::new(declared, &RUNTIME, &[], &[&IDLE], &IDLE, None) }
};
// SAFETY: the rows are that field.
static HALVES: Halves = unsafe {
    Halves::new::<Region>(&RUNTIME, "ui", "control", 1, 0, (std::mem::offset_of!(Region, shown), 3))
};

/// The app of these halves.
pub(crate) fn runtime() -> &'static Runtime {
    &RUNTIME
}

/// Another half with the tasks `sample`, one that is configured away, and one with a long name. It is never freed.
pub(crate) fn other() -> Other {
    // SAFETY: zero is a value of everything in a region.
    let region: &'static Region = Box::leak(unsafe { Box::<Region>::new_zeroed().assume_init() });
    region.head.cpu.store(2, Relaxed);
    let sample = TaskReport {
        name: "sample".into(),
        level: 3,
        period: Some(Duration::from_micros(100)),
        deadline: Some(Duration::from_ticks(45)),
        min_interval: Some(Duration::from_ticks(7)),
        burst: 2,
        on_early: Some(OnEarly::Delay),
        ..TaskReport::default()
    };
    region.shown[0].declare(&sample, true);
    let long = "x".to_owned() + &"ä".repeat(30);
    region.shown[2].declare(&TaskReport { name: long, level: 1, ..TaskReport::default() }, false);
    Other { halves: &HALVES, head: &region.head }
}

/// A job, which others preempted for 10 ns.
pub(super) fn job(release: u64, start: u64, end: u64) -> Job {
    let [release, start, end] = [release, start, end].map(Instant::from_ticks);
    Job {
        release,
        start,
        end,
        preempted: 10,
        suspensions: Suspensions::NONE,
        deadline: Some(Duration::from_ticks(45)),
    }
}

#[test]
fn figures_come_across_as_they_are_and_quantiles_within_their_buckets() {
    let other = other();
    let [(name, sample), (long, idle)] = &other.tasks().collect::<Vec<_>>()[..] else {
        panic!("two are there")
    };
    assert_eq!((name.as_str(), long.len()), ("sample", 39), "a name is cut between characters");
    for n in 1..=1_000 {
        assert!(sample.add(job(0, n, n + 40)).is_none());
    }
    sample.set_overruns(5);
    sample.set_early(6);
    let report = sample.report(name.clone(), "control");
    assert_eq!((report.level, report.partition.as_deref(), report.burst), (3, Some("control"), 2));
    assert_eq!((report.period, report.deadline), (Some(Duration::from_micros(100)), job(0, 0, 0).deadline));
    assert_eq!((report.min_interval, report.on_early), (Some(Duration::from_ticks(7)), Some(OnEarly::Delay)));
    assert_eq!((report.jobs, report.misses, report.overruns, report.early), (1_000, 995, 5, 6));
    assert!(report.measured && report.without_linux);
    assert_eq!((report.jitter.max, report.response.max, report.execution.max), (1_000, 1_040, 30));
    assert_eq!((report.jitter.mean, report.execution.p50), (500.5, 30));
    assert!((500..=531).contains(&report.jitter.p50), "{}", report.jitter.p50);
    assert_eq!(report.jitter.p999, 1_000, "never above the largest");
    assert!(!idle.report(long.clone(), "control").measured);

    // SAFETY: atomics may be zero.
    let figures = unsafe { Box::<TaskFigures>::new_zeroed().assume_init() };
    sample.copy(&figures);
    sample.copy(&figures);
    let counted: u32 = figures.jitters.0.iter().map(|count| count.load(Relaxed)).sum();
    assert_eq!((figures.jobs.load(Relaxed), counted), (1_000, 1_000));
    assert_eq!((figures.jitter.sum.load(Relaxed), figures.occasional.overruns.load(Relaxed)), (500_500, 5));
    assert_eq!(figures.executions.0[bucket_of(30)].load(Relaxed), 1_000);
}

#[test]
fn whatever_the_other_half_writes_is_read() {
    let other = other();
    let (_, shown) = other.tasks().next().unwrap();
    for byte in [0xff, 0x80, 1] {
        // SAFETY: it consists of atomics, of which each bit pattern is one, and nobody else uses it.
        unsafe { ptr::from_ref(shown).cast_mut().write_bytes(byte, 1) };
        let report = shown.report(shown.name().unwrap(), "control");
        let report = Report { tasks: vec![report], ..Report::default() };
        assert!(report.to_string().contains("control"));
        // SAFETY: atomics may be zero.
        shown.copy(&*unsafe { Box::<TaskFigures>::new_zeroed().assume_init() });
    }
    // SAFETY: as above.
    unsafe { ptr::from_ref(shown).cast_mut().write_bytes(0, 1) };
    assert_eq!(shown.name(), None);
}
