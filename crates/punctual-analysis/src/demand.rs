//! Demand of several sources, and the least time at which it has been supplied.

use std::num::NonZeroU64;

use crate::arrival::Stream;
use crate::bound::{Interference, NoBound, Who, Work};
use crate::fraction::Fraction;
use crate::supply::Supply;
use crate::time::Nanos;

/// How many steps are taken for one bound, all fixed points together. They do not suffice only if next to nothing of the CPU is
/// left, or if a job may be late by a million periods.
const STEPS: u32 = 2_000_000;

/// The steps that are left.
#[derive(Debug)]
pub(crate) struct Steps(u32);

impl Steps {
    pub(crate) fn new() -> Self {
        Self(STEPS)
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Result<(), NoBound> {
        self.0 = self.0.checked_sub(1).ok_or(NoBound::TooLong)?;
        Ok(())
    }
}

/// Jobs that compete with others.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Who, and as what when it displaces a lower task.
    pub(crate) who: Who,
    /// Releases with all their jitter.
    pub(crate) all: Stream,
    /// Releases without the jitter that a response of their own task includes.
    pub(crate) own: Stream,
    /// About how many releases there are per nanosecond.
    pub(crate) rate: f64,
    /// When the first release is, but for the jitter, if that is known.
    pub(crate) offset: Option<Nanos>,
    /// C of a job, with what counts like it.
    pub(crate) execution: Nanos,
    /// What a job costs besides, when it preempts nobody.
    pub(crate) dispatch: Nanos,
    /// What a job costs besides, when it may preempt.
    pub(crate) preempting: Nanos,
}

impl Source {
    /// How much a job takes of those of its level.
    pub(crate) fn peer_cost(&self) -> Nanos {
        self.execution.saturating_add(self.dispatch)
    }

    /// How much a job takes of those of lower levels.
    #[inline]
    pub(crate) fn cost(&self) -> Nanos {
        self.execution.saturating_add(self.preempting)
    }

    /// What `jobs` of it contribute to a bound.
    #[inline]
    pub(crate) fn term(&self, who: Who, jobs: u64, overhead: Nanos) -> Interference {
        Interference {
            who,
            work: Work {
                jobs,
                execution: jobs.saturating_mul(self.execution),
                overhead: jobs.saturating_mul(overhead),
            },
        }
    }
}

/// What matters of a source above a task, if its releases are sporadic and nothing is known of its offset.
///
/// Fixed points take their time where these are summed up, so they lie close together, and what could overflow is looked at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slim {
    window: NonZeroU64,
    jitter: Nanos,
    cost: Nanos,
}

/// No slim source has a longer J or cost, nor have all together, and no longer time is looked at. Sums of J and a time, and of what as many
/// jobs take as such a time has nanoseconds, can be expressed.
const SLIM: Nanos = 1 << 62;

impl Slim {
    fn of(source: &Source) -> Option<Self> {
        let (jitter, cost) = (source.all.jitter(), source.cost());
        let is = source.all.is_sporadic() && source.offset.is_none() && jitter <= SLIM;
        let window = NonZeroU64::new(source.all.window()).filter(|_| is)?;
        Some(Self { window, jitter, cost })
    }

    /// [`Stream::before`] of its releases, within a time from 1 to [`SLIM`].
    #[inline]
    fn jobs(&self, length: Nanos) -> u64 {
        let last = length + self.jitter - 1;
        // Dividing takes longer than all the rest, and within the first window there is nothing to divide.
        if last < self.window.get() { 1 } else { last / self.window + 1 }
    }
}

/// What a slim source's term of a bound is made of, beside the number of jobs.
#[derive(Debug, Clone, Copy)]
struct Part {
    who: Who,
    execution: Nanos,
    preempting: Nanos,
}

/// Slim sources, highest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlimSources {
    sums: Vec<Slim>,
    parts: Vec<Part>,
}

impl SlimSources {
    /// The first of these sources, one list after the other, as far as all are slim.
    pub(crate) fn of_first(sources: &[Source], more: &[Source]) -> Self {
        let most = sources.len() + more.len();
        let mut slim = Self { sums: Vec::with_capacity(most), parts: Vec::with_capacity(most) };
        let mut costs: Nanos = 0;
        for source in sources.iter().chain(more) {
            let Some(sum) = Slim::of(source) else { break };
            costs = costs.saturating_add(sum.cost);
            if costs > SLIM {
                break;
            }
            slim.sums.push(sum);
            let Source { who, execution, preempting, .. } = *source;
            slim.parts.push(Part { who, execution, preempting });
        }
        slim
    }

