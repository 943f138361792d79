//! A histogram that takes a few instructions to add to, with buckets of equal relative width.
//!
//! The values below 256 have a bucket each. From there on each doubling has 128 buckets, so none is wider than 1/128 of its values; which one it
//! is the highest set bit tells, and the seven bits below it. These are the buckets of an HDR histogram of two digits.

/// The buckets of a doubling, as a power of two.
const BITS: u32 = 7;
/// Up to 2^37 ns, which is 137 s; beyond that everything counts in the last bucket.
const BUCKETS: usize = (37 - BITS as usize - 1) * (1 << BITS) + (2 << BITS);

/// How many values there were in each bucket.
#[derive(Debug)]
pub(super) struct Histogram {
    counts: Box<[u32; BUCKETS]>,
}

impl Histogram {
    pub(super) fn new() -> Self {
        let counts = vec![0; BUCKETS].into_boxed_slice().try_into();
        Self { counts: counts.expect("the length is the array's") }
    }

    /// Adds a value. Never allocates and never drops one.
    #[inline]
    pub(super) fn record(&mut self, value: u64) {
        let shift = shift(value);
        let bucket = (shift as usize) << BITS;
        let bucket = (bucket + (value >> shift) as usize).min(BUCKETS - 1);
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    /// The upper end of each bucket that is not empty, the last value in it, and its count.
    pub(super) fn recorded(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = self.counts.iter().enumerate().filter(|(_, count)| **count != 0);
        buckets.map(|(bucket, &count)| (end(bucket), count.into()))
    }
}

/// By how many bits a value is shortened to find its bucket.
#[inline]
fn shift(value: u64) -> u32 {
    let least = (2 << BITS) - 1;
    (value | least).ilog2() - BITS
}

/// The last value in a bucket.
fn end(bucket: usize) -> u64 {
    let shift = (bucket >> BITS).saturating_sub(1) as u32;
    let place = (bucket - ((shift as usize) << BITS)) as u64;
    ((place + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram.recorded().collect()
    }

    #[test]
    fn has_the_buckets_of_an_hdr_histogram_of_two_digits() {
        let mut hdr = hdrhistogram::Histogram::<u32>::new_with_bounds(1, 100_000_000_000, 2).unwrap();
        let around = |power: u32| {
            let value = 1_u64 << power;
            [value - 1, value, value + 1, value + value / 3, value + value / 2]
        };
        let values = || (0..1_000).chain((8..36).flat_map(around));
        values().for_each(|value| hdr.saturating_record(value));
        let expected: Vec<_> =
            hdr.iter_recorded().map(|b| (b.value_iterated_to(), u64::from(b.count_at_value()))).collect();
        assert_eq!(recorded(values()), expected);
    }

    #[test]
    fn what_is_beyond_the_range_counts_in_the_last_bucket() {
        let last = (1 << 37) - 1;
        assert_eq!(
            recorded([last - (1 << 29), last, last + 1, u64::MAX]),
            [(last - (1 << 29), 1), (last, 3)]
        );
    }
}
