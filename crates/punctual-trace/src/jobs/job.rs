//! A finished job and its terms.

pub use punctual_process::scheduling::Reservation;

use super::blocking::Blocking;
use super::bounds::Bounds;
use super::cause::{Actor, Cause};
use super::disabled::DisabledSection;
use super::futexes::FutexRole;

/// Kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobKind {
    /// Of a thread, from its release until it sleeps or marks the end.
    Thread,
    /// Of a thread that serves an interrupt (`irq/24-eth0`).
    IrqThread,
    /// One run of a device interrupt handler.
    Irq,
    /// One run of an interrupt vector handler.
    Vector,
    /// One run of a softirq.
    Softirq,
    /// A job on a CPU without Linux, reported by its app. Everything is known about it, except the
    /// jobs that preempted it.
    Offline,
}

/// Source of the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleasedBy {
    /// The expiry time of a timer.
    Timer,
    /// The mark of a Punctual app.
    Mark,
    /// The wake-up.
    Wake,
    /// The wake-up of a newly created thread.
    New,
    /// The next period of a SCHED_DEADLINE thread that had yielded: the instant of its
    /// replenishment.
    Budget,
    /// Unknown: the handler ran, or the thread was found running.
    Unseen,
}

/// The waker of a thread, for the arrow in a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waker {
    /// A thread, or the innermost handler that ran there.
    pub actor: Actor,
    /// The thread that was running, even if a handler was the waker.
    pub thread: u32,
    /// CPU of the waker.
    pub cpu: u16,
    /// Time of the wake-up.
    pub time: u64,
}

/// Reason why a job is not trusted. Such jobs are excluded from statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Events were lost while it was open.
    Lost,
    /// Events contradict each other, or the wake-up is missing, as after an unreported loss.
    Contradiction,
    /// The job was still open at the end of the trace, or still is: terms are at least their values
    /// so far.
    Cut,
}

/// Phase of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Released and not yet started: J.
    Jitter,
    /// Executing: C.
    Execution,
    /// Executing or scheduling, which the trace does not distinguish.
    ExecutionOrOverhead,
    /// Scheduling: SS.
    Overhead,
    /// Waiting for a lock: B.
    Blocking,
    /// Displaced: I.
    Interference,
    /// Suspended by its own action: counted in C.
    Suspended,
}

/// A term of a job, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// R
    Response,
    /// J
    Jitter,
    /// SS
    Overhead,
    /// W
    Window,
    /// B
    Blocking,
    /// I
    Interference,
    /// C
    Execution,
}

/// Row of the table of terms: statistics, exporters and explanations iterate over [`Term::ALL`] and
/// read everything else from here.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// Letter in tables, key in JSON, CSS class, and, in lower case, prefix of CSV columns.
    pub letter: &'static str,
    /// Name.
    pub name: &'static str,
    /// Predicate of a sentence about a job, unless a report has one that names causes.
    pub predicate: &'static str,
    /// Value of a job.
    pub value: fn(&Job) -> Bounds,
    /// Likely value where the bounds differ.
    pub likely: Option<fn(&Job) -> Option<u64>>,
    /// Exported and drawn parts.
    pub parts: &'static [Part],
    /// Terms that add up to it.
    pub summands: &'static [Term],
    /// Caption of its maximum among the key figures of a page.
    pub headline: Option<&'static str>,
}

impl Definition {
    const fn new(
        letter: &'static str,
        name: &'static str,
        predicate: &'static str,
        value: fn(&Job) -> Bounds,
    ) -> Self {
        Self { letter, name, predicate, value, likely: None, parts: &[], summands: &[], headline: None }
    }
}

/// Part of a term.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Name, in columns and keys after the letter of the term.
    pub name: &'static str,
    /// Meaning, for people.
    pub meaning: &'static str,
    /// Value of a job.
    pub value: fn(&Job) -> Bounds,
}

