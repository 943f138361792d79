//! All jobs of one task.

use std::borrow::Cow;

use super::quantity::{Quantity, Summary};
use super::recent::CapturedJob;
use crate::jobs::{Actor, Bounds, Flaw, FutexRole, Job, JobKind, Reservation};
use crate::names::Names;

/// So many jobs that had not ended are kept of each task, which several threads may run.
const MAX_UNENDED: usize = 8;

/// Which task a job belongs to: the one its app named, or else its thread or handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// What sort of jobs.
    pub kind: JobKind,
    /// Whose: [`Actor::Task`] for jobs that an app has marked, whichever thread ran them.
    pub actor: Actor,
}

impl Key {
    /// That of a job.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        Self { kind: job.kind, actor: job.task.map_or(job.actor, Actor::Task) }
    }

    /// As one number, different for different keys.
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

/// Which row of a report a job belongs to. The jobs of a thread at real-time priorities and those at ordinary ones are
/// different tasks, and so are those of threads that had one number in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// The thread, handler or task of an app.
    pub key: Key,
    /// How many threads had the number before; 0 of others.
    pub life: u32,
    /// Whether the thread had an ordinary priority.
    pub ordinary: bool,
}

impl TaskId {
    /// That of a job.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        let key = Key::of(job);
        match key.actor {
            Actor::Thread(_) => Self { key, life: job.life, ordinary: job.priority > 98 },
            _ => Self { key, life: 0, ordinary: false },
        }
    }

    /// As a number, different for different tasks, up to a million that had one number in turn.
    pub(super) fn packed(self) -> u64 {
        // A key takes 43 bits.
        self.key.packed() | u64::from(self.life & 0xf_ffff) << 43 | u64::from(self.ordinary) << 63
    }
}

/// A term of a job.
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

    /// Its letter.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            Self::Response => "R",
            Self::Jitter => "J",
            Self::Overhead => "SS",
            Self::Window => "W",
            Self::Blocking => "B",
            Self::Interference => "I",
            Self::Execution => "C",
        }
    }

    /// What it is called.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Response => "response time",
            Self::Jitter => "release jitter",
            Self::Overhead => "scheduling overhead",
            Self::Window => "busy window",
            Self::Blocking => "blocking",
            Self::Interference => "interference",
            Self::Execution => "execution",
        }
    }

    /// That of a job.
    #[must_use]
    pub fn of(self, job: &Job) -> Bounds {
        match self {
            Self::Response => job.response,
            Self::Jitter => job.jitter,
            Self::Overhead => job.overhead,
            Self::Window => job.window,
            Self::Blocking => job.blocking,
            Self::Interference => job.interference,
            Self::Execution => job.execution,
        }
    }
}

/// The statistics of a task. Jobs with a flaw are counted and otherwise left out.
#[derive(Debug, Clone)]
pub struct TaskStats {
    id: TaskId,
    /// What the thread was called.
    name: Option<String>,
    /// The most and the least urgent priority of its jobs, as the kernel counts.
    priorities: Option<(i32, i32)>,
    jobs: u64,
    flawed: u64,
    misses: u64,
    reservation: Option<Reservation>,
    throttled: u64,
    migrations: u64,
    preemptions: u64,
    quantities: [Quantity; 7],
    worst: Vec<CapturedJob>,
    sample: Vec<CapturedJob>,
    /// Every so many jobs, one is in the sample.
    stride: u64,
    unended: Vec<Job>,
    /// Of how many jobs there are likely values, and the greatest of SS and of C.
    likely: (u64, u64, u64),
    on_conditions: u64,
    likely_locks: u64,
    doubtful_locks: u64,
}

/// How bad a job is: how long it took, or how long it ran where its release is unknown.
fn severity(job: &Job) -> u64 {
    let known = |value: Bounds| value.hi().or(value.lo());
    known(job.response).or(known(job.window)).unwrap_or(0)
}

impl TaskStats {
    /// None yet.
    #[must_use]
    pub fn new(id: TaskId) -> Self {
        let quantities = std::array::from_fn(|_| Quantity::default());
        Self {
            id,
            name: None,
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
        }
    }

