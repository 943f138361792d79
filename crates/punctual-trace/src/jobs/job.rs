//! A finished job and what it is made of.

use super::blocking::Blocking;
use super::bounds::Bounds;
use super::cause::{Actor, Cause};
use super::disabled::DisabledSection;
use super::futexes::FutexRole;
use super::reservation::Reservation;

/// What sort of job it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobKind {
    /// A thread's, from its release until it sleeps or marks the end.
    Thread,
    /// A thread's that serves an interrupt (`irq/24-eth0`).
    IrqThread,
    /// One run of a device interrupt's handler.
    Irq,
    /// One run of the handler of an interrupt vector.
    Vector,
    /// One run of a softirq.
    Softirq,
    /// One on a CPU without Linux, of which its app tells. Everything is known of it, but not who preempted it.
    Offline,
}

/// What determined the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleasedBy {
    /// The expiry time of a timer.
    Timer,
    /// The mark of a Punctual app.
    Mark,
    /// The wake-up.
    Wake,
    /// The wake-up of a thread that has just been created.
    New,
    /// The next period of a SCHED_DEADLINE thread that had yielded: the instant of its replenishment.
    Budget,
    /// It was not seen: the handler ran, or the thread was found running.
    Unseen,
}

/// Who woke the thread, for the arrow in a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waker {
    /// Who: a thread, or the innermost handler that ran there.
    pub actor: Actor,
    /// The thread that was running, even if a handler did it.
    pub thread: u32,
    /// On which CPU.
    pub cpu: u16,
    /// When.
    pub time: u64,
}

/// Why a job is not to be trusted. Such jobs stay out of statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Events were lost while it was open.
    Lost,
    /// Events contradict each other, or the wake-up is missing, as after a loss nobody reported.
    Contradiction,
    /// It was still open at the end of the trace, or still is: terms are at least their values so far.
    Cut,
}

/// What a job was doing in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Released and not yet started: J.
    Jitter,
    /// Executing: C.
    Execution,
    /// Executing or scheduling, which the trace does not tell apart.
    ExecutionOrOverhead,
    /// Scheduling: SS.
    Overhead,
    /// Waiting for a lock: B.
    Blocking,
    /// Displaced: I.
    Interference,
    /// Asleep of its own accord: counted in C.
    Suspended,
}

/// A stretch of a job's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// From when.
    pub start: u64,
    /// Until when.
    pub end: u64,
    /// The CPU it ran on, or last ran on.
    pub cpu: u16,
    /// Doing what.
    pub phase: Phase,
}

