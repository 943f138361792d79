//! The summary of a measured quantity.

// Atomics from `core`, as in `cells::measured`.
use core::sync::atomic::Ordering::Relaxed;

use punctual_core::metrics::{BUCKETS, TaskFigures, Term, Values, bucket_end, quantile};

/// A measured quantity over all jobs of a task, in ns.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Exact maximum.
    pub max: u64,
    /// The 99.9th percentile, at most 1 % too large, or 1/16 on a CPU without Linux. `None` if it
    /// is unknown.
    pub p999: Option<u64>,
    /// The median, with the same precision.
    pub p50: Option<u64>,
    /// The mean.
    pub mean: f64,
    /// The histogram: upper end of each non-empty bucket, and its count.
    #[cfg(feature = "alloc")]
    pub buckets: alloc::vec::Vec<(u64, u64)>,
}

impl Summary {
    /// Returns the summary of a quantity, given the end and count of each nonempty bucket of its
    /// histogram, in order.
    pub(crate) fn new(values: Values, buckets: impl Iterator<Item = (u64, u64)> + Clone) -> Self {
        let Values { max, sum, .. } = values;
        let count: u64 = buckets.clone().map(|bucket| bucket.1).sum();
        let mean = if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        let quantile = |part| quantile(buckets.clone(), part).min(max);
        Self {
            max,
            p999: Some(quantile(0.999)),
            p50: Some(quantile(0.5)),
            mean,
            #[cfg(feature = "alloc")]
            buckets: buckets.collect(),
        }
    }

    /// Returns the summary of a term over all jobs.
    pub(crate) fn of_term(figures: &TaskFigures, term: Term) -> Self {
        let own = figures.of_term(term).0.into();
        Self::new(term.combine(own, (&figures.undisturbed).into()), recorded(figures, term))
    }
}

/// Returns the upper end of each nonempty bucket of a term, which is the last value in it, and its
/// count over all jobs.
fn recorded(figures: &TaskFigures, term: Term) -> impl Iterator<Item = (u64, u64)> + Clone {
    let own = &figures.of_term(term).1.0;
    let undisturbed = move |bucket: usize| figures.undisturbed_times.0[bucket].load(Relaxed);
    let count = move |bucket: usize| term.combine_count(bucket, own[bucket].load(Relaxed), undisturbed);
    let counts = (0..BUCKETS).map(move |bucket| (bucket, count(bucket)));
    counts.filter(|(_, count)| *count != 0).map(|(bucket, count)| (bucket_end(bucket), count.into()))
}
