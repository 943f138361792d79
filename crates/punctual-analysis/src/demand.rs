//! Demand of several sources, and the least time at which it has been supplied.

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
    let mut time = from.max(1);
    loop {
        steps.take()?;
        let needed = demand(base, sources, time).and_then(|demand| supply.time_for(demand));
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
