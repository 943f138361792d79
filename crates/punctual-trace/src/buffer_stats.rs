//! Ring-buffer statistics of the kernel for each CPU: the text of the `stats` files of tracefs, as
//! a recording contains it.
//!
//! A [trace](crate::read::Trace::statistics) has one text for each CPU of each of its buffers, with
//! a first line that names the CPU.
//!
//! ```
//! use punctual_trace::buffer_stats;
//!
//! let statistics = "CPU: 2\nentries: 7\noverrun: 30\ncommit overrun: 0\ndropped events: 4\nread events: 511\n";
//! assert_eq!(buffer_stats::number(statistics, "read events"), Some(511));
//! assert_eq!(buffer_stats::lost(statistics), 34);
//! assert_eq!(buffer_stats::losses([statistics]).into_iter().collect::<Vec<_>>(), [(2, 34)]);
//! ```

use std::collections::BTreeMap;

/// Counters of events that are missing from the recording: overwritten before they were read,
/// discarded for lack of room around an interrupted write, and rejected by a full buffer.
const LOST: [&str; 3] = ["overrun", "commit overrun", "dropped events"];

/// Returns the number in the first line with that name, or `None` if there is no such line or no
/// number in it.
#[must_use]
pub fn number(statistics: &str, name: &str) -> Option<u64> {
    let line = statistics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().parse().ok()
}

/// Returns the number of lost events; a missing line counts as 0.
///
/// The sum saturates: the numbers of a file are not trusted.
#[must_use]
pub fn lost(statistics: &str) -> u64 {
    LOST.iter().filter_map(|name| number(statistics, name)).fold(0, u64::saturating_add)
}

/// Returns the number of events that each CPU lost in all buffers, without CPUs that lost none.
///
/// Statistics that name no CPU are ignored rather than attributed to CPU 0. Readers still detect
/// the gaps in that CPU's pages.
#[must_use]
pub fn losses<S: AsRef<str>>(statistics: impl IntoIterator<Item = S>) -> BTreeMap<u32, u64> {
    let mut losses = BTreeMap::new();
    for statistics in statistics {
        let statistics = statistics.as_ref();
        let cpu = number(statistics, "CPU").and_then(|cpu| u32::try_from(cpu).ok());
        if let (Some(cpu), lost @ 1..) = (cpu, lost(statistics)) {
            let sum = losses.entry(cpu).or_insert(0_u64);
            *sum = sum.saturating_add(lost);
        }
    }
    losses
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the kernel's format.
    const STATS: &str = "entries: 129\noverrun: 100\ncommit overrun: 20\nbytes: 5948\noldest event ts:  3035.301824\n\
                         now ts:  3035.301844\ndropped events: 3\nread events: 41\n";

    #[test]
    fn reads_number_of_named_line_only() {
        assert_eq!(number(STATS, "overrun"), Some(100));
        assert_eq!(number(STATS, "commit overrun"), Some(20));
        assert_eq!(number(STATS, "read events"), Some(41));
        assert_eq!(["events", "over", "now ts", "CPU"].map(|name| number(STATS, name)), [None; 4]);
        assert_eq!(number("overrun: -1\n", "overrun"), None);
    }

    #[test]
    fn sums_all_kinds_of_loss() {
        assert_eq!(lost(STATS), 123);
        assert_eq!(lost("dropped events: 3\n"), 3);
        assert_eq!([lost(""), lost("nonsense")], [0, 0]);
        assert_eq!(lost("overrun: 18446744073709551615\ndropped events: 1\n"), u64::MAX);
    }

    #[test]
    fn sums_losses_of_cpu_over_buffers() {
        let of = |cpu: u32| format!("CPU: {cpu}\n{STATS}");
        let without = "CPU: 1\noverrun: 0\n".to_owned();
        let losses = losses([of(0), without, of(5), of(0)]);
        assert_eq!(losses.into_iter().collect::<Vec<_>>(), [(0, 246), (5, 123)]);
        let most = "CPU: 0\noverrun: 18446744073709551615\n";
        assert_eq!(super::losses([most, most])[&0], u64::MAX);
    }

    #[test]
    fn ignores_statistics_without_cpu() {
        assert!(losses([STATS, "CPU: x\noverrun: 7\n", "CPU: 4294967296\noverrun: 7\n"]).is_empty());
    }
}
