//! The layout of the memory in which a running app shows its figures to other processes.
//!
//! The app makes an anonymous file named [`NAME`] and its own name, maps it, and writes its figures there; whoever may look
//! into `/proc/PID/fd` of the app can read it. It holds a [`Header`], a [`TaskFigures`] for each task, [`TrafficFigures`] of
//! what goes in and out beside the tasks, and a text in JSON that says what does not change during a run: names, levels, periods, and the granted settings.
//!
//! Each word is written by one thread at a time, by atomic loads and stores, so a reader sees whole words, and delays nobody.
//! It does not see all words of one job together: a count may be one job ahead of a histogram. Times are in ns.
//!
//! `punctual` writes this memory and `punctual top` reads it, both by this module.
//!
//! ```
//! use punctual_core::metrics::{bucket_end, bucket_of};
//!
//! assert_eq!(bucket_end(bucket_of(255)), 255);
//! let (value, end) = (1_000_000, bucket_end(bucket_of(1_000_000)));
//! assert!(value <= end && end < value + value / 128);
//! ```

// Not the atomics of a model: this is a layout.
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The name of the anonymous file begins so.
pub const NAME: &str = "punctual:";

/// The first word, once the rest of the header is written.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"PunctMet");

/// The version of the layout and of the text. Grows with each change to either.
pub const VERSION: u32 = 3;

/// Period in which a running app updates [`Header::updated`], in ns. Figures that were not updated for two periods are stale.
pub const UPDATE_PERIOD: u64 = 250_000_000;

/// The buckets of a doubling, as a power of two.
const BITS: u32 = 7;

/// The number of buckets of a [`Histogram`].
///
/// The values below 256 have a bucket each. From there on each doubling has 128 buckets, so none is wider than 1/128 of its values.
/// Up to 2^37 ns, which is 137 s; beyond that everything counts in the last bucket. These are the buckets of an HDR histogram
/// of two digits.
pub const BUCKETS: usize = buckets(BITS);

const fn buckets(bits: u32) -> usize {
    (37 - bits as usize - 1) * (1 << bits) + (2 << bits)
}

/// The bucket of a value.
///
/// Real-time safety: a few instructions.
#[inline]
pub fn bucket_of(value: u64) -> usize {
    of::<BITS>(value)
}

/// The last value in a bucket, one of [`BUCKETS`].
pub fn bucket_end(bucket: usize) -> u64 {
    end::<BITS>(bucket)
}

/// The buckets of a doubling where memory is scarce, as a power of two.
const COARSE_BITS: u32 = 4;

/// The number of buckets where memory is scarce: the same range, and none is wider than 1/16 of its values.
pub const COARSE_BUCKETS: usize = buckets(COARSE_BITS);

/// The bucket of a value, of [`COARSE_BUCKETS`].
///
/// Real-time safety: a few instructions.
#[inline]
pub fn coarse_bucket_of(value: u64) -> usize {
    of::<COARSE_BITS>(value)
}

/// The last value in a bucket, one of [`COARSE_BUCKETS`]. No two have their end in one of [`BUCKETS`].
pub fn coarse_bucket_end(bucket: usize) -> u64 {
    end::<COARSE_BITS>(bucket)
}

#[inline]
fn of<const BITS: u32>(value: u64) -> usize {
    // By how many bits the value is shortened: its highest set bit tells, and the `BITS` below it are the place.
    let least = (2 << BITS) - 1;
    let shift = (value | least).ilog2() - BITS;
    (((shift as usize) << BITS) + (value >> shift) as usize).min(buckets(BITS) - 1)
}

fn end<const BITS: u32>(bucket: usize) -> u64 {
    let shift = (bucket >> BITS).saturating_sub(1) as u32;
    let place = (bucket - ((shift as usize) << BITS)) as u64;
    ((place + 1) << shift) - 1
}

/// The value that `part` of all values, from 0 to 1, do not exceed: the end of its bucket. `buckets` are the end of each and its count,
/// in order; 0 if they are empty.
pub fn quantile(buckets: &[(u64, u64)], part: f64) -> u64 {
    let count: u64 = buckets.iter().map(|&(_, count)| count).sum();
    let exact = part * count as f64;
    // Rounded up, and at least 1: the first one has a bucket, too.
    let rank = (exact as u64 + u64::from((exact as u64 as f64) < exact)).max(1);
    let mut seen = 0;
    let bucket = buckets.iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    bucket.map_or(0, |&(end, _)| end)
}

/// The most [`TrafficFigures`] that there is room for.
pub const MAX_TRAFFIC: usize = 32;

/// The longest name in [`TrafficFigures`], in bytes.
pub const MAX_TRAFFIC_NAME: usize = 64;

