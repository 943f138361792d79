//! Preallocated memory for the measurements of real-time threads and tasks.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A buffer for a fixed number of measured times in ticks. Any thread appends through `&`.
#[derive(Debug)]
pub(crate) struct Recorder {
    next: AtomicUsize,
    ticks: Box<[AtomicU64]>,
}

impl Recorder {
    /// Creates a buffer for `samples`, in memory that has been written to.
    pub(crate) fn new(samples: usize) -> Self {
        // A nonzero value: zeros would leave the pages unmapped until the first real write.
        Self { next: AtomicUsize::new(0), ticks: (0..samples).map(|_| AtomicU64::new(u64::MAX)).collect() }
    }

    /// Appends a value; returns `true` if there is room for another. Drops the value if the buffer
    /// is full.
    ///
    /// Real-time safety: two atomic instructions.
    #[inline]
    pub(crate) fn push(&self, ticks: u64) -> bool {
        // Relaxed: the reader of the values has joined the threads that wrote them.
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = self.ticks.get(index) {
            place.store(ticks, Ordering::Relaxed);
        }
        index + 1 < self.ticks.len()
    }

    /// Returns `true` if the buffer is full.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len() == self.ticks.len()
    }

    /// Returns the number of values.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.next.load(Ordering::Relaxed).min(self.ticks.len())
    }

    /// Returns the values in ticks, in the order of recording.
    pub(crate) fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.ticks[..self.len()].iter().map(|ticks| ticks.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_samples_beyond_capacity() {
        let recorder = Recorder::new(2);
        assert!(recorder.push(1));
        assert!(!recorder.push(2));
        assert!(!recorder.push(3));
        assert!(recorder.is_full());
        assert_eq!(recorder.values().collect::<Vec<_>>(), [1, 2]);
    }
}