/// One activation of a task, decomposed.
///
/// `response = jitter + window` and `execution = response - jitter - overhead - blocking - interference` hold for every
/// job: see [`Job::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its number among all jobs of the analysis, from 0.
    pub number: u64,
    /// What sort it is.
    pub kind: JobKind,
    /// The thread or the handler.
    pub actor: Actor,
    /// How many threads had the thread's number before it, as far as the trace shows.
    pub life: u32,
    /// The task of a Punctual app, if it marked the job.
    pub task: Option<u16>,
    /// The thread's priority when it was released, as the kernel counts.
    pub priority: i32,
    /// The highest priority it had, inherited ones included; as the kernel counts, so the least number.
    pub highest: i32,
    /// Earliest and latest instant at which it can have been released; the same if known exactly. It may have been
    /// released earlier still if [J](Self::jitter) is known to be at least so much only.
    pub released: Option<(u64, u64)>,
    /// From what that is known.
    pub released_by: ReleasedBy,
    /// When the thread was woken; it lies after the release if a timer was late.
    pub woken: Option<u64>,
    /// By whom.
    pub waker: Option<Waker>,
    /// When it first ran.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// If it ended in a wait on a futex that is not taken for a lock: the word's address, and what it is taken for.
    pub ended_on: Option<(u64, FutexRole)>,
    /// Whether it ran at all. If not, it was [cut](Flaw::Cut), and `start` is the end of the trace.
    pub started: bool,
    /// The CPU it started on.
    pub first_cpu: u16,
    /// The CPU it ended on.
    pub last_cpu: u16,
    /// R, from release to end.
    pub response: Bounds,
    /// J, from release to start.
    pub jitter: Bounds,
    /// SS, in the scheduler on entry and exit.
    pub overhead: Bounds,
    /// What SS likely is where it is known within bounds only: as if each entry and exit that nothing tells from execution took
    /// what the shortest of the thread's last eight took of which an event beside them tells. Not certain, unlike the bounds.
    pub likely_overhead: Option<u64>,
    /// The part of SS after a switch to the thread.
    pub overhead_entry: Bounds,
    /// The part of SS before a switch away from it.
    pub overhead_exit: Bounds,
    /// W, from start to end.
    pub window: Bounds,
    /// B, waiting for locks.
    pub blocking: Bounds,
    /// I, displaced by threads and handlers.
    pub interference: Bounds,
    /// C, everything else.
    pub execution: Bounds,
    /// How much of C it was asleep of its own accord, if that does not end jobs.
    pub suspended: u64,
    /// What its thread has reserved under SCHED_DEADLINE, if that is known.
    pub reservation: Option<Reservation>,
    /// How much of J and I it was throttled, as a SCHED_DEADLINE thread is that has used up its runtime.
    pub throttled: u64,
    /// How often.
    pub throttles: u32,
    /// How often it was moved to another CPU.
    pub migrations: u32,
    /// How often it was displaced by a thread.
    pub preemptions: u32,
    /// Why it is not to be trusted, if so.
    pub flaw: Option<Flaw>,
    /// Who ran on the job's CPU between its wake-up and its start.
    pub jitter_causes: Vec<Cause>,
    /// What kept the CPU from turning to it, if the trace has `preemptirq` events.
    pub disabled: Option<DisabledSection>,
    /// How much of C or I were NMIs, in ns, as far as the osnoise tracer ran meanwhile.
    pub nmi: u64,
    /// Who displaced it.
    pub interference_causes: Vec<Cause>,
    /// Its waits for locks, in order; if there are many, the longest [`MAX_BLOCKINGS`](super::MAX_BLOCKINGS).
    pub blockings: Vec<Blocking>,
    /// How many waits are not listed. B counts them.
    pub blockings_left_out: u32,
    /// What it did when, if asked for: the first [`MAX_SEGMENTS`](super::MAX_SEGMENTS) stretches.
    pub segments: Vec<Segment>,
}

impl Job {
    /// Whether it belongs in statistics.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.flaw.is_none()
    }

    /// What C likely is where it is known within bounds only: see [`likely_overhead`](Self::likely_overhead).
    #[must_use]
    pub fn likely_execution(&self) -> Option<u64> {
        let least = self.overhead.lo()?;
        Some(self.execution.hi()?.saturating_sub(self.likely_overhead?.saturating_sub(least)))
    }

    /// Whether it has missed the deadline of its reservation; nothing if there is none, or that is not certain.
    #[must_use]
    pub fn missed(&self) -> Option<bool> {
        let deadline = self.reservation?.deadline;
        if self.response.lo()? > deadline {
            return Some(true);
        }
        self.response.hi().filter(|&most| most <= deadline).map(|_| false)
    }

    /// The part of J due to a late timer, before the wake-up; an upper bound if the release is bounded.
    #[must_use]
    pub fn lateness(&self) -> Option<u64> {
        Some(self.woken?.saturating_sub(self.released?.0))
    }

    /// Checks that the terms add up. Every job that a [`Decomposer`](super::Decomposer) hands out has passed, or has a
    /// [`Flaw`].
    ///
    /// # Errors
    /// Names the equation that fails.
    pub fn check(&self) -> Result<(), &'static str> {
        let window = match self.window {
            Bounds::Exact(window) | Bounds::AtLeast(window) => window,
            _ => return Err("W is exact, or at least so much"),
        };
        if self.end.checked_sub(self.start) != Some(window) {
            return Err("W = end - start");
        }
        if self.response != self.jitter.plus(self.window) {
            return Err("R = J + W");
        }
        // R - J is W, whatever is known of R and J.
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

    /// An empty job.
    pub(crate) fn empty(actor: Actor, kind: JobKind) -> Self {
        Self {
            number: 0,
            kind,
            actor,
            life: 0,
            task: None,
            priority: 0,
            highest: 0,
            released: None,
            released_by: ReleasedBy::Unseen,
            woken: None,
            waker: None,
            start: 0,
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
