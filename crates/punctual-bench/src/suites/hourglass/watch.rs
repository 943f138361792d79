//! The loop.

use crate::{Stop, clock};

/// Passes that take fewer ticks are only counted, by their duration.
const COUNTED: usize = 4096;

/// The maximum number of recorded longer passes.
const ROOM: usize = 1 << 18;

/// A span between two readings of the clock, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// A loop, with preallocated memory.
#[derive(Debug)]
pub(super) struct Watch {
    length: u64,
    gap: u64,
    passes: Box<[u64; COUNTED]>,
    long: Vec<Span>,
}

/// The result of a loop.
#[derive(Debug)]
pub(super) struct Watched {
    /// The kernel's number of the thread.
    pub(super) thread: i32,
    pub(super) from: u64,
    pub(super) to: u64,
    /// The number of passes, by duration in ticks.
    pub(super) passes: Box<[u64; COUNTED]>,
    /// The gaps, and all passes that are too long to be counted by duration.
    pub(super) long: Vec<Span>,
    /// The minimum duration of a gap, in ticks.
    gap: u64,
    /// `true` if the buffer is full.
    pub(super) is_full: bool,
}

impl Watch {
    /// Creates a loop with this `length` and minimum `gap`, in ticks.
    pub(super) fn new(length: u64, gap: u64) -> Self {
        let mut long = vec![Span { from: 1, to: 1 }; ROOM];
        // Keeps the memory, which has been written to.
        long.clear();
        Self { length, gap, passes: Box::new([0; COUNTED]), long }
    }

    /// Runs on the calling thread until the time has elapsed, the buffer is full, or `stop` is
    /// requested.
    pub(super) fn run(self, stop: &Stop) -> Watched {
        let Self { length, gap, mut passes, mut long } = self;
        // A pass that is not recorded as a span is counted by its duration.
        let keep = gap.min(COUNTED as u64);
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let from = clock::now();
        let mut last = from;
        let is_full = loop {
            let now = clock::now();
            let pass = now.saturating_sub(last);
            if pass < keep {
                passes[pass as usize] += 1;
            } else {
                long.push(Span { from: last, to: now });
                if long.len() == ROOM {
                    last = now;
                    break true;
                }
            }
            last = now;
            if now.wrapping_sub(from) >= length || stop.is_requested() {
                break false;
            }
        };
        Watched { thread, from, to: last, passes, long, gap, is_full }
    }
}

impl Watched {
    /// Returns the gaps in order.
    pub(super) fn gaps(&self) -> impl Iterator<Item = &Span> {
        self.long.iter().filter(|span| span.to - span.from >= self.gap)
    }

    /// Returns the number of passes.
    pub(super) fn count(&self) -> u64 {
        self.passes.iter().sum::<u64>() + self.long.len() as u64
    }

    /// Returns the median pass in ticks.
    pub(super) fn usual_pass(&self) -> u64 {
        let mut before = 0;
        let half = self.count() / 2;
        let median = self.passes.iter().position(|count| {
            before += count;
            before > half
        });
        median.unwrap_or(COUNTED) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_every_pass_once() {
        let clock = clock::use_best();
        let watched = Watch::new(clock.ticks(1e6), clock.ticks(500.0)).run(&Stop::default());
        let counted: u64 = watched.passes.iter().enumerate().map(|(ticks, count)| ticks as u64 * count).sum();
        let long: u64 = watched.long.iter().map(|span| span.to - span.from).sum();
        assert_eq!(counted + long, watched.to - watched.from);
        assert!(watched.count() > 0 && !watched.is_full);
    }

    #[test]
    fn stops_at_once_when_requested() {
        let stop = Stop::default();
        stop.request();
        assert_eq!(Watch::new(u64::MAX, u64::MAX).run(&stop).count(), 1);
    }
}
