//! Gathers the data of the page that the statistics lack, in constant memory.

use std::collections::HashMap;

use punctual_trace::event::{Event, Kind};
use punctual_trace::jobs::{Flaw, Job};
use punctual_trace::stats::{MAX_TASKS, TaskId};

use super::series::Series;

/// Counters for one CPU of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CpuCounts {
    pub(super) events: u64,
    pub(super) gaps: u64,
    pub(super) lost: u64,
}

/// Data of a task in addition to its statistics.
#[derive(Debug, Default)]
pub(super) struct TaskSeries {
    pub(super) series: Series,
    /// Jobs with a flaw: lost, contradiction, cut.
    pub(super) flawed: [u64; 3],
}

/// Processes every event and every job of a recording: see the [module](super).
///
/// It stores at most 75 kB for each of [`MAX_TASKS`] tasks, regardless of the recording's length.
#[derive(Debug, Default)]
pub struct Collector {
    tasks: HashMap<TaskId, TaskSeries>,
    cpus: Vec<CpuCounts>,
    span: Option<(u64, u64)>,
}

impl Collector {
    /// Creates an empty collector.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Processes the next event.
    pub fn event(&mut self, event: &Event) {
        if matches!(event.kind, Kind::Named { .. }) {
            return;
        }
        let cpu = usize::from(event.cpu);
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, CpuCounts::default());
        }
        let counts = &mut self.cpus[cpu];
        if let Kind::Lost { count } = event.kind {
            counts.gaps += 1;
            counts.lost = counts.lost.saturating_add(count);
            return;
        }
        counts.events += 1;
        let (first, last) = self.span.get_or_insert((event.time, event.time));
        *first = event.time.min(*first);
        *last = event.time.max(*last);
    }

    /// Processes the next job, including flawed ones.
    pub fn job(&mut self, job: &Job) {
        let key = TaskId::of(job);
        // The statistics count the jobs of further tasks.
        if self.tasks.len() >= MAX_TASKS && !self.tasks.contains_key(&key) {
            return;
        }
        let task = self.tasks.entry(key).or_default();
        match job.flaw {
            None => task.series.record(job),
            Some(Flaw::Lost) => task.flawed[0] += 1,
            Some(Flaw::Contradiction) => task.flawed[1] += 1,
            Some(Flaw::Cut) => task.flawed[2] += 1,
        }
    }

    pub(super) fn task(&self, key: TaskId) -> Option<&TaskSeries> {
        self.tasks.get(&key)
    }

    /// Returns the flawed jobs of all tasks: lost, contradiction, cut.
    pub(super) fn flawed(&self) -> [u64; 3] {
        let mut sum = [0; 3];
        for task in self.tasks.values() {
            sum.iter_mut().zip(task.flawed).for_each(|(sum, flawed)| *sum += flawed);
        }
        sum
    }

    /// Returns the CPUs that have events or gaps.
    pub(super) fn cpus(&self) -> impl Iterator<Item = (usize, CpuCounts)> {
        self.cpus.iter().copied().enumerate().filter(|(_, counts)| *counts != CpuCounts::default())
    }

    /// Returns the times of the first and the last event.
    pub(super) fn span(&self) -> Option<(u64, u64)> {
        self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_trace::jobs::{Actor, JobKind};

    #[test]
    fn counts_losses_per_cpu_and_flawed_jobs_by_reason() {
        let mut collector = Collector::new();
        let event = |cpu, kind| Event { time: 7, cpu, by: 1, kind };
        collector.event(&event(0, Kind::ScheduleExit));
        collector.event(&event(2, Kind::Lost { count: 40 }));
        collector.event(&event(2, Kind::Lost { count: 0 }));
        let cpus: Vec<_> = collector.cpus().collect();
        let quiet = CpuCounts { events: 1, ..CpuCounts::default() };
        assert_eq!(cpus, [(0, quiet), (2, CpuCounts { events: 0, gaps: 2, lost: 40 })]);

        let mut job = Job::empty(Actor::Thread(7), JobKind::Thread);
        for flaw in [Flaw::Lost, Flaw::Cut, Flaw::Cut] {
            job.flaw = Some(flaw);
            collector.job(&job);
        }
        assert_eq!(collector.flawed(), [1, 0, 2]);
    }

    #[test]
    fn bounds_memory_beyond_task_limit() {
        let mut collector = Collector::new();
        (0..10_000).for_each(|tid| collector.job(&Job::empty(Actor::Thread(tid), JobKind::Thread)));
        assert_eq!(collector.tasks.len(), MAX_TASKS);
    }
}
