//! Demand of several sources, and the earliest time at which it has been supplied.

use std::mem;
use std::num::NonZeroU64;

use crate::arrival::Stream;
use crate::bound::{Interference, Interferer, Work};
use crate::fraction::Fraction;
use crate::supply::Supply;
use crate::time::Nanos;
use crate::work;

/// Maximum number of steps per bound, over all its fixed points. The limit is reached only if
/// almost no CPU time is left, or if the jitter is about a million periods.
const STEPS: u32 = 2_000_000;

#[cfg(test)]
thread_local! {
    /// Number of steps on this thread so far.
    pub(crate) static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Remaining steps of a bound, which count as work when the bound has been found.
#[derive(Debug)]
pub(crate) struct Steps {
    left: u32,
    all: u32,
    /// Number of sources that a step visits.
    sources: usize,
}

impl Steps {
    pub(crate) fn new(sources: usize) -> Self {
        let most = work::left() / (sources as u64 + 1);
        let all = STEPS.min(u32::try_from(most).unwrap_or(STEPS));
        Self { left: all, all, sources }
    }

    /// Counts a step, or returns `None` at the limit.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<()> {
        #[cfg(test)]
        TAKEN.set(TAKEN.get() + 1);
        self.left = self.left.checked_sub(1)?;
        Some(())
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        // The step that exceeds the limit counts as well, so that all of the rest is used up.
        let steps = if self.left == 0 { self.all as usize + 1 } else { (self.all - self.left) as usize };
        work::count(steps.saturating_mul(self.sources + 1));
    }
}

/// Jobs that compete for the CPU.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The source, in its role towards a lower task.
    pub(crate) who: Interferer,
    /// Releases with full jitter.
    pub(crate) all: Stream,
    /// Releases without the jitter that the task's own response includes.
    pub(crate) own: Stream,
    /// Approximate releases per nanosecond.
    pub(crate) rate: f64,
    /// Instant of the first release without jitter, if known.
    pub(crate) offset: Option<Nanos>,
    /// C of a job, including work accounted to it.
    pub(crate) execution: Nanos,
    /// Overhead of a job that does not preempt.
    pub(crate) dispatch: Nanos,
    /// Overhead of a job that may preempt.
    pub(crate) preempting: Nanos,
}

impl Source {
    /// Returns the time that a job takes from jobs at the same level.
    pub(crate) fn peer_cost(&self) -> Nanos {
        self.execution.saturating_add(self.dispatch)
    }

    /// Returns the time that a job takes from jobs of lower levels.
    #[inline]
    pub(crate) fn cost(&self) -> Nanos {
        self.execution.saturating_add(self.preempting)
    }

    /// Returns the contribution of `jobs` jobs to a bound.
    #[inline]
    pub(crate) fn term(&self, who: Interferer, jobs: u64, overhead: Nanos) -> Interference {
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

/// Compact form of a source with sporadic releases and unknown offset.
///
/// Fixed points spend their time counting the releases of such sources: an array of them is
/// contiguous in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slim {
    window: NonZeroU64,
    jitter: Nanos,
    cost: Nanos,
}

/// Limit on the jitter of a compact source, on the sum of the costs of all, and on the times at
/// which they are evaluated. Within it, the sum of a jitter and a time cannot overflow, and no cost
/// is saturated. Products of jobs and costs are checked while the end of a window is searched, and
/// are parts of that window afterwards.
const SLIM: Nanos = 1 << 62;

impl Slim {
    fn of(source: &Source) -> Option<Self> {
        let (jitter, cost) = (source.all.jitter(), source.cost());
        let is = source.all.is_sporadic() && source.offset.is_none() && jitter <= SLIM;
        let window = NonZeroU64::new(source.all.window()).filter(|_| is)?;
        Some(Self { window, jitter, cost })
    }

    /// [`Stream::before`] of the releases, for a time from 1 to [`SLIM`].
    #[inline]
    fn jobs(&self, length: Nanos) -> u64 {
        let last = length + self.jitter - 1;
        // Division dominates the cost, and the first window needs none.
        if last < self.window.get() { 1 } else { last / self.window + 1 }
    }