    /// The first `count` of them, if there are as many.
    pub(crate) fn first(&self, count: usize) -> Option<Slims<'_>> {
        Some(Slims { sums: self.sums.get(..count)?, parts: self.parts.get(..count)? })
    }
}

/// Some of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slims<'a> {
    sums: &'a [Slim],
    parts: &'a [Part],
}

impl<'a> Slims<'a> {
    pub(crate) fn len(self) -> usize {
        self.sums.len()
    }

    /// What they contribute to a bound whose window is `length`, from 1 on, and to which they all come: it is the sum of these terms and of
    /// others, so none of them overflows.
    pub(crate) fn terms(self, length: Nanos) -> impl Iterator<Item = Interference> + use<'a> {
        debug_assert!((1..=SLIM).contains(&length), "a window of {length}");
        self.sums.iter().zip(self.parts).map(move |(sum, part)| {
            let jobs = sum.jobs(length);
            let work = Work { jobs, execution: jobs * part.execution, overhead: jobs * part.preempting };
            Interference { who: part.who, work }
        })
    }
}

/// About what sources take of a CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share {
    /// Of all.
    pub(crate) all: f64,
    /// Of those that are sporadic, and what their J makes of it at once.
    pub(crate) sporadic: f64,
    pub(crate) at_once: f64,
}

impl Share {
    fn of(source: &Source) -> Self {
        let all = source.rate * source.cost() as f64;
        match source.all.is_sporadic() {
            true => Self { all, sporadic: all, at_once: all * source.all.jitter() as f64 },
            false => Self { all, ..Self::default() },
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            sporadic: self.sporadic + other.sporadic,
            at_once: self.at_once + other.at_once,
        }
    }

    pub(crate) fn of_all(sources: &[Source]) -> Self {
        sources.iter().map(Self::of).fold(Self::default(), Self::plus)
    }

    /// Of the first 0, 1, … of these sources.
    pub(crate) fn of_first(sources: &[Source]) -> Vec<Self> {
        let mut shares = Vec::with_capacity(sources.len() + 1);
        shares.push(Self::default());
        let mut sum = Self::default();
        for source in sources {
            sum = sum.plus(Self::of(source));
            shares.push(sum);
        }
        shares
    }
}

/// Sources in several lists, so that none has to be copied.
pub(crate) type Sources<'a> = [&'a [Source]; 3];

/// The demand of sources of higher levels before an instant, or until it.
#[inline]
pub(crate) fn demand(base: Nanos, sources: Sources<'_>, length: Nanos) -> Option<Nanos> {
    let mut demand = base;
    // Two loops are faster than one over a flattened list.
    for list in sources {
        for source in list {
            demand = demand.checked_add(source.all.before(length)?.checked_mul(source.cost())?)?;
        }
    }
    Some(demand)
}

/// The same of slim sources, after the start of the window.
#[inline]
fn demand_of_slim(base: Nanos, sources: Slims<'_>, length: Nanos) -> Option<Nanos> {
    if length > SLIM {
        return None;
    }
    let jobs = |source: &Slim| u128::from(source.jobs(length)) * u128::from(source.cost);
    let demand = sources.sums.iter().map(jobs).fold(u128::from(base), |sum, time| sum + time);
    u64::try_from(demand).ok()
}

/// The least instant, from `from` on, at which `base` and all that was released before have been supplied.
///
/// `from` is not later than it. If it is after `most`, any instant between them may be returned.
pub(crate) fn finish(
    supply: Supply,
    base: Nanos,
    sources: Sources<'_>,
    from: Nanos,
    most: Nanos,
    steps: &mut Steps,
) -> Result<Nanos, NoBound> {
    finish_by(supply, |time| demand(base, sources, time), from, most, steps)
}

/// [`finish`] of slim sources.
pub(crate) fn finish_slim(
    supply: Supply,
    base: Nanos,
    sources: Slims<'_>,
    from: Nanos,
    most: Nanos,
    steps: &mut Steps,
) -> Result<Nanos, NoBound> {
    finish_by(supply, |time| demand_of_slim(base, sources, time), from, most, steps)
}

