//! Statistics of one task.

use super::quantity::{Quantity, Summary};
use super::recent::CapturedJob;
use crate::jobs::{Actor, Bounds, Flaw, FutexRole, Job, JobKind, Reservation, Term};
use crate::names::Names;

/// Maximum number of unfinished jobs stored for each task, which several threads may run.
const MAX_UNENDED: usize = 8;

/// Task of a job: the one that its app named, or its thread or handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Kind of its jobs.
    pub kind: JobKind,
    /// Actor: [`Actor::Task`] for jobs marked by an app, on any thread.
    pub actor: Actor,
}

impl Key {
    /// Returns the key of a job.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        Self { kind: job.kind, actor: job.task.map_or(job.actor, Actor::Task) }
    }

    /// Packs the key into a number, distinct for distinct keys.
    pub(super) fn packed(self) -> u64 {
        let (tag, number) = match self.actor {
            Actor::Thread(tid) => (0, tid),
            Actor::Irq(irq) => (1, irq),
            Actor::Vector(vector) => (2, u32::from(vector)),
            Actor::Softirq(softirq) => (3, u32::from(softirq)),
            Actor::Task(task) => (4, u32::from(task)),
            Actor::Others => (5, 0),
            Actor::Unseen => (6, 0),
            Actor::Throttling => (7, 0),
        };
        (self.kind as u64) << 40 | tag << 32 | u64::from(number)
    }
}

/// Report row of a job. The jobs of a thread at real-time priorities and those at ordinary ones are
/// different tasks, and so are the jobs of successive threads with the same ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// Thread, handler or task of an app.
    pub key: Key,
    /// Number of earlier threads with the same ID; 0 for other actors.
    pub incarnation: u32,
    /// True if the thread had an ordinary priority.
    pub ordinary: bool,
}

impl TaskId {
    /// Returns the row of a job.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        let key = Key::of(job);
        match key.actor {
            Actor::Thread(_) => Self { key, incarnation: job.incarnation, ordinary: job.priority > 98 },
            _ => Self { key, incarnation: 0, ordinary: false },
        }
    }

    /// Packs the ID into a number, distinct for distinct tasks, up to a million reuses of a thread
    /// ID.
    pub(super) fn packed(self) -> u64 {
        // A key takes 43 bits.
        self.key.packed() | u64::from(self.incarnation & 0xf_ffff) << 43 | u64::from(self.ordinary) << 63
    }
}

/// Statistics of a task. Jobs with a flaw are counted but otherwise excluded.
#[derive(Debug, Clone)]
pub struct TaskStats {
    id: TaskId,
    /// End of the last job.
    last: u64,
    /// Highest and lowest priority of its jobs, as the kernel counts.
    priorities: Option<(i32, i32)>,
    jobs: u64,
    flawed: u64,
    misses: u64,
    reservation: Option<Reservation>,
    throttled: u64,
    migrations: u64,
    preemptions: u64,
    quantities: [Quantity; Term::ALL.len()],
    worst: Vec<CapturedJob>,
    sample: Vec<CapturedJob>,
    /// Distance between sampled jobs.
    stride: u64,
    unended: Vec<Job>,
    /// Number of jobs with likely values, and their maximum SS and C.
    likely: (u64, u64, u64),
    on_conditions: u64,
    likely_locks: u64,
    doubtful_locks: u64,
    /// Number of jobs that began or continued by a switch that was not recorded.
    bounded: u64,
}

/// Severity of a job: its response time, or its running time if its release is unknown.
fn severity(job: &Job) -> u64 {
    let known = |value: Bounds| value.hi().or(value.lo());
    known(job.response).or(known(job.window)).unwrap_or(0)
}

impl TaskStats {
    /// Creates empty statistics.
    #[must_use]
    pub fn new(id: TaskId) -> Self {
        let quantities = std::array::from_fn(|_| Quantity::default());
        Self {
            id,
            last: 0,
            priorities: None,
            jobs: 0,
            flawed: 0,
            misses: 0,
            reservation: None,
            throttled: 0,
            migrations: 0,
            preemptions: 0,
            quantities,
            worst: Vec::new(),
            sample: Vec::new(),
            stride: 1,
            unended: Vec::new(),
            likely: (0, 0, 0),
            on_conditions: 0,
            likely_locks: 0,
            doubtful_locks: 0,
            bounded: 0,
        }
    }

    /// Adds a job; returns whether it counts.
    pub fn record(&mut self, job: &Job) -> bool {
        self.last = self.last.max(job.end);
        let (first, last) = self.priorities.unwrap_or((job.priority, job.priority));
        if job.complete() || self.priorities.is_none() {
            self.priorities = Some((first.min(job.priority), last.max(job.priority)));
        }
        if !job.complete() {
            self.flawed += 1;
            if job.flaw == Some(Flaw::Cut) && self.unended.len() < MAX_UNENDED {
                self.unended.push(job.clone());
            }
            return false;
        }
        self.jobs += 1;
        self.reservation = job.reservation.or(self.reservation);
        self.throttled += u64::from(job.throttles > 0);
        self.bounded += u64::from(job.bounded_switches > 0);
        self.migrations += u64::from(job.migrations);
        self.preemptions += u64::from(job.preemptions);
        if let (Some(overhead), Some(execution)) = (job.likely_overhead, job.likely_execution()) {
            let (count, ss, c) = self.likely;
            self.likely = (count + 1, ss.max(overhead), c.max(execution));
        }
        self.on_conditions += u64::from(job.ended_on.is_some_and(|(_, role)| !role.is_certain()));
        for role in job.blockings.iter().filter_map(|wait| wait.role) {
            self.likely_locks += u64::from(role == FutexRole::LikelyLock);
            self.doubtful_locks += u64::from(!role.is_lock());
        }
        for (term, quantity) in Term::ALL.into_iter().zip(&mut self.quantities) {
            quantity.record(term.of(job));
        }
        true
    }