    /// Counts the releases before a time from 1 to [`SLIM`].
    #[inline]
    fn count(&self, length: Nanos) -> Count {
        let jobs = self.jobs(length);
        // A saturated product exceeds every time that is evaluated.
        Count { jobs, until: jobs.saturating_mul(self.window.get()) - self.jitter }
    }
}

/// The parts of a compact source's term other than the number of jobs.
#[derive(Debug, Clone, Copy)]
struct Part {
    who: Interferer,
    execution: Nanos,
    preempting: Nanos,
}

/// Compact sources, highest level first.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlimSources {
    sums: Vec<Slim>,
    parts: Vec<Part>,
}

impl SlimSources {
    /// Collects the longest prefix of these sources, one list after the other, that can be compact.
    pub(crate) fn from_first(sources: &[Source], more: &[Source]) -> Self {
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

    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Returns the first `count` sources, if that many are compact.
    pub(crate) fn first(&self, count: usize) -> Option<Slims<'_>> {
        Some(Slims { sums: self.sums.get(..count)?, parts: self.parts.get(..count)? })
    }
}

/// A prefix of the compact sources.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slims<'a> {
    sums: &'a [Slim],
    parts: &'a [Part],
}

impl<'a> Slims<'a> {
    pub(crate) fn len(self) -> usize {
        self.sums.len()
    }

    /// Returns the contributions to a bound with window `length`; `None` if that is 0, or too long
    /// for the compact form. The window is the sum of these terms and others, so none of them
    /// overflows.
    pub(crate) fn terms(
        self,
        length: Nanos,
        counts: &mut Counts,
    ) -> Option<impl Iterator<Item = Interference>> {
        if !(1..=SLIM).contains(&length) {
            return None;
        }
        counts.advance(self, length);
        Some(self.parts.iter().zip(&counts.counts).map(|(part, &Count { jobs, .. })| {
            let work = Work { jobs, execution: jobs * part.execution, overhead: jobs * part.preempting };
            Interference { who: part.who, work }
        }))
    }
}

/// Number of releases before an instant.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    jobs: u64,
    /// The latest instant before which there are no more.
    until: Nanos,
}

/// Numbers of releases of compact sources before an instant, and their demand.
///
/// A fixed point evaluates the demand at growing instants, and that of the next lower task starts
/// at the end of this one. A count remains valid until the next release of its source, so each
/// instant costs one comparison per source, and only sources with further releases are counted
/// again. The additional demand of a source moves the instant before the next source is counted:
/// the incremental computation of *Davis, Zabos, Burns, "Efficient Exact Schedulability Tests for
/// Fixed Priority Real-Time Systems", IEEE Transactions on Computers 57(9), 2008*.
#[derive(Debug)]
pub(crate) struct Counts {
    /// One count per source, of an instant up to `time`.
    counts: Vec<Count>,
    /// Demand of all counted releases.
    demand: Nanos,
    /// [`Nanos::MAX`] if a search has failed: then nothing is reused.
    time: Nanos,
}

impl Counts {
    /// Creates counts with room for this number of sources.
    pub(crate) fn new(sources: usize) -> Self {
        Self { counts: Vec::with_capacity(sources), demand: 0, time: 0 }
    }

    /// Discards the counts if they are of other sources or of an instant after `from`, and adds the
    /// missing ones.
    fn restart(&mut self, sources: Slims<'_>, from: Nanos) {
        if self.time > from || self.counts.len() > sources.len() {
            self.counts.clear();
            self.demand = 0;
        }
        self.counts.resize(sources.len(), Count::default());
    }

    /// Counts all releases before `time`, whose demand does not overflow.
    fn advance(&mut self, sources: Slims<'_>, time: Nanos) {
        self.restart(sources, time);
        for (source, count) in sources.sums.iter().zip(&mut self.counts) {
            if count.until < time {
                let before = mem::replace(count, source.count(time));
                self.demand += (count.jobs - before.jobs) * source.cost;
            }
        }
        self.time = time;
    }

