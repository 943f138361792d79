//! Spawns, wakes, locks, timers and queues, compared with the equivalents of other crates.
//!
//! A sample is a window: as many operations in sequence as take a millisecond or two, divided by
//! their number. The windows of all rows of a step take turns, each on a pinned SCHED_FIFO thread,
//! as do windows of L, a locked instruction. Each row gets its median in units of L. The other
//! crates are available with the feature `peers`; Punctual with default settings comes first.

mod apps;
#[cfg(feature = "peers")]
mod peers;
mod plain;

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use self::apps::Operation;
use super::latency::{Contender, alternate};
use crate::clock;
use crate::model::{Quantity, Row};
use crate::options::{Plan, SuiteName};
use crate::published::{self, Rtic};
use crate::rt::{self, Lack};
use crate::session::{Session, Step, Unit};
use crate::subject::{AS_BY_DEFAULT, L, Subject};
use crate::suites::Registration;

/// The intended duration of a window.
const WINDOW_NS: f64 = 1.5e6;
/// The number of operations in a window.
const OPERATIONS: std::ops::RangeInclusive<u32> = 16..=1_000_000;
/// The number of windows of a row.
const WINDOWS: usize = 41;
const QUICK_WINDOWS: usize = 3;

/// Performs this many operations on the given CPU at real-time priority, and returns the ticks.
type Measure = Box<dyn Fn(usize, u32) -> Result<(u64, Lack), String>>;

/// A measured subject.
struct Peer {
    slug: &'static str,
    name: &'static str,
    measure: Measure,
    /// Set if the number does not depend on the window.
    operations: Option<u32>,
}

impl Peer {
    fn new(
        (slug, name): (&'static str, &'static str),
        measure: impl Fn(usize, u32) -> Result<(u64, Lack), String> + 'static,
    ) -> Self {
        Self { slug, name, measure: Box::new(measure), operations: None }
    }

    /// Returns a subject whose operations are a loop on a thread.
    fn threaded((slug, name): (&'static str, &'static str), body: fn(u32) -> u64) -> Self {
        Self::new((slug, name), move |cpu, operations| {
            Ok(rt::on_thread(cpu, rt::PRIORITY, |lack| (body(operations), lack.clone())))
        })
    }

    fn app(names: (&'static str, &'static str), app: apps::Measure, operation: Operation) -> Self {
        Self::new(names, move |cpu, operations| app(cpu, operation, operations))
    }

    fn always(self, operations: u32) -> Self {
        Self { operations: Some(operations), ..self }
    }
}

const DEFAULT: (&str, &str) = ("monitored", AS_BY_DEFAULT);
const PLAIN: (&str, &str) = ("punctual", "Punctual");
const MANY: (&str, &str) = ("punctual-100-tasks", "Punctual, 100 tasks");
const SYNC: (&str, &str) = ("punctual-sync", "punctual-sync");

/// Returns the apps' subjects for an operation.
fn ours(operation: Operation) -> Vec<Peer> {
    vec![
        Peer::app(DEFAULT, apps::monitored::measure, operation),
        Peer::app(PLAIN, apps::plain::measure, operation),
        Peer::app(MANY, apps::many::measure, operation),
    ]
}

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("executors");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "Spawns, wakes, locks, timers and queues, compared with other crates",
    summary: "spawns, wakes, locks, timers and queues, next to other crates",
    is_usual: true,
    has_references: true,
    steps,
};

fn steps(_: &Plan) -> Vec<Step> {
    use Operation::{ArmAndCancel, DueAtOnce, HigherLevel, Lock, SameLevel, TimersArmed, Wake};
    let same = || {
        let mut all = ours(SameLevel);
        all.extend(others(Group::SameLevel));
        all
    };
    let higher = || {
        let mut all = ours(HigherLevel);
        all.push(Peer::threaded(("posix", "POSIX"), plain::hand_over));
        all.extend(others(Group::HigherLevel));
        all
    };
    let wake = || {
        let mut all = ours(Wake);
        all.extend(others(Group::Wake));
        all
    };
    let lock = || {
        let mut all = vec![
            Peer::app(PLAIN, apps::plain::measure, Lock),
            Peer::threaded(SYNC, plain::pcp_mutex),
            Peer::threaded(("posix", "POSIX"), plain::posix_mutex),
            Peer::threaded(("pcp-mutex", "pcp-mutex 0.2.0"), plain::predecessors_mutex),
        ];
        all.extend(others(Group::Lock));
        all
    };
    let timers = || {
        vec![
            Peer::app(("none", "Punctual, none"), apps::plain::measure, SameLevel),
            Peer::app(("one", "Punctual, 1"), apps::plain::measure, TimersArmed(1)),
            Peer::app(("thousand", "Punctual, 1000"), apps::plain::measure, TimersArmed(1000)),
            Peer::app(("none-monitored", "as by default, none"), apps::monitored::measure, SameLevel),
            Peer::app(
                ("thousand-monitored", "as by default, 1000"),
                apps::monitored::measure,
                TimersArmed(1000),
            ),
        ]
    };
    let due = || {
        vec![
            Peer::app(("hundred", "Punctual, 100"), apps::plain::measure, DueAtOnce).always(100),
            Peer::app(("thousand", "Punctual, 1000"), apps::plain::measure, DueAtOnce).always(1000),
        ]
    };
    let arm = || vec![Peer::app(PLAIN, apps::plain::measure, ArmAndCancel)];
    let queue = || {
        let mut all = vec![
            Peer::threaded(SYNC, plain::ring),
            Peer::threaded(("timed-queue", "TimedQueue"), plain::timed_queue),
        ];
        all.extend(others(Group::Queue));
        all
    };
    vec![
        step("spawn to run, same level", "same-level", "Spawn to run, same level", same),
        step("spawn to run, higher level", "higher-level", "Spawn to run, higher level", higher),
        step("wake of an async task", "wake", "Wake of an async task, to the end of its poll", wake),
        step("lock and unlock", "lock", "Lock + unlock", lock),
        step(
            "spawn with armed timers",
            "timers-armed",
            "Spawn to run, same level, with so many timers armed there",
            timers,
        ),
        step("timers due at once", "timers-due", "Each of so many timers due at once, with its job", due),
        step("arm and cancel", "arm-cancel", "spawn_at + cancel", arm),
        step("queues", "queue", "Queue, an item in and out on one thread", queue),
        Step::new("channels between two CPUs", channels),
    ]
}