#[inline]
fn finish_by(
    supply: Supply,
    demand: impl Fn(Nanos) -> Option<Nanos>,
    from: Nanos,
    most: Nanos,
    steps: &mut Steps,
) -> Result<Nanos, NoBound> {
    let mut time = from.max(1);
    loop {
        steps.take()?;
        let needed = demand(time).and_then(|demand| supply.time_for(demand));
        let needed = needed.ok_or(NoBound::TooLong)?;
        if needed <= time || needed > most {
            return Ok(needed);
        }
        time = needed;
    }
}

/// The least instant, from `from` on, at which `base` and what goes first have been supplied, so that the next job may
/// begin. What is released at that very instant goes first, too, if `closed`.
pub(crate) fn start(
    supply: Supply,
    base: Nanos,
    sources: Sources<'_>,
    from: Nanos,
    closed: bool,
    steps: &mut Steps,
) -> Result<Nanos, NoBound> {
    let mut time = from;
    loop {
        steps.take()?;
        let counted = time.checked_add(u64::from(closed)).ok_or(NoBound::TooLong)?;
        let needed = demand(base, sources, counted).and_then(|demand| supply.time_for(demand));
        let needed = needed.ok_or(NoBound::TooLong)?;
        if needed <= time {
            return Ok(time);
        }
        time = needed;
    }
}

/// The share of the CPU that sources need; `cost` is that of a job.
pub(crate) fn utilisation<'a>(
    sources: impl IntoIterator<Item = &'a Source>,
    cost: impl Fn(&Source) -> Nanos,
) -> Fraction {
    let shares = sources.into_iter().map(|source| source.all.rate().times(cost(source)));
    shares.fold(Fraction::ZERO, Fraction::plus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(window: Nanos, jitter: Nanos, execution: Nanos) -> Source {
        let all = Stream::sporadic(window).with_jitter(jitter);
        let (own, rate) = (all.clone(), all.rate_estimate());
        Source { who: Who::Interrupt(0), all, own, rate, offset: None, execution, dispatch: 0, preempting: 1 }
    }

    #[test]
    fn slim_sources_are_what_they_are_made_of() {
        let sources = [source(10, 0, 2), source(7, 23, 0), source(1_000_000_007, 5, 3_000_000_000)];
        let slim = SlimSources::of_first(&sources[..1], &sources[1..]);
        assert!(slim.first(4).is_none());
        let slim = slim.first(3).unwrap();
        for length in (1..200).chain([1 << 31, 10_u64.pow(15), SLIM]) {
            let all = demand(5, [&sources, &[], &[]], length);
            assert_eq!(demand_of_slim(5, slim, length), all, "{length}");
            // It has terms only if it has an end.
            if all.is_some() {
                let term = |it: &Source| it.term(it.who, it.all.before(length).unwrap(), it.preempting);
                let terms: Vec<_> = sources.iter().map(term).collect();
                assert_eq!(slim.terms(length).collect::<Vec<_>>(), terms, "{length}");
            }
        }
        assert_eq!(demand_of_slim(5, slim, SLIM + 1), None);
    }

    /// What does not fit, and whatever comes after it, is looked at one by one.
    #[test]
    fn only_what_cannot_overflow_is_slim() {
        let plain = || source(10, 0, 2);
        let of = |other: Source| SlimSources::of_first(&[plain(), other], &[plain()]).sums.len();
        assert_eq!(of(plain()), 3);
        assert_eq!(of(source(10, SLIM + 1, 2)), 1);
        assert_eq!((of(source(10, 0, SLIM - 4)), of(source(10, 0, SLIM - 3))), (2, 1));
        assert_eq!(of(Source { offset: Some(3), ..plain() }), 1);
        assert_eq!(of(Source { all: Stream::bursts(2, 0, 10), ..plain() }), 1);
        // As many jobs as there can be, each as long as it can be.
        let most = SlimSources::of_first(&[source(1, SLIM, SLIM - 1)], &[]);
        assert_eq!(demand_of_slim(Nanos::MAX, most.first(1).unwrap(), SLIM), None);
    }
}