    /// [`finish`] for compact sources, which are always of the same partition.
    pub(crate) fn finish(
        &mut self,
        supply: Supply,
        base: Nanos,
        sources: Slims<'_>,
        from: Nanos,
        most: Nanos,
        steps: &mut Steps,
    ) -> Option<Nanos> {
        self.restart(sources, from);
        let mut demand = base.checked_add(self.demand)?;
        let mut needed = supply.time_for(demand)?;
        let mut time = from.max(needed).max(1);
        // Until the search succeeds.
        self.time = Nanos::MAX;
        loop {
            steps.take()?;
            let mut is_counted = true;
            // Lower levels first: a job of theirs usually takes longer, and moves the instant over
            // several releases of higher ones.
            for (source, count) in sources.sums.iter().zip(&mut self.counts).rev() {
                if count.until < time {
                    if time > SLIM {
                        return None;
                    }
                    is_counted = false;
                    let before = mem::replace(count, source.count(time));
                    let more = (count.jobs - before.jobs).checked_mul(source.cost)?;
                    demand = demand.checked_add(more)?;
                    needed = supply.time_for(demand)?;
                    time = time.max(needed);
                }
            }
            if time > SLIM {
                return None;
            }
            if is_counted || needed > most {
                (self.time, self.demand) = (time, demand - base);
                return Some(needed);
            }
        }
    }
}

/// Approximate CPU share of a set of sources.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share {
    /// Share of all sources.
    pub(crate) all: f64,
    /// Share of the sporadic sources, and the demand that their jitter adds at once.
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

    /// Returns the shares of the first 0, 1, … sources.
    pub(crate) fn from_first(sources: &[Source]) -> Vec<Self> {
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

/// Sources in several lists, to avoid copies.
pub(crate) type Sources<'a> = [&'a [Source]; 3];

/// Demand of sources of higher levels before an instant, or until it.
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

/// Returns the earliest instant, from `from` on, at which `base` and all earlier releases have been
/// supplied.
///
/// The result must not be before `from`. If it is after `most`, any instant between them may be
/// returned.
pub(crate) fn finish(
    supply: Supply,
    base: Nanos,
    sources: Sources<'_>,
    from: Nanos,
    most: Nanos,
    steps: &mut Steps,
) -> Option<Nanos> {
    let mut time = from.max(1);
    loop {
        steps.take()?;
        let needed = supply.time_for(demand(base, sources, time)?)?;
        if needed <= time || needed > most {
            return Some(needed);
        }
        time = needed;
    }
}

/// Returns the earliest instant, from `from` on, at which `base` and the work ahead have been
/// supplied, so that the next job may start. If `closed`, releases at that very instant go first
/// too.
pub(crate) fn start(
    supply: Supply,
    base: Nanos,
    sources: Sources<'_>,
    from: Nanos,
    closed: bool,
    steps: &mut Steps,
) -> Option<Nanos> {
    let mut time = from;
    loop {
        steps.take()?;
        let counted = time.checked_add(u64::from(closed))?;
        let needed = supply.time_for(demand(base, sources, counted)?)?;
        if needed <= time {
            return Some(time);
        }
        time = needed;
    }
}

