//! One way along a chain, from release to end.

use std::rc::Rc;

use crate::jobs::{Bounds, Job, Phase};

/// How much of a stage its job was in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub phase: Phase,
    /// How long in all, in ns.
    pub ns: u64,
}

/// The part of a crossing that one of its jobs takes: from its release until it wakes the next one, or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stage {
    /// When it begins: the release of the first job, at the latest that it can have been, or the wake-up of another.
    pub from: u64,
    /// When it ends.
    pub to: u64,
    /// How long it takes, as far as that is known.
    pub length: Bounds,
    /// What its job did meanwhile, the most first. Where a job has too many [segments](Job::segments) they add up to less.
    pub parts: Vec<Part>,
}

impl Stage {
    /// From its beginning to its end, in ns.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// How long its job was in that phase.
    #[must_use]
    pub fn part(&self, phase: Phase) -> u64 {
        self.parts.iter().find(|part| part.phase == phase).map_or(0, |part| part.ns)
    }
}

/// One way along a chain: a job of each task, each of which woke the next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Crossing {
    /// The jobs, in the order of the chain.
    pub jobs: Vec<Rc<Job>>,
    /// What each of them took.
    pub stages: Vec<Stage>,
    /// From the release of the first to the end of the last.
    pub latency: Bounds,
}

impl Crossing {
    /// Of jobs of which each woke the next.
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
        Bounds::Exact(_) => Bounds::Exact(ns),
        Bounds::Between { lo, hi } => Bounds::between(ns, ns + (hi - lo)),
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
