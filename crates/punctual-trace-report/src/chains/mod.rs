//! Chains of tasks, each of which wakes the next: the latency from the release of the first to the
//! end of the last, and its composition.
//!
//! A [`Chain`] groups the jobs of a decomposition into [`Crossing`]s: a job of the last task, the
//! job that woke its thread, and so on up to a job of the first task. After a job has woken the
//! next one, the rest of it is off the critical path. So the stages of a crossing follow each other
//! without a gap, and their times add up to its latency.
//!
//! ```
//! use punctual_trace_report::chains::Chain;
//! use punctual_trace::event::{Event, Kind, SwitchOut, Task};
//! use punctual_trace::jobs::{Actor, Bounds, Config, Decomposer};
//!
//! let (reader, control, idle) = (Task { id: 7, priority: 20 }, Task { id: 8, priority: 10 }, Task { id: 0, priority: 120 });
//! let event = |time, by, kind| Event { time, cpu: 0, by, kind };
//! let trace = [
//!     event(100, 0, Kind::Waking { task: reader, cpu: 0 }),
//!     event(130, 0, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: reader }),
//!     event(180, 7, Kind::Waking { task: control, cpu: 0 }),
//!     event(190, 7, Kind::Switch { from: reader, reason: SwitchOut::Runnable, to: control }),
//!     event(250, 8, Kind::Switch { from: control, reason: SwitchOut::Sleeping, to: reader }),
//!     event(290, 7, Kind::Switch { from: reader, reason: SwitchOut::Sleeping, to: idle }),
//! ];
//! let mut chain = Chain::new(2);
//! let mut decomposer = Decomposer::new(Config { segments: true, ..Config::default() });
//! for event in &trace {
//!     decomposer.feed(event, &mut |job| chain.job(job, |stage| job.actor == Actor::Thread([7, 8][stage]), &mut |_| {}));
//! }
//! let crossing = &chain.longest()[0];
//! assert_eq!(crossing.latency, Bounds::Exact(150));
//! assert_eq!((crossing.stages[0].ns(), crossing.stages[1].ns()), (80, 70));
//! ```

mod crossing;
mod find;

use std::collections::VecDeque;
use std::rc::Rc;

pub use crossing::{Crossing, Part, Stage};
pub use find::Finder;

use punctual_trace::jobs::{Actor, Job};
use punctual_trace::stats::{Quantity, Summary};

/// Number of jobs remembered for each stage, so that the jobs they woke can be linked to them.
const MAX_JOBS: usize = 256;
/// Maximum number of crossings that wait for the end of an earlier job.
const MAX_OPEN: usize = 256;
/// Number of longest crossings that are stored in full.
const KEEP: usize = 3;

/// A chain of tasks.
#[derive(Debug, Default)]
pub struct Chain {
    /// The most recent jobs of each stage except the last.
    jobs: Vec<VecDeque<Rc<Job>>>,
    /// Crossings that lack the jobs of this stage and of all earlier ones: their known jobs, last
    /// one first.
    open: Vec<VecDeque<Vec<Rc<Job>>>>,
    latency: Quantity,
    stages: Vec<Quantity>,
    longest: Vec<Crossing>,
    flawed: u64,
    unmatched: u64,
}

impl Chain {
    /// Creates a chain of `stages` tasks.
    #[must_use]
    pub fn new(stages: usize) -> Self {
        Self {
            jobs: vec![VecDeque::new(); stages],
            open: vec![VecDeque::new(); stages],
            stages: vec![Quantity::default(); stages],
            ..Self::default()
        }
    }

    /// Processes the next job of a decomposition with
    /// [segments](punctual_trace::jobs::Config::segments); `is_of` returns whether the job belongs
    /// to the task at that position of the chain. A task may have several positions. Calls `each`
    /// with every complete crossing.
    pub fn job(&mut self, job: &Job, is_of: impl Fn(usize) -> bool, each: &mut dyn FnMut(&Crossing)) {
        let Some(last) = self.stages.len().checked_sub(1) else { return };
        let mut shared = None;
        // From the last stage down, so that a job does not precede itself.
        for stage in (0..=last).rev().filter(|&stage| is_of(stage)) {
            let job = shared.get_or_insert_with(|| Rc::new(job.clone()));
            if stage == last {
                self.go_back(vec![job.clone()], last, each);
            } else {
                remember(&mut self.jobs[stage], job.clone(), MAX_JOBS);
                self.resume(job, stage, each);
            }
        }
    }