    /// Adds a job; returns whether it counts.
    pub fn record(&mut self, job: &Job) -> bool {
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

    /// Whether a job is among the worst `n` so far.
    pub(super) fn among_worst(&self, job: &Job, n: usize) -> bool {
        n > 0
            && (self.worst.len() < n
                || self.worst.last().is_some_and(|last| severity(&last.job) < severity(job)))
    }

    /// Keeps a job; returns the one it displaces.
    pub(super) fn keep(&mut self, captured: CapturedJob, n: usize) -> Option<CapturedJob> {
        let place = self.worst.partition_point(|other| severity(&other.job) >= severity(&captured.job));
        self.worst.insert(place, captured);
        if self.worst.len() > n { self.worst.pop() } else { None }
    }

    /// Whether the job recorded last is to be in a sample of at most `n`, which are spread evenly over all jobs.
    pub(super) fn is_next_in_sample(&self, n: usize) -> bool {
        n > 1 && (self.jobs - 1).is_multiple_of(self.stride)
    }

    /// Adds a job to the sample; returns those that are no longer in it.
    pub(super) fn add_to_sample(&mut self, captured: CapturedJob, n: usize) -> Vec<CapturedJob> {
        self.sample.push(captured);
        if self.sample.len() <= n {
            return Vec::new();
        }
        // Half as dense: every second one goes.
        self.stride *= 2;
        let mut gone = Vec::new();
        for (index, captured) in std::mem::take(&mut self.sample).into_iter().enumerate() {
            if index % 2 == 0 { &mut self.sample } else { &mut gone }.push(captured);
        }
        gone
    }

    /// Which task.
    #[must_use]
    pub fn key(&self) -> Key {
        self.id.key
    }

    /// Which task, of those that a key can mean.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The most and the least urgent priority of its jobs when they were released, as the kernel counts.
    #[must_use]
    pub fn priorities(&self) -> Option<(i32, i32)> {
        self.priorities
    }

    pub(super) fn set_name(&mut self, name: &str) {
        self.name = Some(name.to_owned());
    }

    /// What everybody is called, with the name that the thread had when others had not yet taken its number.
    #[must_use]
    pub fn names<'a>(&self, names: &'a Names) -> Cow<'a, Names> {
        match (self.id.key.actor, &self.name) {
            (Actor::Thread(tid), Some(name)) => names.with_thread(tid, name),
            _ => Cow::Borrowed(names),
        }
    }

    /// How many jobs count.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// How many were left out for a flaw.
    #[must_use]
    pub fn flawed(&self) -> u64 {
        self.flawed
    }

    /// How many certainly ended after their deadline, if the task has one.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// What its thread has reserved under SCHED_DEADLINE, at last.
    #[must_use]
    pub fn reservation(&self) -> Option<Reservation> {
        self.reservation
    }

    /// How many jobs were throttled, as those of a SCHED_DEADLINE thread are that has used up its runtime.
    #[must_use]
    pub fn throttled(&self) -> u64 {
        self.throttled
    }

    /// How often all jobs together were moved to another CPU.
    #[must_use]
    pub fn migrations(&self) -> u64 {
        self.migrations
    }

    /// How often all jobs together were displaced by a thread.
    #[must_use]
    pub fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// A term over all jobs.
    #[must_use]
    pub fn quantity(&self, term: Term) -> &Quantity {
        &self.quantities[term as usize]
    }

    /// What a term comes to.
    #[must_use]
    pub fn summary(&self, term: Term) -> Summary {
        self.quantity(term).summary()
    }

    /// The greatest likely SS and C, and of how many jobs, where they are known within bounds only.
    #[must_use]
    pub fn likely(&self) -> Option<(u64, u64, u64)> {
        let (count, overhead, execution) = self.likely;
        (count > 0).then_some((overhead, execution, count))
    }

    /// How many jobs ended in a wait on a futex that was taken for a condition variable, a semaphore or the like.
    #[must_use]
    pub fn ended_on_likely_conditions(&self) -> u64 {
        self.on_conditions
    }

    /// How many waits on futexes were taken for waits for locks.
    #[must_use]
    pub fn waits_for_likely_locks(&self) -> u64 {
        self.likely_locks
    }

    /// How many waits on futexes count as blocking although they do not look like waits for locks.
    #[must_use]
    pub fn waits_for_doubtful_locks(&self) -> u64 {
        self.doubtful_locks
    }

    /// The jobs that had not ended at the end, a few at most.
    #[must_use]
    pub fn unended(&self) -> &[Job] {
        &self.unended
    }

    /// One job every so many, whole, in the order of their ends: what is ordinary, if the [watch](super::Watch::sample) was to
    /// keep any.
    #[must_use]
    pub fn sampled(&self) -> &[CapturedJob] {
        &self.sample
    }

    /// The worst jobs whole, the longest first.
    #[must_use]
    pub fn worst(&self) -> &[CapturedJob] {
        &self.worst
    }
}