impl Term {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Response,
        Self::Jitter,
        Self::Overhead,
        Self::Window,
        Self::Blocking,
        Self::Interference,
        Self::Execution,
    ];

    /// Returns its row of the table.
    #[must_use]
    pub const fn definition(self) -> Definition {
        match self {
            Self::Response => Definition {
                summands: &[Self::Jitter, Self::Window],
                headline: Some("Longest response"),
                ..Definition::new("R", "response time", "from release to end", |job| job.response)
            },
            Self::Jitter => Definition {
                headline: Some("Longest jitter"),
                ..Definition::new("J", "release jitter", "released and not yet running", |job| job.jitter)
            },
            Self::Overhead => Definition {
                likely: Some(|job| job.likely_overhead),
                parts: &[
                    Part {
                        name: "entry",
                        meaning: "after switches to the thread",
                        value: |job| job.overhead_entry,
                    },
                    Part {
                        name: "exit",
                        meaning: "before switches away from it",
                        value: |job| job.overhead_exit,
                    },
                ],
                ..Definition::new("SS", "scheduling overhead", "in the scheduler", |job| job.overhead)
            },
            Self::Window => Definition {
                // The conventional order of the equation.
                summands: &[Self::Blocking, Self::Interference, Self::Overhead, Self::Execution],
                ..Definition::new("W", "busy window", "from its first run to its end", |job| job.window)
            },
            Self::Blocking => Definition {
                headline: Some("Longest blocking"),
                ..Definition::new("B", "blocking", "waiting for locks", |job| job.blocking)
            },
            Self::Interference => Definition {
                headline: Some("Longest interference"),
                ..Definition::new("I", "interference", "displaced", |job| job.interference)
            },
            Self::Execution => Definition {
                likely: Some(Job::likely_execution),
                ..Definition::new("C", "execution", "executing", |job| job.execution)
            },
        }
    }

    /// Returns its letter.
    #[must_use]
    pub fn letter(self) -> &'static str {
        self.definition().letter
    }

    /// Returns its name.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.definition().name
    }

    /// Returns its value for a job.
    #[must_use]
    pub fn of(self, job: &Job) -> Bounds {
        (self.definition().value)(job)
    }

    /// Returns the likely value for a job, which is not certain, if only bounds are known.
    #[must_use]
    pub fn likely(self, job: &Job) -> Option<u64> {
        self.definition().likely.and_then(|likely| likely(job))
    }

    /// Returns the terms that add up to it; none if it is elementary.
    #[must_use]
    pub fn summands(self) -> &'static [Self] {
        self.definition().summands
    }
}

/// An interval of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// Start.
    pub start: u64,
    /// End.
    pub end: u64,
    /// The CPU it ran on, or last ran on.
    pub cpu: u16,
    /// Phase during the interval.
    pub phase: Phase,
}

