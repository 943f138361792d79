//! What the kernel counted of the ring buffer of each CPU: the text of a file `stats` of tracefs, as a recording has it.
//!
//! A [trace](crate::read::Trace::statistics) has one for each CPU of each of its buffers, with a line in front that says
//! which CPU.
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

/// The lines that count events which are not in the recording: overwritten before they were read, given up for want of
/// room around a write that they interrupted, and refused by a full buffer.
const LOST: [&str; 3] = ["overrun", "commit overrun", "dropped events"];

/// The number of the first line of that name; none if there is no such line, or something else in it.
#[must_use]
pub fn number(statistics: &str, name: &str) -> Option<u64> {
    let line = statistics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().parse().ok()
}

/// How many events were lost; a line that is not there counts as none.
///
/// The sum stops at the largest number: a file may say whatever it likes.
#[must_use]
pub fn lost(statistics: &str) -> u64 {
    LOST.iter().filter_map(|name| number(statistics, name)).fold(0, u64::saturating_add)
}

/// How many events each CPU lost in all buffers, without those that lost none.
///
/// Statistics that do not say whose they are count for no CPU: that some CPU lost events is no reason to warn of CPU 0.
/// The gaps that readers find in its pages still tell of it.
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

    /// As the kernel writes it.
    const STATS: &str = "entries: 129\noverrun: 100\ncommit overrun: 20\nbytes: 5948\noldest event ts:  3035.301824\n\
                         now ts:  3035.301844\ndropped events: 3\nread events: 41\n";

    #[test]
    fn reads_number_of_the_named_line_only() {
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
    fn sums_losses_of_a_cpu_over_all_buffers() {
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
