//! Tasks with offsets: transactions on one preemptive CPU.
//!
//! *Tindell, "Adding Time-Offsets to Schedulability Analysis", University of York, YCS 221, 1994*,
//! and *Palencia & González Harbour, "Schedulability Analysis for Tasks with Static and Dynamic
//! Offsets", RTSS 1998*, section 4: the busy window of a task starts with a job of each
//! transaction, delayed by its full jitter. Which job is unknown, so every job of the task's own
//! transaction is tried, and for each other transaction the maximum at any instant counts.
//! *Mäki-Turja & Nolin, "Efficient Implementation of Tight Response-Times for Tasks with Offsets",
//! Real-Time Systems 40, 2008*: the terms that do not depend on the instant are computed once per
//! pair (their imposed interference, which is tighter still, is not used). Sufficient.
//!
//! Assumptions: tasks with offsets are released by one clock, at their offset and whole periods
//! after it, each up to J late. Tasks share a transaction if the longest period is a multiple of
//! each of their periods; a task with a shorter period occurs several times. A spawned task lies at
//! the root of its chain with the jitter that it inherits: its offset is dynamic, and 0 is the
//! shortest time to the spawn. All other sources count as if they could arrive at any time.
//!
//! The result is no tighter than the bound without offsets if the jitter reaches a period, and may
//! be less tight for a task with several places in its transaction. The analysis therefore uses the
//! lower of both.

use std::cmp::Reverse;

use crate::bound::{Bound, Exactness, Interference, Interferer, Work};
use crate::demand::{Source, Steps};
use crate::preemptive::{Contest, add};
use crate::time::Nanos;

/// Maximum number of places in a transaction, because the cost is quadratic.
const MAX_PLACES: u64 = 32;

/// One or more jobs released once per period of the transaction.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    source: &'a Source,
    offset: Nanos,
    /// Number of jobs per release.
    each: u64,
    is_own: bool,
}

#[derive(Debug)]
struct Transaction<'a> {
    period: Nanos,
    positions: Vec<Place<'a>>,
    /// Phases by the place whose job starts the window, and then by place.
    phases: Vec<Phase>,
}

/// Jobs of one place in a window that a job of another place starts.
#[derive(Debug, Clone, Copy)]
struct Phase {
    /// Arrival of the first job without jitter; at most one period.
    first: Nanos,
    /// Number of earlier jobs that are late enough to arrive at the start.
    late: u64,
}

/// A job of the task in a window.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    place: usize,
    begins: usize,
    /// Number of jobs of its place up to and including it.
    jobs: u64,
    /// Nominal release, relative to the start of the window.
    nominal: i128,
    finish: Nanos,
}

struct Analysis<'a> {
    contest: &'a Contest<'a>,
    own: Transaction<'a>,
    transactions: Vec<Transaction<'a>>,
    /// Sources outside all transactions.
    others: Vec<&'a Source>,
}

/// Bounds the response of the contest's task with offsets; `None` if the known offsets do not
/// affect it, or if that takes too many steps.
pub(crate) fn bound(contest: &Contest<'_>) -> Option<Bound> {
    let analysis = Analysis::new(contest)?;
    Some(analysis.terms(analysis.worst(None)?))
}

/// Returns whether every job responds within `limit`, given the known offsets.
pub(crate) fn responds_within(contest: &Contest<'_>, limit: Nanos) -> bool {
    let worst = Analysis::new(contest).and_then(|analysis| analysis.worst(Some(limit)));
    worst.is_some_and(|worst| worst.response() <= i128::from(limit))
}

impl Candidate {
    fn response(self) -> i128 {
        i128::from(self.finish) - self.nominal
    }
}

impl<'a> Transaction<'a> {
    fn add(&mut self, source: &'a Source, is_own: bool, period: Nanos, each: u64) {
        let offset = source.offset.unwrap_or(0) % period;
        let positions = (0..self.period / period).map(|time| Place {
            source,
            offset: offset + time * period,
            each,
            is_own,
        });
        self.positions.extend(positions);
    }

    fn relate(&mut self) {
        let period = i128::from(self.period);
        let jitter = |place: &Place<'_>| i128::from(place.source.all.jitter());
        let phase = |begins: &Place<'_>, place: &Place<'_>| {
            let latest = i128::from(begins.offset) + jitter(begins) - i128::from(place.offset);
            let first = period - latest.rem_euclid(period);
            Phase { first: first as Nanos, late: ((jitter(place) + first) / period) as u64 }
        };
        let pairs =
            self.positions.iter().flat_map(|begins| self.positions.iter().map(move |it| phase(begins, it)));
        self.phases = pairs.collect();
    }

    fn phases(&self, begins: usize) -> &[Phase] {
        &self.phases[begins * self.positions.len()..][..self.positions.len()]
    }

    /// Returns the number of releases of a place before an instant of the window.
    fn before(&self, phase: Phase, (whole, rest): (u64, Nanos)) -> u64 {
        phase.late + whole + u64::from(rest > phase.first)
    }