/// One activation of a task, decomposed.
///
/// `response = jitter + window` and `execution = response - jitter - overhead - blocking -
/// interference` hold for every job: see [`Job::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Index among all jobs of the analysis, from 0.
    pub number: u64,
    /// Kind of job.
    pub kind: JobKind,
    /// Thread or handler.
    pub actor: Actor,
    /// Number of earlier threads with the thread's ID, as far as the trace shows.
    pub incarnation: u32,
    /// The task of a Punctual app, if it marked the job.
    pub task: Option<u16>,
    /// Priority of the thread at the release, as the kernel counts.
    pub priority: i32,
    /// Highest priority it had, including inherited ones; as the kernel counts, so the lowest
    /// number.
    pub highest: i32,
    /// Earliest and latest possible release; equal if known exactly. It may have been released
    /// earlier still if only a lower bound of [J](Self::jitter) is known.
    pub released: Option<(u64, u64)>,
    /// Source of the release.
    pub released_by: ReleasedBy,
    /// Wake-up of the thread; later than the release if a timer was late.
    pub woken: Option<u64>,
    /// The waker.
    pub waker: Option<Waker>,
    /// Time at which it first ran.
    pub start: u64,
    /// Uncertainty of the start in ns: it started this much before `start` or later, because the
    /// switch to it was not recorded.
    pub start_slack: u64,
    /// Time of its end.
    pub end: u64,
    /// If it ended in a wait on a futex that is not taken for a lock: the word's address, and its
    /// presumed role.
    pub ended_on: Option<(u64, FutexRole)>,
    /// True if it ran at all. If not, it was [cut](Flaw::Cut), and `start` is the end of the trace.
    pub started: bool,
    /// CPU on which it started.
    pub first_cpu: u16,
    /// CPU on which it ended.
    pub last_cpu: u16,
    /// R, from release to end.
    pub response: Bounds,
    /// J, from release to start.
    pub jitter: Bounds,
    /// SS, in the scheduler on entry and exit.
    pub overhead: Bounds,
    /// Likely SS if SS is known only within bounds: each ambiguous entry and exit counts with the
    /// shortest of the thread's last eight that were bounded by a nearby event. Unlike the bounds,
    /// this value is not certain.
    pub likely_overhead: Option<u64>,
    /// The part of SS after a switch to the thread.
    pub overhead_entry: Bounds,
    /// The part of SS before a switch away from it.
    pub overhead_exit: Bounds,
    /// W, from start to end.
    pub window: Bounds,
    /// B, waiting for locks.
    pub blocking: Bounds,
    /// I, displaced by threads and handlers. Without an upper bound, the lower one may include
    /// displacement during unrecorded waits for locks, which belongs to B: only the sum of both
    /// lower bounds is certain.
    pub interference: Bounds,
    /// C, everything else.
    pub execution: Bounds,
    /// Part of C in which it was suspended by its own action, if that does not end jobs.
    pub suspended: u64,
    /// SCHED_DEADLINE reservation of its thread, if known.
    pub reservation: Option<Reservation>,
    /// Part of J and I in which it was throttled, as a SCHED_DEADLINE thread that has used up its
    /// runtime.
    pub throttled: u64,
    /// Number of throttlings.
    pub throttles: u32,
    /// Number of switches to it that were not recorded and are bounded by two events.
    pub bounded_switches: u32,
    /// Number of migrations to another CPU.
    pub migrations: u32,
    /// Number of preemptions by threads.
    pub preemptions: u32,
    /// Reason why it is not trusted, if any.
    pub flaw: Option<Flaw>,
    /// Actors that ran on the job's CPU between its wake-up and its start.
    pub jitter_causes: Vec<Cause>,
    /// Longest section that kept the CPU from switching to it, if the trace has `preemptirq`
    /// events.
    pub disabled: Option<DisabledSection>,
    /// Part of C or I taken by NMIs, in ns, as far as the osnoise tracer was running.
    pub nmi: u64,
    /// Actors that displaced it.
    pub interference_causes: Vec<Cause>,
    /// Its waits for locks, in order; if there are many, the longest
    /// [`MAX_BLOCKINGS`](super::MAX_BLOCKINGS).
    pub blockings: Vec<Blocking>,
    /// Number of unlisted waits. B includes them.
    pub blockings_left_out: u32,
    /// Its phases over time, if requested: the first [`MAX_SEGMENTS`](super::MAX_SEGMENTS)
    /// segments.
    pub segments: Vec<Segment>,
}

