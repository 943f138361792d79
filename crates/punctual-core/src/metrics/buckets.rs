//! The buckets of histograms, those of an HDR histogram with two digits, and their quantiles.
//!
//! ```
//! use punctual_core::metrics::{bucket_end, bucket_of};
//!
//! assert_eq!(bucket_end(bucket_of(255)), 255);
//! let (value, end) = (1_000_000, bucket_end(bucket_of(1_000_000)));
//! assert!(value <= end && end < value + value / 128);
//! ```

/// Buckets per doubling, as a power of two.
const BITS: u32 = 7;

/// The number of buckets of a [`Histogram`](super::Histogram).
///
/// Values below 256 have a bucket each. Above that, each doubling has 128 buckets, so a bucket is
/// at most 1/128 as wide as its values. The range ends at 2^37 ns (137 s); larger values count in
/// the last bucket. These are the buckets of an HDR histogram with two digits.
pub const BUCKETS: usize = buckets(BITS);

const fn buckets(bits: u32) -> usize {
    (37 - bits as usize - 1) * (1 << bits) + (2 << bits)
}

/// Returns the bucket of a value.
///
/// Real-time safety: a few instructions.
#[inline]
pub fn bucket_of(value: u64) -> usize {
    of::<BITS>(value)
}

/// Returns the last value in a bucket, one of [`BUCKETS`].
pub fn bucket_end(bucket: usize) -> u64 {
    end::<BITS>(bucket)
}

/// Buckets per doubling where memory is scarce, as a power of two.
const COARSE_BITS: u32 = 4;

/// The number of buckets where memory is scarce: the same range, with buckets at most 1/16 as wide
/// as their values.
pub const COARSE_BUCKETS: usize = buckets(COARSE_BITS);

/// Returns the bucket of a value, one of [`COARSE_BUCKETS`].
///
/// Real-time safety: a few instructions.
#[inline]
pub fn coarse_bucket_of(value: u64) -> usize {
    of::<COARSE_BITS>(value)
}

/// Returns the last value in a bucket, one of [`COARSE_BUCKETS`]. No two of these values share one
/// of [`BUCKETS`].
pub fn coarse_bucket_end(bucket: usize) -> u64 {
    end::<COARSE_BITS>(bucket)
}

#[inline]
fn of<const BITS: u32>(value: u64) -> usize {
    // The number of low bits to drop, from the highest set bit; the `BITS` bits below it select the
    // bucket.
    let least = (2 << BITS) - 1;
    let shift = (value | least).ilog2() - BITS;
    let bucket = ((shift as usize) << BITS) + (value >> shift) as usize;
    if bucket >= buckets(BITS) {
        // Cold, so that other values cost a branch and no choice.
        core::hint::cold_path();
        return buckets(BITS) - 1;
    }
    bucket
}

fn end<const BITS: u32>(bucket: usize) -> u64 {
    let shift = (bucket >> BITS).saturating_sub(1) as u32;
    let place = (bucket - ((shift as usize) << BITS)) as u64;
    ((place + 1) << shift) - 1
}

/// Returns the quantile `part` (0 to 1): the end of the bucket that contains it. `buckets` yields
/// the end and count of each bucket, in order. Returns 0 if they are empty.
pub fn quantile(buckets: impl IntoIterator<Item = (u64, u64)> + Clone, part: f64) -> u64 {
    let count: u64 = buckets.clone().into_iter().map(|(_, count)| count).sum();
    let exact = part * count as f64;
    // Rounded up, and at least 1: the first value has a bucket, too.
    let rank = (exact as u64 + u64::from((exact as u64 as f64) < exact)).max(1);
    let mut seen = 0;
    let bucket = buckets.into_iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    bucket.map_or(0, |(end, _)| end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous() {
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
    fn coarse_buckets_are_contiguous_and_end_in_different_fine_ones() {
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
    fn quantile_is_end_of_bucket() {
        let buckets = [(10, 1), (20, 998), (30, 1)];
        assert_eq!([0.0, 0.001, 0.5, 0.999, 1.0].map(|part| quantile(buckets, part)), [10, 10, 20, 20, 30]);
        assert_eq!(quantile(buckets, 0.0011), 20, "the second of a thousand");
        assert_eq!(quantile([], 0.5), 0);
        assert_eq!(quantile([(10, 0), (20, 1)], 0.0), 20, "no value is in the first");
    }
}
