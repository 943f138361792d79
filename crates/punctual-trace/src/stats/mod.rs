//! Aggregates jobs, in constant memory per task: running histograms of every term, full captures of
//! the worst jobs, and alarms.
//!
//! ```
//! use punctual_trace::event::{Event, Kind, SwitchOut, Task};
//! use punctual_trace::jobs::Config;
//! use punctual_trace::stats::{Term, Watch};
//!
//! let (control, idle) = (Task { id: 7, priority: 10 }, Task { id: 0, priority: 120 });
//! let event = |time, by, kind| Event { time, cpu: 0, by, kind };
//! let mut watch = Watch::new(Config::default(), 3);
//! watch.default_deadline(Some(1_000));
//!
//! let mut alarms = 0;
//! for (release, length) in [(10_000, 500), (20_000, 2_500), (30_000, 600)] {
//!     let end = release + length;
//!     let mut feed = |event| watch.feed(&event, &mut |_job| {}, &mut |_late| alarms += 1);
//!     feed(event(release, 0, Kind::Waking { task: control, cpu: 0 }));
//!     feed(event(release + 100, 0, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: control }));
//!     feed(event(end, 7, Kind::Switch { from: control, reason: SwitchOut::Sleeping, to: idle }));
//! }
//! assert_eq!(alarms, 1);
//! let task = &watch.tasks()[0];
//! let response = task.summary(Term::Response);
//! assert_eq!((response.max, response.count), (2_500, 3));
//! assert_eq!(task.worst()[0].job.end, 22_500);
//! assert_eq!(task.worst()[0].events.len(), 3);
//! ```

mod quantity;
mod recent;
mod task;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

pub use self::quantity::{Quantity, Summary};
use self::recent::EventRing;
pub use self::recent::{CapturedJob, MAX_EVENTS};
pub use self::task::{Key, TaskId, TaskStats};
use crate::event::{Event, Kind, Tid};
pub use crate::jobs::Term;
use crate::jobs::{Config, Counters, Decomposer, Flaw, IntHasher, Job, Reservation};

/// Maximum number of tasks with statistics; jobs of further ones are counted in
/// [`Watch::left_out`]. The histograms of a task take about 125 kB.
pub const MAX_TASKS: usize = 128;

/// Watches a stream of events.
#[derive(Debug)]
pub struct Watch {
    decomposer: Decomposer,
    tasks: Tasks,
}

#[derive(Debug)]
struct Tasks {
    stats: Vec<TaskStats>,
    index: HashMap<u64, usize, BuildHasherDefault<IntHasher>>,
    left_out: u64,
    keep: usize,
    /// Maximum number of sampled jobs per task.
    sample: usize,
    recent: EventRing,
    deadlines: HashMap<Key, u64>,
    default_deadline: Option<u64>,
    /// The open jobs that raised an alarm, by their releases or starts.
    alarmed: HashMap<Key, u64>,
    since: u64,
}

impl Watch {
    /// Watches the jobs that `config` selects, and captures the worst `keep` of each task.
    #[must_use]
    pub fn new(config: Config, keep: usize) -> Self {
        let recent = EventRing::new(if keep > 0 { MAX_EVENTS } else { 1 });
        let tasks = Tasks {
            stats: Vec::new(),
            index: HashMap::default(),
            left_out: 0,
            keep,
            sample: 0,
            recent,
            deadlines: HashMap::new(),
            default_deadline: None,
            alarmed: HashMap::new(),
            since: 0,
        };
        Self { decomposer: Decomposer::new(config), tasks }
    }

    /// Sets the deadline of tasks without their own, in ns from the release: see
    /// [`deadline`](Self::deadline).
    pub fn default_deadline(&mut self, ns: Option<u64>) {
        self.tasks.default_deadline = ns;
    }

    /// Samples up to `count` jobs of each task in addition to the worst, evenly spaced over the
    /// whole recording. They include events if the worst ones are captured, too.
    pub fn sample(&mut self, count: usize) {
        self.tasks.sample = count;
    }

    /// Sets the deadline of a task's jobs, in ns from the release. Jobs that certainly missed it
    /// count as [misses](TaskStats::misses) and raise an alarm, with [`overdue`](Self::overdue)
    /// before they end.
    pub fn deadline(&mut self, task: Key, ns: u64) {
        self.tasks.deadlines.insert(task, ns);
    }

    /// Forgets the deadline of a task: another thread has its number.
    pub fn forget_deadline(&mut self, task: Key) {
        self.tasks.deadlines.remove(&task);
    }

    /// Excludes jobs that end before this time, on the trace's clock. Earlier events still
    /// contribute to later jobs.
    pub fn only_since(&mut self, time: u64) {
        self.tasks.since = time;
    }

    /// Sets the name of a thread: see [`Decomposer::name`].
    pub fn name(&mut self, tid: Tid, name: &str) {
        self.decomposer.name(tid, name);
    }