impl Job {
    /// Returns whether it belongs in statistics.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.flaw.is_none()
    }

    /// Returns the likely C if C is known only within bounds: see
    /// [`likely_overhead`](Self::likely_overhead).
    #[must_use]
    pub fn likely_execution(&self) -> Option<u64> {
        let least = self.overhead.lo()?;
        Some(self.execution.hi()?.saturating_sub(self.likely_overhead?.saturating_sub(least)))
    }

    /// Returns whether it missed the deadline of its reservation; `None` if there is no
    /// reservation, or if that is uncertain.
    #[must_use]
    pub fn missed(&self) -> Option<bool> {
        let deadline = self.reservation?.deadline;
        if self.response.lo()? > deadline {
            return Some(true);
        }
        self.response.hi().filter(|&most| most <= deadline).map(|_| false)
    }

    /// Returns the part of J due to a late timer, before the wake-up; an upper bound if the release
    /// is bounded.
    #[must_use]
    pub fn lateness(&self) -> Option<u64> {
        Some(self.woken?.saturating_sub(self.released?.0))
    }

    /// Checks that the terms add up. Every job that a [`Decomposer`](super::Decomposer) reports has
    /// passed, or has a [`Flaw`].
    ///
    /// # Errors
    /// Returns the equation that fails.
    pub fn check(&self) -> Result<(), &'static str> {
        let window = self.end.checked_sub(self.start);
        let Some(least) = self.window.lo().filter(|&least| Some(least) == window) else {
            return Err("W = end - start");
        };
        if self.window.hi().is_some_and(|most| most != least + self.start_slack) {
            return Err("W is at most end - earliest start");
        }
        if self.response != self.jitter_and_window() {
            return Err("R = J + W");
        }
        self.check_parts_of_window()
    }

    /// Checks the terms that add up to W. R - J is W, however precisely R and J are known.
    pub(super) fn check_parts_of_window(&self) -> Result<(), &'static str> {
        let unsure = if self.window.hi().is_some() { self.start_slack } else { 0 };
        let window = self.window.lo().unwrap_or(0) + unsure;
        let parts = [self.overhead, self.blocking, self.interference];
        let rest = |sum: u64| window.checked_sub(sum);
        let least = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(part.lo().unwrap_or(0)));
        let Some(most_c) = least.and_then(rest) else { return Err("SS, B and I are parts of W") };
        let c = self.execution;
        if let (Bounds::Exact(b), Bounds::Exact(i), Some(ss)) =
            (self.blocking, self.interference, self.overhead.hi())
        {
            // The bounds of C are opposite to those of the other terms.
            if c.hi() != Some(most_c) || c.lo() != rest(ss + b + i) {
                return Err("C = R - J - SS - B - I");
            }
        } else if c.lo().unwrap_or(0).max(c.hi().unwrap_or(0)) > most_c {
            return Err("C is part of what R - J - SS - B - I leaves");
        }
        if c.hi().is_some_and(|most| self.suspended > most) {
            return Err("suspension is part of C");
        }
        Ok(())
    }

    /// Computes R from J and W: at least W if J is unknown. If the start is not exact, its
    /// uncertainty cancels out in their sum.
    pub(crate) fn jitter_and_window(&self) -> Bounds {
        let Some(window) = self.window.lo() else { return Bounds::Unknown };
        let Some(jitter) = self.jitter.lo() else { return Bounds::at_least(window) };
        let earliest = self.start.saturating_sub(self.start_slack);
        // It did not start before its release.
        let released =
            self.released.map_or(earliest, |released| released.1.clamp(earliest, self.start.max(earliest)));
        let least = jitter.saturating_add(window).saturating_add(self.start.saturating_sub(released));
        match self.jitter.hi().zip(self.window.hi()) {
            Some((jitter, _)) => Bounds::between(least, jitter.saturating_add(window)),
            None => Bounds::AtLeast(least),
        }
    }

    /// Creates an empty job: all instants are 0, and all terms unknown.
    #[must_use]
    pub fn empty(actor: Actor, kind: JobKind) -> Self {
        Self {
            number: 0,
            kind,
            actor,
            incarnation: 0,
            task: None,
            priority: 0,
            highest: 0,
            released: None,
            released_by: ReleasedBy::Unseen,
            woken: None,
            waker: None,
            start: 0,
            start_slack: 0,
            end: 0,
            ended_on: None,
            started: true,
            first_cpu: 0,
            last_cpu: 0,
            response: Bounds::Unknown,
            jitter: Bounds::Unknown,
            overhead: Bounds::Unknown,
            likely_overhead: None,
            overhead_entry: Bounds::Unknown,
            overhead_exit: Bounds::Unknown,
            window: Bounds::Unknown,
            blocking: Bounds::Unknown,
            interference: Bounds::Unknown,
            execution: Bounds::Unknown,
            suspended: 0,
            reservation: None,
            throttled: 0,
            throttles: 0,
            bounded_switches: 0,
            migrations: 0,
            preemptions: 0,
            flaw: None,
            jitter_causes: Vec::new(),
            disabled: None,
            nmi: 0,
            interference_causes: Vec::new(),
            blockings: Vec::new(),
            blockings_left_out: 0,
            segments: Vec::new(),
        }
    }
}
