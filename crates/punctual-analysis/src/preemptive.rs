//! One CPU with preemptive fixed priorities, FIFO within a level.
//!
//! *Joseph & Pandya, "Finding Response Times in a Real-Time System", The Computer Journal 29(5),
//! 1986*: the fixed point. *Lehoczky, "Fixed Priority Scheduling of Periodic Task Sets with
//! Arbitrary Deadlines", RTSS 1990*: every job in the level's busy window. *Audsley, Burns,
//! Richardson, Tindell, Wellings, "Applying New Scheduling Theory to Static Priority Pre-emptive
//! Scheduling", Software Engineering Journal 8(5), 1993*: blocking and jitter. *Tindell, Burns,
//! Wellings, "An Extendible Approach for Analyzing Fixed Priority Hard Real-Time Tasks", Real-Time
//! Systems 6(2), 1994*: both together, and bursts. *Martin, Minet, George, "Non Pre-emptive Fixed
//! Priority Scheduling with FIFO Arbitration", INRIA RR-5051, 2003*: several tasks per level.
//!
//! Exact for sporadic tasks, and for periodic tasks with unknown offsets, without self-suspension.
//! Otherwise sufficient.
//!
//! A job that becomes ready `A` after the start of the busy window ends at the least `w` with
//!
//! > w = B + k·C + Σ peers: until(A)·C + Σ higher: before(w)·C
//!
//! if it is the `k`th job of its task in the window. Its peers' jobs that are ready until `A` run
//! first; later ones do not. If the job has its full jitter, its nominal release is `A − J`. If its
//! jitter is smaller, its nominal release is J before the latest instant at which it can be ready.
//! Its response starts at the nominal release. Only those `A` matter at which a job of the level
//! becomes ready before the window ends.
//!
//! If only the verdict matters, a closed-form bound is tried first: *Bini, Nguyen, Richard, Baruah,
//! "A Response-Time Bound in Fixed-Priority Scheduling with Arbitrary Deadlines", IEEE Transactions
//! on Computers 58(2), 2009*, in a slightly coarser form.

use crate::bound::{Blocking, Bound, Exactness, Interference, Interferer, NoBound, Work};
use crate::demand::{self, Counts, Share, Slims, Source, Sources, Steps};
use crate::supply::Supply;
use crate::time::Nanos;
use crate::work;

/// A task and the sources that it competes with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contest<'a> {
    pub(crate) supply: Supply,
    pub(crate) task: usize,
    /// J of the task itself.
    pub(crate) jitter: Nanos,
    /// Suspension and spinning of a job, contained in its execution in `level`.
    pub(crate) suspension: Nanos,
    pub(crate) spinning: Nanos,
    pub(crate) blocking: Option<Blocking>,
    /// Sources of the level, the task itself included, which run in release order.
    pub(crate) level: &'a [Source],
    pub(crate) above: Sources<'a>,
    /// Compact form of `above`, if all of it is compact.
    pub(crate) slim: Option<Slims<'a>>,
    /// CPU share of `above`.
    pub(crate) share: Share,
    /// Least time from the caller's release to the spawn, if only that matters here.
    pub(crate) spawned_after: Nanos,
    /// Sources of `above` whose jobs in the window have all ended when the task is spawned.
    pub(crate) over: &'a [Source],
    /// True if a started job runs to completion.
    pub(crate) runs_to_end: bool,
}

/// A job in the busy window.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// Instant at which it became ready.
    ready: Nanos,
    /// Index among the jobs of its task in the window, from 1.
    jobs: u64,
    /// Latest instant at which it can become ready; its nominal release is J earlier.
    released: Nanos,
    finish: Nanos,
    /// Start instant, if it then ran to completion.
    started: Option<Nanos>,
    /// End of the first job of the window, if the task is alone at its level.
    first: Option<Nanos>,
}

