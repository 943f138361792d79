//! The recent past, in fixed memory: the occupants of each CPU, and the states of each thread.
//!
//! The cause of a delay is often known only afterwards: the holder of a plain mutex is identified
//! by its wake-up of the waiter. So instead of following all candidates, the analysis stores
//! changes and looks back.

use super::cause::Actor;

/// A ring of instants, each with the value that held from then on.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    entries: Box<[(u64, T)]>,
    /// Total number of pushes; the newest entry is at `(pushed - 1) & mask`.
    pushed: usize,
}

impl<T: Copy> Ring<T> {
    /// Creates a ring of at least `capacity` entries.
    pub(crate) fn new(capacity: usize, fill: T) -> Self {
        Self { entries: vec![(0, fill); capacity.max(2).next_power_of_two()].into_boxed_slice(), pushed: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, time: u64, value: T) {
        let mask = self.entries.len() - 1;
        self.entries[self.pushed & mask] = (time, value);
        self.pushed = self.pushed.wrapping_add(1);
    }

    /// Returns true in time for the caller to read all entries pushed since the last true before
    /// any is overwritten.
    #[inline]
    pub(crate) fn half_full(&self) -> bool {
        self.pushed & (self.entries.len() / 2 - 1) == 0
    }

    /// Calls `each(value, from, to)` for each value that held in the interval, newest first, and
    /// finally with `None` for the part that precedes all entries.
    pub(crate) fn walk(&self, from: u64, to: u64, mut each: impl FnMut(Option<T>, u64, u64)) {
        let mask = self.entries.len() - 1;
        let mut end = to;
        for back in 1..=self.entries.len().min(self.pushed) {
            if end <= from {
                return;
            }
            let (time, value) = self.entries[self.pushed.wrapping_sub(back) & mask];
            if time < end {
                each(Some(value), time.max(from), end);
                end = time;
            }
        }
        if end > from {
            each(None, from, end);
        }
    }
}

/// Occupants of a CPU.
pub(crate) type Occupants = Ring<Actor>;

/// State of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Unknown.
    Unknown,
    /// Running.
    Running,
    /// Runnable.
    Ready,
    /// Sleeping.
    Asleep,
}

/// States of a thread, with its CPU.
pub(crate) type ThreadHistory = Ring<(State, u16)>;

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(ring: &Ring<char>, from: u64, to: u64) -> Vec<(Option<char>, u64, u64)> {
        let mut seen = Vec::new();
        ring.walk(from, to, |what, a, b| seen.push((what, a, b)));
        seen
    }

    #[test]
    fn looks_up_state_at_instant() {
        let mut ring = Ring::new(4, ' ');
        assert_eq!(walked(&ring, 0, 5), [(None, 0, 5)]);
        for (time, what) in [(10, 'a'), (20, 'b'), (20, 'c'), (30, 'd')] {
            ring.push(time, what);
        }
        let whole = [(Some('d'), 30, 35), (Some('c'), 20, 30), (Some('a'), 10, 20), (None, 5, 10)];
        assert_eq!(walked(&ring, 5, 35), whole);
        assert_eq!(walked(&ring, 12, 18), [(Some('a'), 12, 18)]);
        assert_eq!(walked(&ring, 12, 12), []);
        ring.push(40, 'e');
        assert_eq!(walked(&ring, 5, 25), [(Some('c'), 20, 25), (None, 5, 20)]);
    }
}