    /// Sets the SCHED_DEADLINE reservation of a thread: see [`Decomposer::reserve`]. Jobs that
    /// certainly miss its deadline count as [misses](TaskStats::misses) unless the task has another
    /// one.
    pub fn reserve(&mut self, tid: Tid, reservation: Reservation) {
        self.decomposer.reserve(tid, reservation);
    }

    /// Returns whether all switches of a thread are recorded: see [`Decomposer::must_observe`].
    #[must_use]
    pub fn must_observe(&self, tid: Tid) -> bool {
        self.decomposer.must_observe(tid)
    }

    /// Processes the next event. Calls `each` with every job that ends, and `alarm` with those that
    /// took too long, with all their events.
    pub fn feed(&mut self, event: &Event, each: &mut dyn FnMut(&Job), alarm: &mut dyn FnMut(&CapturedJob)) {
        let tasks = &mut self.tasks;
        if !matches!(event.kind, Kind::Named { .. }) {
            tasks.recent.push(event);
        }
        self.decomposer.feed(event, &mut |job| {
            if job.end < tasks.since {
                return;
            }
            each(job);
            tasks.record(job, alarm);
        });
    }

    /// Calls `alarm` once with each job that is open at `now`, in ns on the trace's clock, and
    /// certainly takes too long. All events up to `now` must have been fed. Its end raises another
    /// alarm.
    pub fn overdue(&mut self, now: u64, alarm: &mut dyn FnMut(&CapturedJob)) {
        let tasks = &mut self.tasks;
        let Some(shortest) = tasks.deadlines.values().copied().chain(tasks.default_deadline).min() else {
            return;
        };
        self.decomposer.open_jobs(now, shortest, &mut |job| {
            let begun = job.end - job.response.lo().unwrap_or(0);
            if tasks.is_late(job) && tasks.alarmed.insert(Key::of(job), begun) != Some(begun) {
                alarm(&tasks.recent.capture(job));
            }
        });
    }

    /// Reports the jobs that are still open, as cut.
    pub fn finish(&mut self, each: &mut dyn FnMut(&Job)) {
        let tasks = &mut self.tasks;
        self.decomposer.finish(&mut |job| {
            if job.end < tasks.since {
                return;
            }
            each(job);
            tasks.record(job, &mut |_| {});
        });
    }

    /// Returns the tasks, in the order of their first jobs.
    #[must_use]
    pub fn tasks(&self) -> &[TaskStats] {
        &self.tasks.stats
    }

    /// Returns the number of jobs of tasks after the first [`MAX_TASKS`].
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.tasks.left_out
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.decomposer.counters()
    }
}

/// Returns whether a job certainly took longer than `limit`.
fn is_over(job: &Job, limit: u64) -> bool {
    job.response.lo().is_some_and(|ns| ns > limit)
}

impl Tasks {
    fn deadline(&self, key: Key) -> Option<u64> {
        if self.deadlines.is_empty() { None } else { self.deadlines.get(&key).copied() }
    }

    /// Returns whether a job certainly exceeded its limit.
    fn is_late(&self, job: &Job) -> bool {
        self.deadline(Key::of(job)).or(self.default_deadline).is_some_and(|limit| is_over(job, limit))
    }

    fn record(&mut self, job: &Job, alarm: &mut dyn FnMut(&CapturedJob)) {
        let key = Key::of(job);
        // The alarm does not depend on room for statistics, but on the job being without a flaw.
        if job.complete() && self.is_late(job) {
            alarm(&self.recent.capture(job));
        }
        let id = TaskId::of(job);
        let index = match self.index.get(&id.packed()) {
            Some(&index) => index,
            None if self.stats.len() >= MAX_TASKS => {
                self.left_out += 1;
                return;
            }
            None => {
                self.index.insert(id.packed(), self.stats.len());
                self.stats.push(TaskStats::new(id));
                self.stats.len() - 1
            }
        };
        let certain = job.complete() || job.flaw == Some(Flaw::Cut);
        let reserved = job.reservation.map(|reservation| reservation.deadline);
        let limit = self.deadline(key).or(reserved).or(self.default_deadline);
        let missed = certain && limit.is_some_and(|limit| is_over(job, limit));
        let stats = &mut self.stats[index];
        if missed {
            stats.missed();
        }
        if !stats.record(job) {
            return;
        }
        if stats.among_worst(job, self.keep)
            && let Some(gone) = stats.keep(self.recent.capture_for_keeping(job), self.keep)
        {
            self.recent.forget(&gone);
        }
        if stats.is_next_in_sample(self.sample) {
            let captured = self.recent.capture_ordinary(job);
            stats.add_to_sample(captured, self.sample).iter().for_each(|gone| self.recent.forget(gone));
        }
    }
}