/// The start of the memory.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// The number of tasks.
    pub tasks: AtomicU32,
    /// Where the first [`TaskFigures`] is, in bytes from the start.
    pub tasks_at: AtomicU64,
    /// The distance from one [`TaskFigures`] to the next, in bytes.
    pub stride: AtomicU64,
    /// Where the text is, in bytes from the start.
    pub text_at: AtomicU64,
    /// Its length in bytes.
    pub text_len: AtomicU64,
    /// Where the first of [`MAX_TRAFFIC`] [`TrafficFigures`] is, in bytes from the start.
    pub traffic_at: AtomicU64,
    /// How many of them have a name. Grows during a run.
    pub traffic: AtomicU64,
    /// The process, by its own namespace.
    pub process: AtomicU64,
    /// When the app started, by `CLOCK_MONOTONIC`; 0 before the end of `init`.
    pub started: AtomicU64,
    /// When a thread of the app that is not real time was here last, by `CLOCK_MONOTONIC`.
    pub updated: AtomicU64,
    /// 1 when the app is stopping.
    pub stopping: AtomicU64,
    /// The number of jobs released and never run.
    pub dropped: AtomicU64,
}

/// One quantity over all jobs of a task, in ns.
#[derive(Debug)]
#[repr(C)]
pub struct Quantity {
    /// That of the last job.
    pub last: AtomicU64,
    /// The largest.
    pub max: AtomicU64,
    /// The sum over all jobs, at most 2^64 − 1.
    pub sum: AtomicU64,
}

impl Quantity {
    /// Adds a value. For one thread at a time.
    ///
    /// Real-time safety: loads and stores.
    #[inline]
    pub fn record(&self, value: u64) {
        self.last.store(value, Relaxed);
        if value > self.max.load(Relaxed) {
            self.max.store(value, Relaxed);
        }
        self.sum.store(self.sum.load(Relaxed).saturating_add(value), Relaxed);
    }
}

/// How many values there were in each bucket, see [`bucket_of`].
#[derive(Debug)]
#[repr(C)]
pub struct Histogram(pub [AtomicU32; BUCKETS]);

/// The figures of a task. All zero at the start of a run.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TaskFigures {
    /// How many jobs have ended.
    pub jobs: AtomicU64,
    /// How many of them ended after their deadline.
    pub misses: AtomicU64,
    /// How many of them suspended themselves.
    pub suspended: AtomicU64,
    /// The longest time for which one of these was off its CPU.
    pub suspension_max: AtomicU64,
    /// Release jitter J.
    pub jitter: Quantity,
    /// Response time R.
    pub response: Quantity,
    /// Execution time C: start to end, without jobs that preempted it and its own suspensions.
    pub execution: Quantity,
    /// What jobs do not write, on a cache line of its own.
    pub occasional: Occasional,
    /// Of release jitter.
    pub jitters: Histogram,
    /// Of response times.
    pub responses: Histogram,
    /// Of execution times.
    pub executions: Histogram,
}

/// Counts that an ordinary thread of the app writes some times a second.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Occasional {
    /// How many releases found the previous job unfinished.
    pub overruns: AtomicU64,
    /// The number of early releases.
    pub early: AtomicU64,
    /// The number of jobs released by an idle event source.
    pub idle_releases: AtomicU64,
}

/// Messages that ordinary threads of the app carry in or out: those of a topic, or into a recording.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TrafficFigures {
    /// The name in UTF-8, followed by zeros.
    pub name: [AtomicU8; MAX_TRAFFIC_NAME],
    /// How many were carried.
    pub carried: AtomicU64,
    /// How many were lost on the way.
    pub lost: AtomicU64,
    /// How many came in and were not taken.
    pub refused: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut first = 0;
        for bucket in 0..BUCKETS {
            let end = bucket_end(bucket);
            assert_eq!((bucket_of(first), bucket_of(end)), (bucket, bucket));
            first = end + 1;
        }
        assert_eq!(first, 1 << 37);
        assert_eq!([first, u64::MAX].map(bucket_of), [BUCKETS - 1; 2]);
    }

    #[test]
    fn coarse_buckets_follow_each_other_and_end_in_different_fine_ones() {
        let (mut first, mut fine) = (0, None);
        for bucket in 0..COARSE_BUCKETS {
            let end = coarse_bucket_end(bucket);
            assert_eq!((coarse_bucket_of(first), coarse_bucket_of(end)), (bucket, bucket));
            assert!(end - first <= first / 16);
            assert!(fine < Some(bucket_of(end)) && bucket_end(bucket_of(end)) == end);
            (first, fine) = (end + 1, Some(bucket_of(end)));
        }
        assert_eq!(first, 1 << 37);
        assert_eq!([first, u64::MAX].map(coarse_bucket_of), [COARSE_BUCKETS - 1; 2]);
    }

    #[test]
    fn a_quantile_is_the_end_of_its_bucket() {
        let buckets = [(10, 1), (20, 998), (30, 1)];
        assert_eq!([0.0, 0.001, 0.5, 0.999, 1.0].map(|part| quantile(&buckets, part)), [10, 10, 20, 20, 30]);
        assert_eq!(quantile(&buckets, 0.0011), 20, "the second of a thousand");
        assert_eq!(quantile(&[], 0.5), 0);
        assert_eq!(quantile(&[(10, 0), (20, 1)], 0.0), 20, "no value is in the first");
    }

    #[test]
    fn figures_fill_whole_cache_lines() {
        assert_eq!(
            (size_of::<TaskFigures>() % 64, core::mem::offset_of!(TaskFigures, occasional) % 64),
            (0, 0)
        );
    }
}
