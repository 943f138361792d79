//! One pass through a chain, from release to end.

use std::rc::Rc;

use punctual_trace::jobs::{Bounds, Job, Phase};

/// Time that the job of a stage spent in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The phase.
    pub phase: Phase,
    /// Total time, in ns.
    pub ns: u64,
}

/// One job's part of a crossing: from its release until it wakes the next job, or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stage {
    /// Start: the latest possible release of the first job, or the wake-up of a later one.
    pub from: u64,
    /// End of the stage.
    pub to: u64,
    /// Length of the stage, as far as it is known.
    pub length: Bounds,
    /// Phases of the job during the stage, longest first. They add up to less than the stage if the
    /// job has too many [segments](Job::segments).
    pub parts: Vec<Part>,
}

impl Stage {
    /// Returns the time from start to end, in ns.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Returns the time that the job spent in this phase.
    #[must_use]
    pub fn part(&self, phase: Phase) -> u64 {
        self.parts.iter().find(|part| part.phase == phase).map_or(0, |part| part.ns)
    }
}

/// One pass through a chain: a job of each task, each woken by the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Crossing {
    /// The jobs, in the order of the chain.
    pub jobs: Vec<Rc<Job>>,
    /// The stage of each job.
    pub stages: Vec<Stage>,
    /// Time from the release of the first job to the end of the last.
    pub latency: Bounds,
}

impl Crossing {
    /// Creates a crossing from jobs, each of which woke the next.
    pub(super) fn new(jobs: Vec<Rc<Job>>) -> Self {
        let woken = |job: &Job| job.waker.map_or(job.start, |waker| waker.time);
        let ends = jobs.iter().skip(1).map(|job| woken(job)).chain(jobs.last().map(|job| job.end));
        let begins = jobs.iter().enumerate().map(|(index, job)| match job.released {
            Some((_, latest)) if index == 0 => latest.min(job.start),
            _ => woken(job),
        });
        let stages = jobs.iter().zip(begins.zip(ends)).enumerate();
        let stages: Vec<_> = stages.map(|(index, (job, span))| stage(job, span, index == 0)).collect();
        let latency = stages.iter().fold(Bounds::Exact(0), |sum, stage| sum.plus(stage.length));
        Self { jobs, stages, latency }
    }
}

fn stage(job: &Job, (from, to): (u64, u64), is_first: bool) -> Stage {
    let ns = to.saturating_sub(from);
    let length = match job.jitter {
        _ if !is_first => Bounds::Exact(ns),
        // An uncertain start is part of the stage; only the release bounds its length.
        Bounds::Exact(_) | Bounds::Between { .. } => {
            let earliest = job.released.map_or(from, |released| released.0.min(from));
            Bounds::between(ns, to.saturating_sub(earliest))
        }
        Bounds::AtLeast(_) => Bounds::AtLeast(ns),
        Bounds::Unknown => Bounds::at_least(to.saturating_sub(job.start)),
    };
    let mut parts: Vec<Part> = Vec::new();
    for segment in &job.segments {
        let ns = segment.end.min(to).saturating_sub(segment.start.max(from));
        match parts.iter_mut().find(|part| part.phase == segment.phase) {
            Some(part) => part.ns += ns,
            None if ns > 0 => parts.push(Part { phase: segment.phase, ns }),
            None => {}
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    Stage { from, to, length, parts }
}

#[cfg(test)]
mod tests {
    use punctual_trace::event::{Event, Kind, SwitchOut, Task};
    use punctual_trace::jobs::{Config, Decomposer};

    use super::*;

    /// The kernel has not recorded the switch from the idle thread: J and W are bounded, and R is
    /// exact.
    #[test]
    fn has_exact_latency_if_only_start_is_uncertain() {
        let (worker, idle) = (Task { id: 7, priority: 20 }, Task { id: 0, priority: 120 });
        let event = |time, by, kind| Event { time, cpu: 0, by, kind };
        let trace = [
            event(100, 0, Kind::Waking { task: worker, cpu: 0 }),
            event(105, 0, Kind::Wakeup { task: worker, cpu: 0, new: false }),
            event(130, 7, Kind::SyscallExit { number: 1 }),
            event(200, 7, Kind::Switch { from: worker, reason: SwitchOut::Sleeping, to: idle }),
        ];
        let (mut decomposer, mut jobs) = (Decomposer::new(Config::default()), Vec::new());
        trace.iter().for_each(|event| decomposer.feed(event, &mut |job| jobs.push(Rc::new(job.clone()))));
        assert_eq!(jobs[0].jitter, Bounds::Between { lo: 5, hi: 30 });
        assert_eq!(Crossing::new(jobs).latency, Bounds::Exact(100));
    }
}