/// Result for a task from which the search for the next lower one starts.
///
/// The first job of the next lower task, with C after its own blocking `B`, is displaced by at
/// least as much as that job, and by at least one job of the task above, whose own cost is no
/// longer than its displacement. So it ends no earlier than that job, and later by the amount by
/// which `B + C` exceeds the blocking here.
#[derive(Debug)]
pub(crate) struct Before {
    /// End of the task's first job in its busy window, and its blocking.
    end: Nanos,
    blocking: Nanos,
    /// Number of sources above the next lower task.
    above: usize,
    counts: Counts,
}

impl Before {
    /// Creates the result before the first task of a partition with `sources` compact sources.
    pub(crate) fn new(sources: usize) -> Self {
        Self { end: 0, blocking: 0, above: 0, counts: Counts::new(sources) }
    }
}

impl Contest<'_> {
    /// Returns the bound. `before` is the result for the next higher task, and becomes this one.
    pub(crate) fn bound(&self, exactness: Exactness, before: &mut Before) -> Option<Bound> {
        let worst = self.worst(None, self.least_end(before), &mut before.counts)?;
        (before.end, before.blocking, before.above) = match (self.slim, worst.first) {
            (Some(slim), Some(end)) => (end, self.blocking_time(), slim.len() + 1),
            _ => (0, 0, 0),
        };
        Some(self.terms(worst, exactness, &mut before.counts))
    }

    /// Returns the earliest end of the first job, given the result of the next higher task.
    fn least_end(&self, before: &Before) -> Nanos {
        let ([own], Some(slim)) = (self.level, self.slim) else { return 0 };
        let base = self.blocking_time().saturating_add(own.peer_cost());
        match base.checked_sub(before.blocking) {
            Some(more) if slim.len() == before.above => before.end.saturating_add(more),
            _ => 0,
        }
    }

    fn blocking_time(&self) -> Nanos {
        self.blocking.map_or(0, |blocking| blocking.time)
    }

    /// Returns whether every job responds within `limit`.
    pub(crate) fn responds_within(&self, limit: Nanos) -> Option<bool> {
        if self.surely_responds_within(limit) {
            return Some(true);
        }
        let mut counts = Counts::new(self.slim.map_or(0, Slims::len));
        Some(self.after(self.worst(Some(limit), 0, &mut counts)?) <= limit)
    }

    /// Returns the latest end of a job after the nominal release, to which the jitter of `own` is
    /// added. Unknown if there are peers, because the release instant then matters.
    pub(crate) fn end(&self) -> Result<Option<Nanos>, NoBound> {
        match self.level {
            // A job spawned from a lower level has no fixed distance to the root.
            [own] if !self.runs_to_end && own.all.all().is_none() => {
                self.end_alone(own).map(Some).ok_or(NoBound::TooLong)
            }
            _ => Ok(None),
        }
    }

    /// [`end`](Self::end) for a task alone at its level.
    fn end_alone(&self, own: &Source) -> Option<Nanos> {
        let cost = own.peer_cost().saturating_add(self.suspension);
        let (blocking, on_time) = (self.blocking_time(), own.all.without_jitter());
        let (mut latest, mut window) = (0, 0);
        let mut steps = Steps::new(self.sources());
        for jobs in 1_u64.. {
            let base = jobs.checked_mul(cost)?.checked_add(blocking)?;
            window = demand::finish(self.supply, base, self.above, window, Nanos::MAX, &mut steps)?;
            let nominal = on_time.distance(jobs)?;
            let late = window.checked_add(own.all.jitter())?;
            latest = latest.max(late.saturating_sub(nominal));
            if window <= own.all.distance(jobs + 1)? {
                break;
            }
        }
        Some(latest)
    }

    /// Estimates the CPU share of all jobs that run before the task's jobs, and of these jobs
    /// themselves.
    pub(crate) fn load_estimate(&self) -> f64 {
        let share = |source: &Source, cost: Nanos| source.rate * cost as f64;
        let level = self.level.iter();
        self.share.all
            + level.map(|it| share(it, it.peer_cost().saturating_add(self.suspension))).sum::<f64>()
    }

    /// Returns whether a bound that is linear in time already proves that every job responds within
    /// `limit`.
    fn surely_responds_within(&self, limit: Nanos) -> bool {
        work::count(self.sources());
        let mut own = self.level.iter().filter(|source| self.is_own(source));
        let (Some(own), None) = (own.next(), own.next()) else { return false };
        let is_plain = own.own.is_sporadic() && own.own.jitter() == 0 && self.supply == Supply::Full;
        if !is_plain || self.runs_to_end {
            return false;
        }
        let cost = own.peer_cost().saturating_add(self.suspension) as f64;
        let mut base = self.blocking.map_or(0.0, |blocking| blocking.time as f64) + cost;
        let mut share = 0.0;
        let peers = self.level.iter().filter(|source| !self.is_own(source));
        for source in self.above.into_iter().flatten().chain(peers) {
            base += source.all.at_once(source.rate) * source.cost() as f64;
            share += source.rate * source.cost() as f64;
        }
        // The q-th job of the window ends within (base + (q − 1) C) / (1 − share) and was released
        // (q − 1) T after its start. T exceeds the growth per C, so the first job is the worst.
        // Rounding errors are far smaller than the slack.
        let left = 1.0 - share;
        left - cost * own.rate > 1e-9
            && (base / left) * (1.0 + 1e-9) + self.jitter as f64 + 1.0 <= limit as f64
    }

    /// Returns `(a, b)` such that jobs that take `base`, and the sources that displace them, end at
    /// `(base + a) / b` at the earliest, which is close to the actual end: *Sjödin & Hansson,
    /// "Improved Response-Time Analysis Calculations", RTSS 1998*.
    fn least_estimate(&self) -> Option<(f64, f64)> {
        if self.supply != Supply::Full {
            return None;
        }
        let (more, left) = (self.share.at_once, 1.0 - self.share.sporadic);
        // With little slack, rounding errors matter; otherwise they are far smaller than this.
        (left > 1e-3).then_some((more - 1.0, left * (1.0 + 1e-9)))
    }

    /// Returns the number of sources.
    fn sources(&self) -> usize {
        self.above.iter().map(|list| list.len()).sum::<usize>() + self.level.len()
    }

    pub(crate) fn is_own(&self, source: &Source) -> bool {
        source.who == Interferer::Higher(self.task)
    }

    /// Returns the demand of the level that runs up to the job, without earlier jobs of the same
    /// task.
    fn peers(&self, ready: Nanos) -> Option<Nanos> {
        let mut demand = self.blocking_time();
        for source in self.level.iter().filter(|source| !self.is_own(source)) {
            demand = demand.checked_add(source.all.until(ready)?.checked_mul(source.peer_cost())?)?;
        }
        Some(demand)
    }

    /// Returns the next instants at which a job of the level may become ready, and at which one
    /// with full jitter may.
    fn next(&self, ready: Nanos) -> Option<(Nanos, Nanos)> {
        let mut next = (Nanos::MAX, Nanos::MAX);
        for source in self.level {
            let step = source.all.next_step(ready)?;
            let late = if self.is_own(source) { source.own.next_step(ready)? } else { step };
            next = (next.0.min(step), next.1.min(step).min(late));
        }
        Some(next)
    }

    /// Returns the job with the longest response. With a `limit`, the first job found above it may
    /// be returned instead.
    fn worst(&self, limit: Option<Nanos>, ends_after: Nanos, counts: &mut Counts) -> Option<Candidate> {
        if let [own] = self.level
            && own.all.is_sporadic()
            && own.own.is_sporadic()
            && own.own.jitter() == 0
            && !self.runs_to_end
        {
            return self.worst_alone(own, limit, ends_after, counts);
        }
        let own = || self.level.iter().filter(|source| self.is_own(source));
        let cost = own().next().map_or(0, Source::peer_cost).saturating_add(self.suspension);
        let single = if own().nth(1).is_none() { own().next() } else { None };
        let mut worst: Option<Candidate> = None;
        let mut steps = Steps::new(self.sources());
        let least = self.least_estimate();
        let (mut ready, mut window, mut started) = (0, 0, 0);
        loop {
            let peers = self.peers(ready)?;
            let most = own().try_fold(0_u64, |sum, source| sum.checked_add(source.all.until(ready)?));
            let most = most?;
            // Jobs of the task with full jitter, followed by those that may be ready early.
            let late = single.map_or(Some(most), |source| source.own.until(ready))?;
            let mut end = window;
            for jobs in late..=most {
                let base = jobs.checked_mul(cost)?.checked_add(peers)?;
                let released = match single {
                    Some(source) if jobs > late => source.own.distance(jobs)?,
                    _ => ready,
                };
                let released = released.checked_add(self.spawned_after)?;
                // A job that ends later misses the limit; a job that runs to completion may end
                // before the window does.
                let most = limit
                    .filter(|_| !self.runs_to_end && self.over.is_empty())
                    .map_or(Nanos::MAX, |limit| limit.saturating_add(released).saturating_sub(self.jitter));
                let from = least.map_or(end, |(more, left)| end.max(((base as f64 + more) / left) as Nanos));
                end = demand::finish(self.supply, base, self.above, from, most, &mut steps)?;
                let mut candidate =
                    Candidate { ready, jobs, released, finish: end, started: None, first: None };
                if self.runs_to_end {
                    let from = if jobs == late { started } else { 0 };
                    let start =
                        demand::start(self.supply, base - cost, self.above, from, self.closed(), &mut steps)?;
                    let all = demand::demand(base, self.above, start + u64::from(self.closed()));
                    candidate.finish = self.supply.time_for(all?)?;
                    candidate.started = Some(start);
                }
                if jobs == late {
                    window = end;
                    started = candidate.started.unwrap_or(0);
                }
                if worst.is_none_or(|worst| self.after(candidate) > self.after(worst)) {
                    worst = Some(candidate);
                    if limit.is_some_and(|limit| self.after(candidate) > limit) {
                        return Some(candidate);
                    }
                }
            }
            // A job that arrives after the end of the window starts a new one.
            let (next, late) = self.next(ready)?;
            if end <= next {
                return worst;
            }
            ready = late;
        }
    }

    /// [`worst`](Self::worst) for a task alone at its level, whose jobs arrive one by one: job `q`
    /// of the window is ready by `(q − 1) T`, and earlier by its jitter at most. No other job of
    /// the level matters.
    fn worst_alone(
        &self,
        own: &Source,
        limit: Option<Nanos>,
        ends_after: Nanos,
        counts: &mut Counts,
    ) -> Option<Candidate> {
        let (cost, period) = (own.peer_cost().saturating_add(self.suspension), own.all.window());
        let mut base = self.blocking_time();
        // The result for the next higher task is usually closer than the estimate.
        let least = if ends_after == 0 { self.least_estimate() } else { None };
        let mut steps = Steps::new(self.sources());
        let (mut late, mut end): (Nanos, Nanos) = (0, ends_after.saturating_sub(cost));
        let mut worst: Option<(Nanos, Candidate)> = None;
        let mut first = None;
        for jobs in 1.. {
            base = base.checked_add(cost)?;
            let released = late.checked_add(self.spawned_after)?;
            let most = limit
                .filter(|_| self.over.is_empty())
                .map_or(Nanos::MAX, |limit| limit.saturating_add(released).saturating_sub(self.jitter));
            // It ends after the previous job, which runs first entirely.
            let after_last = end.saturating_add(cost);
            let from = least
                .map_or(after_last, |(more, left)| after_last.max(((base as f64 + more) / left) as Nanos));
            end = match self.slim {
                Some(slim) => counts.finish(self.supply, base, slim, from, most, &mut steps)?,
                None => demand::finish(self.supply, base, self.above, from, most, &mut steps)?,
            };
            let first = *first.get_or_insert(end);
            let candidate =
                Candidate { ready: late, jobs, released, finish: end, started: None, first: Some(first) };
            let after = self.after(candidate);
            if worst.is_none_or(|(longest, _)| after > longest) {
                worst = Some((after, candidate));
                if limit.is_some_and(|limit| after > limit) {
                    break;
                }
            }
            late = late.checked_add(period)?;
            let ready = late.saturating_sub(own.all.jitter());
            if end <= ready {
                break;
            }
        }
        worst.map(|(_, worst)| worst)
    }

    /// Returns whether a job released at the very instant of a start takes part in it. With
    /// blocking it does not: the window then started slightly after the blocking section, and all
    /// start instants are slightly earlier than computed.
    fn closed(&self) -> bool {
        self.blocking.is_none()
    }

    /// Returns the response time of a job.
    fn after(&self, job: Candidate) -> Nanos {
        job.finish.saturating_add(self.jitter).saturating_sub(job.released).saturating_sub(self.before(job))
    }

    /// Returns the part of the window that had passed when the job was spawned.
    fn before(&self, job: Candidate) -> Nanos {
        let jobs = |source: &Source| source.all.before(job.finish).unwrap_or(0).saturating_mul(source.cost());
        self.over.iter().map(jobs).fold(0, Nanos::saturating_add)
    }

    fn terms(&self, worst: Candidate, exactness: Exactness, counts: &mut Counts) -> Bound {
        let Candidate { ready, jobs, released, finish, started, .. } = worst;
        let counted = started.map_or(finish, |started| started + u64::from(self.closed()));
        let mut own = Work::default();
        let mut interference: Vec<Interference> = Vec::with_capacity(self.sources());
        match self.slim.and_then(|slim| slim.terms(counted, counts)) {
            // Each source has releases and is the only one of its kind.
            Some(terms) => interference.extend(terms),
            None => {
                for source in self.above.into_iter().flatten() {
                    let jobs = source.all.before(counted).unwrap_or(0);
                    add_next(&mut interference, source.term(source.who, jobs, source.preempting));
                }
            }
        }
        for source in self.level {
            match source.who {
                Interferer::Higher(task) if task != self.task => {
                    let jobs = source.all.until(ready).unwrap_or(0);
                    add_next(&mut interference, source.term(Interferer::Peer(task), jobs, source.dispatch));
                }
                who => {
                    own = source.term(who, jobs, source.dispatch).work;
                    own.execution += jobs * self.suspension;
                }
            }
        }
        let mut bound = Bound {
            response: self.after(worst),
            jitter: self.jitter,
            window: finish,
            released: released.saturating_add(self.before(worst)),
            blocking: self.blocking,
            own,
            spinning: self.spinning.saturating_mul(own.jobs),
            suspension: self.suspension.saturating_mul(own.jobs),
            interference,
            not_supplied: 0,
            exactness,
            without_offsets: None,
            since_root: None,
        };
        // A fully available CPU supplies all time.
        if self.supply != Supply::Full {
            bound.not_supplied = finish - bound.sum_of_terms();
        }
        debug_assert_eq!(bound.sum_of_terms(), finish);
        bound
    }
}

/// Adds to the last term if it has the same source; the terms of a source are adjacent.
fn add_next(terms: &mut Vec<Interference>, term: Interference) {
    match terms.last_mut() {
        Some(last) if last.who == term.who => join(last, term),
        _ if term.work.jobs > 0 => terms.push(term),
        _ => {}
    }
}

/// Adds to the term of the same source, if there is one.
pub(crate) fn add(terms: &mut Vec<Interference>, term: Interference) {
    match terms.iter_mut().find(|other| other.who == term.who) {
        Some(other) => join(other, term),
        None if term.work.jobs > 0 => terms.push(term),
        None => {}
    }
}

fn join(term: &mut Interference, other: Interference) {
    term.work.jobs += other.work.jobs;
    term.work.execution += other.work.execution;
    term.work.overhead += other.work.overhead;
}