/// Returns the CPU utilization of sources, with `cost` per job.
pub(crate) fn utilization<'a>(
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
        Source {
            who: Interferer::Interrupt(0),
            all,
            own,
            rate,
            offset: None,
            execution,
            dispatch: 0,
            preempting: 1,
        }
    }

    #[test]
    fn slim_sources_equal_their_sources() {
        let sources = [source(10, 0, 2), source(7, 23, 0), source(1_000_000_007, 5, 3_000_000_000)];
        let slim = SlimSources::from_first(&sources[..1], &sources[1..]);
        assert!(slim.first(4).is_none());
        let slim = slim.first(3).unwrap();
        let mut counts = Counts::new(3);
        for length in (1..200).chain([1 << 31, 10_u64.pow(15), SLIM]).chain((1..200).rev()) {
            let term = |it: &Source| it.term(it.who, it.all.before(length).unwrap(), it.preempting);
            let terms: Vec<_> = sources.iter().map(term).collect();
            assert_eq!(slim.terms(length, &mut counts).unwrap().collect::<Vec<_>>(), terms, "{length}");
            assert_eq!(Some(counts.demand), demand(0, [&sources, &[], &[]], length), "{length}");
        }
        assert_eq!(counts.finish(Supply::Full, 5, slim, SLIM + 1, Nanos::MAX, &mut Steps::new(0)), None);
        assert!([0, SLIM + 1].iter().all(|&length| slim.terms(length, &mut counts).is_none()));
    }

    #[test]
    fn compact_sources_count_releases_of_their_stream() {
        for jitter in [0, 3, 25] {
            let source = source(10, jitter, 1);
            let slim = Slim::of(&source).unwrap();
            for time in 1..100 {
                let Count { jobs, until } = slim.count(time);
                let before = |time| source.all.before(time).unwrap();
                assert_eq!(jobs, before(time), "{jitter} {time}");
                assert!(
                    until >= time && before(until) == jobs && before(until + 1) > jobs,
                    "{jitter} {time}"
                );
            }
        }
    }

    /// Counts are reused at later instants and for further sources, and not otherwise.
    #[test]
    fn counts_find_the_same_ends() {
        let sources = [source(10, 3, 1), source(45, 0, 14), source(700, 900, 130), source(1_000, 0, 50)];
        let all = SlimSources::from_first(&sources, &[]);
        let mut counts = Counts::new(sources.len());
        for supply in [Supply::Full, Supply::Periodic { budget: 95, period: 100 }] {
            for above in 0..=sources.len() {
                let (slim, above) = (all.first(above).unwrap(), &sources[..above]);
                let mut end = 0;
                for base in (1..2_000).step_by(7) {
                    let plain = finish(supply, base, [above, &[], &[]], 0, Nanos::MAX, &mut Steps::new(0));
                    let found = counts.finish(supply, base, slim, end, Nanos::MAX, &mut Steps::new(0));
                    assert_eq!(found, plain, "{supply:?} {base} {above:?}");
                    end = plain.unwrap();
                }
                // A search that fails leaves nothing to reuse.
                let mut search =
                    |mut steps| counts.finish(supply, 2 * end, slim, end, Nanos::MAX, &mut steps);
                assert_eq!(search(Steps { left: 0, ..Steps::new(0) }), None);
                if !above.is_empty() {
                    assert_eq!(search(Steps { left: 1, ..Steps::new(0) }), None);
                }
                let plain = finish(supply, 2 * end, [above, &[], &[]], 0, Nanos::MAX, &mut Steps::new(0));
                assert_eq!(search(Steps::new(0)), plain, "{supply:?} {above:?}");
            }
        }
    }

    /// Sources that do not fit, and all that follow them, are evaluated one by one.
    #[test]
    fn slims_only_sources_that_cannot_overflow() {
        let plain = || source(10, 0, 2);
        let of = |other: Source| SlimSources::from_first(&[plain(), other], &[plain()]).sums.len();
        assert_eq!(of(plain()), 3);
        assert_eq!(of(source(10, SLIM + 1, 2)), 1);
        assert_eq!((of(source(10, 0, SLIM - 4)), of(source(10, 0, SLIM - 3))), (2, 1));
        assert_eq!(of(Source { offset: Some(3), ..plain() }), 1);
        assert_eq!(of(Source { all: Stream::bursts(2, 0, 10), ..plain() }), 1);
        // The largest number of jobs, each of the largest cost.
        let most = SlimSources::from_first(&[source(1, SLIM, SLIM - 1)], &[]);
        let (most, mut counts) = (most.first(1).unwrap(), Counts::new(1));
        assert_eq!(counts.finish(Supply::Full, 1, most, 1, Nanos::MAX, &mut Steps::new(0)), None);
    }
}
