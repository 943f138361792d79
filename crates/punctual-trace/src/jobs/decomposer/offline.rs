//! Jobs on CPUs without Linux, which come whole and later than they ran.

use super::super::bounds::Bounds;
use super::super::cause::{Actor, Cause};
use super::super::job::{Flaw, Job, JobKind, ReleasedBy};
use super::{Decomposer, Sink};
use crate::event::{Event, Kind};

impl Decomposer {
    /// Delivers a job that its app reported, if jobs of apps are selected. Its times are on
    /// `CLOCK_MONOTONIC`, so they are meaningful in the trace only if the trace has the same clock.
    pub(super) fn offline_job(&mut self, event: &Event, sink: Sink<'_>) {
        let Kind::OfflineJob { task, cpu, started, jitter, window, preempted } = event.kind else { return };
        let select = &self.config.select;
        let wanted = select.marked || select.tids.contains(&event.by);
        if !wanted || !self.config.monotonic || !(select.among.is_empty() || select.among.contains(&event.by))
        {
            return;
        }
        let [j, w, i] = [jitter, window, preempted].map(u64::from);
        let released = started.saturating_sub(j);
        let mut job = Job::empty(Actor::Thread(event.by), JobKind::Offline);
        (job.number, job.task) = (self.counters.jobs, Some(task));
        (job.released, job.released_by) = (Some((released, released)), ReleasedBy::Mark);
        (job.start, job.end) = (started, started.saturating_add(w));
        (job.first_cpu, job.last_cpu) = (cpu.into(), cpu.into());
        let window = Bounds::Exact(job.end - started);
        (job.jitter, job.window) = (Bounds::Exact(started - released), window);
        job.response = job.jitter.plus(window);
        // The job has no Linux scheduler and no locks to wait for.
        let none = Bounds::Exact(0);
        (job.overhead, job.overhead_entry, job.overhead_exit, job.blocking) = (none, none, none, none);
        let i = i.min(job.end - started);
        (job.interference, job.execution) = (Bounds::Exact(i), Bounds::Exact(job.end - started - i));
        if i > 0 {
            job.interference_causes.push(Cause { actor: Actor::Unseen, ns: i, times: 1 });
        }
        if j == u64::from(u32::MAX) || w == u64::from(u32::MAX) {
            job.flaw = Some(Flaw::Cut);
        }
        self.counters.jobs += 1;
        self.counters.flawed += u64::from(!job.complete());
        sink(&job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{Config, Select};

    const JOB: Kind =
        Kind::OfflineJob { task: 5, cpu: 2, started: 1_000, jitter: 30, window: 400, preempted: 150 };

    fn jobs(config: Config, kinds: &[Kind]) -> (Vec<Job>, Decomposer) {
        let (mut decomposer, mut jobs) = (Decomposer::new(config), Vec::new());
        for &kind in kinds {
            decomposer.feed(&Event { time: 9_000, cpu: 0, by: 77, kind }, &mut |job| jobs.push(job.clone()));
        }
        (jobs, decomposer)
    }

    fn marked(monotonic: bool) -> Config {
        Config { monotonic, select: Select { marked: true, ..Select::default() }, ..Config::default() }
    }

    #[test]
    fn has_own_times_and_exact_terms() {
        let (jobs, decomposer) = jobs(marked(true), &[JOB, Kind::OfflineLost { cpu: 2, count: 7 }]);
        let [job] = &jobs[..] else { panic!("{jobs:?}") };
        assert_eq!((job.task, job.kind, job.first_cpu), (Some(5), JobKind::Offline, 2));
        assert_eq!((job.released, job.start, job.end), (Some((970, 970)), 1_000, 1_400));
        let terms = [job.response, job.jitter, job.interference, job.execution, job.overhead, job.blocking];
        assert_eq!(terms, [430, 30, 150, 250, 0, 0].map(Bounds::Exact));
        assert!(job.complete() && job.check().is_ok());
        assert_eq!((decomposer.counters().jobs, decomposer.counters().offline_lost), (1, 7));
    }

    #[test]
    fn omits_unselected_and_incomparable_clocks() {
        assert!(jobs(marked(false), &[JOB]).0.is_empty());
        assert!(jobs(Config { monotonic: true, ..Config::default() }, &[JOB]).0.is_empty());
        let select = Select { tids: vec![77], ..Select::default() };
        assert_eq!(jobs(Config { monotonic: true, select, ..Config::default() }, &[JOB]).0.len(), 1);
    }

    #[test]
    fn overflowing_value_is_not_a_number() {
        let long = Kind::OfflineJob {
            task: 5,
            cpu: 2,
            started: u64::MAX - 3,
            jitter: 0,
            window: u32::MAX,
            preempted: u32::MAX,
        };
        let (jobs, _) = jobs(marked(true), &[long]);
        assert!(!jobs[0].complete() && jobs[0].check().is_ok(), "{jobs:?}");
    }
}