    /// Extends the crossings that wait for this job at that stage, and drops those for which it
    /// shows that no such job exists.
    fn resume(&mut self, job: &Job, stage: usize, each: &mut dyn FnMut(&Crossing)) {
        let mut waiting = std::mem::take(&mut self.open[stage]);
        let mut found = Vec::new();
        waiting.retain_mut(|path| {
            let waker = path.last().and_then(|job| woken_by(job));
            let Some((_, time)) = waker.filter(|(waker, time)| *waker == job.actor && *time <= job.end)
            else {
                return true;
            };
            match job.start <= time {
                true => found.push(std::mem::take(path)),
                false => self.unmatched += 1,
            }
            false
        });
        self.open[stage] = waiting;
        found.into_iter().for_each(|path| self.go_back(path, stage + 1, each));
    }

    /// Searches for the job that woke the last one of `path`, which belongs to `stage`, and for the
    /// jobs before it.
    fn go_back(&mut self, mut path: Vec<Rc<Job>>, mut stage: usize, each: &mut dyn FnMut(&Crossing)) {
        while stage > 0 {
            let Some((waker, time)) = path.last().and_then(|job| woken_by(job)) else {
                self.unmatched += 1;
                return;
            };
            let of_waker = |job: &&Rc<Job>| job.actor == waker;
            let before = &self.jobs[stage - 1];
            let found = before.iter().rev().filter(of_waker).find(|job| job.start <= time && time <= job.end);
            match found {
                Some(job) => path.push(job.clone()),
                // The next job of that thread is known, so this one belongs to another task or was
                // not observed.
                None if before.iter().rev().find(of_waker).is_some_and(|job| job.start > time) => {
                    self.unmatched += 1;
                    return;
                }
                None => {
                    let given_up = remember(&mut self.open[stage - 1], path, MAX_OPEN);
                    self.unmatched += u64::from(given_up);
                    return;
                }
            }
            stage -= 1;
        }
        path.reverse();
        let crossing = Crossing::new(path);
        if crossing.jobs.iter().all(|job| job.complete()) {
            each(&crossing);
            self.record(crossing);
        } else {
            self.flawed += 1;
        }
    }

    fn record(&mut self, crossing: Crossing) {
        self.latency.record(crossing.latency);
        for (quantity, stage) in self.stages.iter_mut().zip(&crossing.stages) {
            quantity.record(stage.length);
        }
        let length = |crossing: &Crossing| crossing.latency.hi().or(crossing.latency.lo()).unwrap_or(0);
        let place = self.longest.partition_point(|other| length(other) >= length(&crossing));
        self.longest.insert(place, crossing);
        self.longest.truncate(KEEP);
    }

    /// Returns the time from the release of the first job to the end of the last, over all
    /// crossings.
    #[must_use]
    pub fn latency(&self) -> Summary {
        self.latency.summary()
    }

    /// Returns the length of each stage: until it woke the next, or for the last one until its end.
    #[must_use]
    pub fn stages(&self) -> Vec<Summary> {
        self.stages.iter().map(Quantity::summary).collect()
    }

    /// Returns the longest crossings, longest first.
    #[must_use]
    pub fn longest(&self) -> &[Crossing] {
        &self.longest
    }

    /// Returns the number of crossings left out because one of their jobs has a flaw.
    #[must_use]
    pub fn flawed(&self) -> u64 {
        self.flawed
    }

    /// Returns the number of jobs of the last task that were not woken along the chain, as far as
    /// the recording shows.
    #[must_use]
    pub fn unmatched(&self) -> u64 {
        self.unmatched + self.open.iter().map(|open| open.len() as u64).sum::<u64>()
    }
}

/// Returns the thread that woke the job's thread, and the time of the wake-up.
fn woken_by(job: &Job) -> Option<(Actor, u64)> {
    let waker = job.waker.filter(|waker| matches!(waker.actor, Actor::Thread(tid) if tid != 0))?;
    Some((waker.actor, waker.time))
}

/// Appends to a list of bounded length; returns whether an older item was dropped.
fn remember<T>(list: &mut VecDeque<T>, item: T, most: usize) -> bool {
    let full = list.len() >= most;
    if full {
        list.pop_front();
    }
    list.push_back(item);
    full
}