/// Operations with equivalents in other crates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    SameLevel,
    HigherLevel,
    Wake,
    Lock,
    Queue,
    /// Between two running threads on two CPUs.
    Channel,
}

#[cfg(feature = "peers")]
use peers::others;

/// The other crates are not available.
#[cfg(not(feature = "peers"))]
fn others(_: Group) -> Vec<Peer> {
    Vec::new()
}

fn step(
    what: &'static str,
    slug: &'static str,
    operation: &'static str,
    peers: impl Fn() -> Vec<Peer> + 'static,
) -> Step {
    Step::new(what, move |session| measure(session, slug, operation, peers()))
}

/// Measures all subjects of a group in turns, and L with them.
fn measure(session: &mut Session<'_>, slug: &str, operation: &str, peers: Vec<Peer>) {
    if cfg!(not(feature = "peers")) {
        session.note(
            "Built without the feature `peers`, so without linux-rtic, embassy-executor, tokio, crossbeam, rtrb and heapless.",
        );
    }
    let (cpu, clock) = (session.plan.cpu, session.clock);
    let windows = session.samples().min(if session.plan.quick { QUICK_WINDOWS } else { WINDOWS });
    let published = match slug {
        "same-level" => published::rtic(Rtic::SameLevel),
        "higher-level" => published::rtic(Rtic::LevelsOneCpu),
        _ => Vec::new(),
    };
    let locked = Peer::threaded(("locked", "L: one locked instruction"), locked);
    let first = session.rows();
    let contenders = peers.into_iter().chain([locked]).map(|peer| {
        let row = Row::new(NAME, slug, operation, Subject::Punctual);
        let id = row.id.replace("/punctual", &format!("/{}", peer.slug));
        let row = Row { id, subject: peer.name.into(), ..row }.published(published.clone());
        // Determined in the first window, which is discarded: it also warms up.
        let operations = Cell::new(peer.operations);
        Contender::new(row, Unit::Picos, move |window| {
            let mut lack = Lack::new();
            let count = match operations.get() {
                Some(count) => count,
                None => {
                    let (ticks, _) = (peer.measure)(cpu, *OPERATIONS.start() * 8)?;
                    let one_ns = clock.ns(ticks) / f64::from(*OPERATIONS.start() * 8);
                    let fit = (WINDOW_NS / one_ns.max(0.1)) as u32;
                    let count = fit.clamp(*OPERATIONS.start(), *OPERATIONS.end());
                    operations.set(Some(count));
                    count
                }
            };
            while !window.is_over() {
                let (ticks, lacks) = (peer.measure)(cpu, count)?;
                if lack.is_empty() {
                    lack = lacks;
                }
                window.recorder.push(clock.ps(ticks) / u64::from(count));
            }
            Ok(lack)
        })
    });
    let contenders = contenders.collect();
    alternate(session, windows, contenders);
    in_locked(session, first);
}

/// Adds to each row since `first` its median in units of L, whose row is the last.
fn in_locked(session: &mut Session<'_>, first: usize) {
    let rows = session.rows_since(first);
    let Some((locked, rows)) = rows.split_last_mut() else { return };
    let Some(locked_ns) = locked.figures.as_ref().map(|figures| figures.p50_ns).filter(|ns| *ns > 0.0) else {
        return;
    };
    for row in rows {
        if let Some(figures) = &row.figures {
            let value = figures.p50_ns / locked_ns;
            row.quantities.push(Quantity { name: "median".into(), value, unit: L.into() });
        }
    }
}

/// Measures items that one running thread sends to another on another CPU and back, through polled
/// channels.
fn channels(session: &mut Session<'_>) {
    let Some(other) = session.plan.other_cpu else {
        return session.note("Channels between two CPUs: this process may use only one CPU.");
    };
    let mut all = vec![Peer::new(SYNC, move |cpu, operations| {
        Ok((plain::ring_ping_pong([cpu, other], operations), Lack::new()))
    })];
    all.extend(others(Group::Channel));
    #[cfg(feature = "peers")]
    peers::OTHER_CPU.store(other, Ordering::Relaxed);
    measure(session, "channel", "Channel, two CPUs, both awake, one way", all);
}

/// Executes one locked instruction after another.
fn locked(operations: u32) -> u64 {
    let word = AtomicU64::new(0);
    timed(operations, |_| {
        black_box(&word).fetch_add(1, Ordering::AcqRel);
    })
}

/// Returns the ticks for doing something this many times.
fn timed(operations: u32, mut what: impl FnMut(u32)) -> u64 {
    let from = clock::now();
    for operation in 0..operations {
        what(black_box(operation));
    }
    clock::now() - from
}