    pub(super) fn missed(&mut self) {
        self.misses += 1;
    }

    /// Returns whether a job is among the worst `n` so far.
    pub(super) fn among_worst(&self, job: &Job, n: usize) -> bool {
        n > 0
            && (self.worst.len() < n
                || self.worst.last().is_some_and(|last| severity(&last.job) < severity(job)))
    }

    /// Stores a job; returns the one it replaces.
    pub(super) fn keep(&mut self, captured: CapturedJob, n: usize) -> Option<CapturedJob> {
        let place = self.worst.partition_point(|other| severity(&other.job) >= severity(&captured.job));
        self.worst.insert(place, captured);
        if self.worst.len() > n { self.worst.pop() } else { None }
    }

    /// Returns whether the job recorded last belongs to a sample of at most `n`, spread evenly over
    /// all jobs.
    pub(super) fn is_next_in_sample(&self, n: usize) -> bool {
        n > 1 && (self.jobs - 1).is_multiple_of(self.stride)
    }

    /// Adds a job to the sample; returns those dropped from it.
    pub(super) fn add_to_sample(&mut self, captured: CapturedJob, n: usize) -> Vec<CapturedJob> {
        self.sample.push(captured);
        if self.sample.len() <= n {
            return Vec::new();
        }
        // Halves the sampling rate by dropping every other sample.
        self.stride *= 2;
        let mut gone = Vec::new();
        for (index, captured) in std::mem::take(&mut self.sample).into_iter().enumerate() {
            if index % 2 == 0 { &mut self.sample } else { &mut gone }.push(captured);
        }
        gone
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> Key {
        self.id.key
    }

    /// Returns the ID, which distinguishes the tasks of one key.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Returns the highest and lowest priority of its jobs at their releases, as the kernel counts.
    #[must_use]
    pub fn priorities(&self) -> Option<(i32, i32)> {
        self.priorities
    }

    /// Returns the names at the end of the last job.
    #[must_use]
    pub fn names(&self, names: &Names) -> Names {
        names.at(self.last)
    }

    /// Returns the number of jobs that count.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Returns the number of jobs excluded for a flaw.
    #[must_use]
    pub fn flawed(&self) -> u64 {
        self.flawed
    }

    /// Returns the number of jobs that certainly missed their deadline, if the task has one.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Returns the last SCHED_DEADLINE reservation of its thread.
    #[must_use]
    pub fn reservation(&self) -> Option<Reservation> {
        self.reservation
    }

    /// Returns the number of throttled jobs: those of a SCHED_DEADLINE thread that used up its
    /// runtime.
    #[must_use]
    pub fn throttled(&self) -> u64 {
        self.throttled
    }

    /// Returns the number of migrations of all jobs.
    #[must_use]
    pub fn migrations(&self) -> u64 {
        self.migrations
    }

    /// Returns the number of preemptions of all jobs by threads.
    #[must_use]
    pub fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// Returns a term over all jobs.
    #[must_use]
    pub fn quantity(&self, term: Term) -> &Quantity {
        &self.quantities[term as usize]
    }

    /// Returns the summary of a term.
    #[must_use]
    pub fn summary(&self, term: Term) -> Summary {
        self.quantity(term).summary()
    }

    /// Returns the maximum likely SS and C, and the number of jobs, if these are known only within
    /// bounds.
    #[must_use]
    pub fn likely(&self) -> Option<(u64, u64, u64)> {
        let (count, overhead, execution) = self.likely;
        (count > 0).then_some((overhead, execution, count))
    }

    /// Returns the number of jobs that ended in a wait on a futex that was taken for a condition
    /// variable, a semaphore or the like.
    #[must_use]
    pub fn ended_on_likely_conditions(&self) -> u64 {
        self.on_conditions
    }

    /// Returns the number of futex waits that were taken for waits for locks.
    #[must_use]
    pub fn waits_for_likely_locks(&self) -> u64 {
        self.likely_locks
    }

    /// Returns the number of futex waits that count as blocking although they do not resemble waits
    /// for locks.
    #[must_use]
    pub fn waits_for_doubtful_locks(&self) -> u64 {
        self.doubtful_locks
    }

    /// Returns the number of jobs that lack a switch from the idle thread, which two events bound.
    #[must_use]
    pub fn jobs_with_bounded_switches(&self) -> u64 {
        self.bounded
    }

    /// Returns jobs that were unfinished at the end, a few at most.
    #[must_use]
    pub fn unended(&self) -> &[Job] {
        &self.unended
    }

    /// Returns evenly spaced captured jobs, in the order of their ends, as ordinary examples, if
    /// the [watch](super::Watch::sample) was configured to sample.
    #[must_use]
    pub fn sampled(&self) -> &[CapturedJob] {
        &self.sample
    }

    /// Returns the captured worst jobs, longest first.
    #[must_use]
    pub fn worst(&self) -> &[CapturedJob] {
        &self.worst
    }
}
