//! Latencies of a known number of events, in preallocated memory.

use punctual::Duration;

use crate::Result;

/// The latencies of a fixed number of events.
pub struct Latencies {
    ns: Vec<u64>,
    wanted: usize,
}

impl Latencies {
    /// Allocates memory for `count` latencies.
    ///
    /// # Errors
    ///
    /// If it is 0, or more than a million.
    pub fn of(count: u32) -> Result<Self> {
        match usize::try_from(count)? {
            wanted @ 1..=1_000_000 => Ok(Self { ns: Vec::with_capacity(wanted), wanted }),
            _ => Err("COUNT is at least 1 and at most a million".into()),
        }
    }

    /// Adds a latency; does nothing if all are complete. Neither allocates nor blocks.
    pub fn add(&mut self, latency: Duration) {
        if self.ns.len() < self.wanted {
            self.ns.push(latency.as_ticks());
        }
    }

    /// Returns a one-line summary once all latencies are complete.
    pub fn all(&mut self) -> Option<String> {
        if self.ns.len() < self.wanted {
            return None;
        }
        self.ns.sort_unstable();
        let (first, median, last) =
            (self.ns[0], self.ns[(self.ns.len() - 1) / 2], self.ns[self.ns.len() - 1]);
        Some(format!("latency: {first} to {last} ns, median {median} ns"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_summary_after_last_latency() {
        let mut latencies = Latencies::of(4).unwrap();
        for ns in [30, 10, 40] {
            latencies.add(Duration::from_nanos(ns));
            assert_eq!(latencies.all(), None);
        }
        latencies.add(Duration::from_nanos(20));
        latencies.add(Duration::from_nanos(5));
        assert_eq!(latencies.all().unwrap(), "latency: 10 to 40 ns, median 20 ns");
        assert!(Latencies::of(0).is_err() && Latencies::of(1_000_001).is_err());
    }
}