    /// Splits an instant into whole periods and the remainder.
    fn split(&self, time: Nanos) -> (u64, Nanos) {
        (time / self.period, time % self.period)
    }

    /// Returns the largest demand before an instant, and the job at the start with which it occurs.
    fn most(&self, time: Nanos) -> Option<(Nanos, usize)> {
        let split = self.split(time);
        let mut most = (0, 0);
        for begins in 0..self.positions.len() {
            let mut demand: Nanos = 0;
            for (place, &phase) in self.positions.iter().zip(self.phases(begins)) {
                let jobs = self.before(phase, split).checked_mul(place.each)?;
                demand = demand.checked_add(jobs.checked_mul(place.source.cost())?)?;
            }
            if demand > most.0 {
                most = (demand, begins);
            }
        }
        Some(most)
    }
}

impl<'a> Analysis<'a> {
    /// Returns `None` if no two relevant tasks share a transaction, or if the release of the task
    /// itself is unknown.
    fn new(contest: &'a Contest<'a>) -> Option<Self> {
        let has_offset = |source: &Source| source.offset.is_some();
        let is_any_above = || contest.slim.is_none() && contest.above.into_iter().flatten().any(has_offset);
        if !contest.level.iter().any(has_offset) && !is_any_above() {
            return None;
        }
        let mut own = contest.level.iter().filter(|source| contest.is_own(source));
        let (Some(single), None) = (own.next(), own.next()) else { return None };
        // If the task is spawned or suspends itself, its response does not start at its offset.
        if contest.runs_to_end || single.all.jitter() != contest.jitter || contest.suspension > 0 {
            return None;
        }
        let above = contest.above.into_iter().flatten().map(|source| (source, false));
        let level = contest.level.iter().map(|source| (source, contest.is_own(source)));
        let (mut with, mut others) = (Vec::new(), Vec::new());
        for (source, is_own) in above.chain(level) {
            match source.all.period().filter(|_| source.offset.is_some()) {
                Some((period, each)) => with.push((source, is_own, period, each)),
                None if !is_own => others.push(source),
                None => {}
            }
        }
        with.sort_by_key(|&(.., period, _)| Reverse(period));
        let mut transactions: Vec<Transaction<'a>> = Vec::new();
        for (source, is_own, period, each) in with {
            let has_room = |it: &Transaction<'_>| {
                it.period.is_multiple_of(period)
                    && it.period / period + it.positions.len() as u64 <= MAX_PLACES
            };
            let at = transactions.iter().position(has_room).unwrap_or(transactions.len());
            if at == transactions.len() {
                transactions.push(Transaction { period, positions: Vec::new(), phases: Vec::new() });
            }
            transactions[at].add(source, is_own, period, each);
        }
        if single.offset.is_none() {
            // Its distance to other tasks is unknown.
            let (period, each) = single.all.period()?;
            let mut own = Transaction { period, positions: Vec::new(), phases: Vec::new() };
            own.add(single, true, period, each);
            transactions.push(own);
        }
        // A single task has the same bound without offsets.
        if transactions.iter().all(|it| it.positions.len() == 1) {
            return None;
        }
        transactions.iter_mut().for_each(Transaction::relate);
        let own = transactions.iter().position(|it| it.positions.iter().any(|place| place.is_own))?;
        let own = transactions.swap_remove(own);
        Some(Self { contest, own, transactions, others })
    }

    /// Returns blocking plus the demand, before an instant, of all sources outside the task's own
    /// transaction.
    fn others(&self, time: Nanos) -> Option<Nanos> {
        let mut demand = self.contest.blocking.map_or(0, |blocking| blocking.time);
        for source in &self.others {
            demand = demand.checked_add(source.all.before(time)?.checked_mul(source.cost())?)?;
        }
        for transaction in &self.transactions {
            demand = demand.checked_add(transaction.most(time)?.0)?;
        }
        Some(demand)
    }

    /// Returns C of one job of a place.
    fn cost(&self, place: &Place<'_>) -> Nanos {
        if place.is_own {
            place.source.peer_cost().saturating_add(self.contest.suspension)
        } else {
            place.source.cost()
        }
    }

    /// Returns the number of jobs of a place of the task's own transaction that may run before a
    /// job of the task ends at `time`.
    ///
    /// Of other places of the task itself, only earlier releases count.
    fn jobs(&self, phase: Phase, place: &Place<'_>, time: (u64, Nanos), nominal: Option<i128>) -> u64 {
        let all = self.own.before(phase, time);
        let first = match nominal {
            Some(nominal) if place.is_own => {
                let period = i128::from(self.own.period);
                let come = (nominal - i128::from(phase.first) + period - 1).div_euclid(period);
                u64::try_from(come + i128::from(phase.late)).unwrap_or(0)
            }
            _ => all,
        };
        all.min(first).saturating_mul(place.each)
    }

    /// Returns the end of a job of the task, or of the whole window if none is given.
    fn finish(
        &self,
        begins: usize,
        job: Option<(usize, u64, i128)>,
        from: Nanos,
        steps: &mut Steps,
    ) -> Option<Nanos> {
        let mut time = from.max(1);
        loop {
            steps.take()?;
            let split = self.own.split(time);
            let demand = || {
                let mut demand = self.others(time)?;
                for (at, (place, &phase)) in
                    self.own.positions.iter().zip(self.own.phases(begins)).enumerate()
                {
                    let jobs = match job {
                        Some((own, jobs, _)) if own == at => jobs,
                        _ => self.jobs(phase, place, split, job.map(|(.., nominal)| nominal)),
                    };
                    demand = demand.checked_add(jobs.checked_mul(self.cost(place))?)?;
                }
                self.contest.supply.time_for(demand)
            };
            let needed = demand()?;
            if needed <= time {
                return Some(needed);
            }
            time = needed;
        }
    }

    /// Returns the job with the longest response. With a `limit`, the first job found above it may
    /// be returned instead.
    fn worst(&self, limit: Option<Nanos>) -> Option<Candidate> {
        let pairs = self.transactions.iter().map(|it| it.phases.len()).sum::<usize>();
        let mut steps = Steps::new(pairs + self.own.positions.len() + self.others.len());
        let mut worst: Option<Candidate> = None;
        for begins in 0..self.own.positions.len() {
            let end = self.finish(begins, None, 0, &mut steps)?;
            let phases = self.own.phases(begins);
            let own =
                self.own.positions.iter().zip(phases).enumerate().filter(|(_, (place, _))| place.is_own);
            for (at, (place, phase)) in own {
                let period = i128::from(self.own.period);
                let mut nominal = i128::from(phase.first) - i128::from(phase.late) * period;
                let (mut jobs, mut finish) = (0_u64, 0);
                while nominal < i128::from(end) {
                    jobs = jobs.checked_add(place.each)?;
                    finish = self.finish(begins, Some((at, jobs, nominal)), finish, &mut steps)?;
                    let candidate = Candidate { place: at, begins, jobs, nominal, finish };
                    if worst.is_none_or(|worst| candidate.response() > worst.response()) {
                        worst = Some(candidate);
                        if limit.is_some_and(|limit| candidate.response() > i128::from(limit)) {
                            return Some(candidate);
                        }
                    }
                    nominal += period;
                }
            }
        }
        worst
    }

    fn terms(&self, worst: Candidate) -> Bound {
        let Candidate { place: own_place, begins, jobs: own_jobs, nominal, finish } = worst;
        let mut own = Work::default();
        let mut interference: Vec<Interference> = Vec::new();
        for source in &self.others {
            add(
                &mut interference,
                source.term(source.who, source.all.before(finish).unwrap_or(0), source.preempting),
            );
        }
        for transaction in &self.transactions {
            let begins = transaction.most(finish).map_or(0, |(_, begins)| begins);
            let split = transaction.split(finish);
            for (place, &phase) in transaction.positions.iter().zip(transaction.phases(begins)) {
                let jobs = transaction.before(phase, split).saturating_mul(place.each);
                add(&mut interference, place.source.term(place.source.who, jobs, place.source.preempting));
            }
        }
        let split = self.own.split(finish);
        for (at, (place, &phase)) in self.own.positions.iter().zip(self.own.phases(begins)).enumerate() {
            let source = place.source;
            if place.is_own {
                let jobs =
                    if at == own_place { own_jobs } else { self.jobs(phase, place, split, Some(nominal)) };
                let work = source.term(source.who, jobs, source.dispatch).work;
                own.jobs += jobs;
                own.execution += work.execution + jobs * self.contest.suspension;
                own.overhead += work.overhead;
            } else {
                let jobs = self.jobs(phase, place, split, Some(nominal));
                add(&mut interference, source.term(source.who, jobs, source.preempting));
            }
        }
        // Peers are counted like tasks of a higher level, but reported as peers.
        for term in &mut interference {
            let is_peer = |who| self.contest.level.iter().any(|source| source.who == who);
            if let Interferer::Higher(task) = term.who
                && is_peer(term.who)
            {
                term.who = Interferer::Peer(task);
            }
        }
        // The job is delayed by its full jitter, or ready at the start of the window if its nominal
        // release was earlier.
        let jitter = self.contest.jitter;
        let released = nominal + i128::from(jitter);
        let mut bound = Bound {
            response: Nanos::try_from(worst.response()).unwrap_or(Nanos::MAX),
            jitter,
            window: finish,
            released: Nanos::try_from(released).unwrap_or(0),
            blocking: self.contest.blocking,
            own,
            spinning: self.contest.spinning.saturating_mul(own.jobs),
            suspension: self.contest.suspension.saturating_mul(own.jobs),
            interference,
            not_supplied: 0,
            exactness: Exactness::Sufficient,
            without_offsets: None,
            since_root: None,
        };
        bound.not_supplied = finish - bound.sum_of_terms();
        bound
    }
}
