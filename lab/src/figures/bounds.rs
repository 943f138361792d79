//! The bounds of figures.

use std::fmt;

use xtask_support::Result;

use super::{Figures, OURS, PEER, PEERS, STATISTICS, is_of};
use crate::trouble::Trouble;

/// The maximum deviation of a figure of a path from the recorded one: relative, and in
/// instructions.
const WITHIN: f64 = 0.03;
const SLACK: f64 = 1.0;

/// A step of QEMU's counter for 64-bit ARM, in instructions: 62.5 MHz.
const STEP_OF_ARM64: f64 = 8.0;

/// For another kernel of the same series: its part of a path may have changed, ours has not.
const OTHER_KERNEL: Bounds = Bounds { within: 0.2, slack: 16.0, upwards: false };

/// For figures of POSIX threads.
const OF_PEERS: Bounds = Bounds { within: 0.1, slack: 4.0, upwards: false };

/// A figure out of its bounds.
#[derive(Debug, PartialEq)]
pub(crate) struct Deviation {
    /// The row, or both rows of a difference.
    pub(crate) row: String,
    printed: String,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.row, self.printed)
    }
}

impl Figures {
    /// Requires that `found` is within the bounds around these figures.
    pub(crate) fn require(&self, found: &Self, whole: bool) -> Result {
        if series(&self.kernel) != series(&found.kernel) {
            return Err(format!(
                "the figures are of Linux {}, and this is {}; `cargo xtask lab figures --bless` writes new ones",
                self.kernel, found.kernel
            )
            .into());
        }
        if self.kernel != found.kernel {
            println!(
                "\n*** THE FIGURES ARE OF LINUX {}, AND THIS IS {}: COMPARED ONLY WITHIN {} %. `cargo xtask lab figures --bless` \
                 WRITES NEW ONES ***\n",
                self.kernel,
                found.kernel,
                OTHER_KERNEL.within * 100.0
            );
        }
        let deviations = self.deviations(found, whole);
        if deviations.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = deviations.iter().map(Deviation::to_string).collect();
        Err(Trouble::Failed(format!(
            "the lengths of paths have changed, in instructions; if that is intended, run `cargo xtask lab figures --bless`\n{}",
            lines.join("\n")
        ))
        .into())
    }

    /// Returns the figures in `found` that are out of the bounds around these. Missing rows count
    /// if `found` should be `whole`.
    pub(crate) fn deviations(&self, found: &Self, whole: bool) -> Vec<Deviation> {
        let mut deviations = Vec::new();
        let exact = self.kernel == found.kernel;
        let step = if self.kernel.ends_with("arm64") { STEP_OF_ARM64 } else { 0.0 };
        let mut add =
            |row: &str, printed: String| deviations.push(Deviation { row: row.to_owned(), printed });
        for (id, expected) in &self.rows {
            let Some(now) = found.of(id) else {
                if whole {
                    add(id, ": no longer measured".to_owned());
                }
                continue;
            };
            let (kind, is_peer) = (Kind::of(id), is_of(id, &PEERS));
            for (at, (name, _)) in STATISTICS.into_iter().enumerate() {
                let mut bounds = match (exact, is_peer) {
                    (true, false) => Bounds::of(kind, effective(id, name)),
                    // Our code does not make it longer; a different length is still reported.
                    (true, true) if ["median", "mean"].contains(&name) => OF_PEERS,
                    (false, _) if name == "median" => OTHER_KERNEL,
                    _ => continue,
                };
                bounds.slack += step;
                let (expected, now) = (expected[at], now[at]);
                if !bounds.hold(expected, now) {
                    let percent = (now / expected - 1.0) * 100.0;
                    add(id, format!(", {name}: {expected}, now {now}, {percent:+.1} %"));
                }
            }
            // The difference excludes the common part, the kernel's part of the path.
            let peer = peer_of(id);
            if exact && let Some((peer_expected, peer_now)) = self.of(&peer).zip(found.of(&peer)) {
                for (at, (name, _)) in STATISTICS.into_iter().enumerate() {
                    // With hackbench the distribution has two modes: interrupted and uninterrupted
                    // samples. The median depends on their proportion.
                    if name != "mean" && (name != "median" || kind == Kind::Loaded) {
                        continue;
                    }
                    let (before, after) = (expected[at] - peer_expected[at], now[at] - peer_now[at]);
                    let mut bounds = Bounds::within(WITHIN);
                    bounds.slack += peer_expected[at] * kind.noise(&peer) + step;
                    if !bounds.hold(before, after) {
                        add(id, format!(" - {PEER}, {name}: {before}, now {after}"));
                    }
                }
            }
        }
        let added = found.rows.iter().filter(|(id, _)| self.of(id).is_none());
        deviations.extend(
            added.map(|(id, _)| Deviation { row: id.clone(), printed: ": it is not in the file".to_owned() }),
        );
        deviations
    }
}

/// Returns the first two numbers of a kernel release.
fn series(release: &str) -> (Option<&str>, Option<&str>) {
    let mut numbers = release.split('.');
    (numbers.next(), numbers.next())
}

/// Returns the statistic whose bounds hold for `statistic` of the row `id`.
///
/// An inversion has so few samples that their 99th percentile is the maximum.
fn effective<'a>(id: &str, statistic: &'a str) -> &'a str {
    if statistic == "p99" && is_of(id, &["inversion"]) { "max" } else { statistic }
}

/// Returns the corresponding row of the peer; a peer's row has none.
fn peer_of(id: &str) -> String {
    let part = |part| if OURS.contains(&part) { PEER } else { part };
    let peer = id.split('/').map(part).collect::<Vec<_>>().join("/");
    if peer == id { String::new() } else { peer }
}

/// The kind of a row, which determines its variation between builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A path that only a tick of the guest's clock interrupts.
    Path,
    /// A wait for an event: its phase relative to the guest's clock differs between builds.
    Event,
    /// The same with hackbench: the interrupted points differ between builds.
    Loaded,
}

impl Kind {
    fn of(id: &str) -> Self {
        let waits = ["eventfd", "timerfd", "instant", "inversion", "period"];
        match id.ends_with("/load") {
            true => Self::Loaded,
            false if is_of(id, &waits) => Self::Event,
            false => Self::Path,
        }
    }

    /// Returns the relative variation of a row of the peer between builds.
    fn noise(self, peer: &str) -> f64 {
        match self {
            // The kernel determines how many new pages a thread's stack gets.
            _ if is_of(peer, &["create-lower", "create-higher"]) => 0.1,
            // It has few samples, and the first of each window is longer.
            _ if is_of(peer, &["inversion"]) => 0.05,
            Self::Path | Self::Event => 0.01,
            // Both means have varied, in opposite directions, by 3.6 % together.
            Self::Loaded => 0.05,
        }
    }
}

/// The maximum deviation of a statistic from the recorded one.
///
/// In five builds, four of them with a different function order and one with another feature, in
/// guests with different memory sizes, the median of our rows varied by at most 1.0 %, with
/// hackbench by 7.1 %; the mean by 1.0 and 1.3 %; the 99th percentile of paths by 0.9 %, of waits
/// for events by 26.6 %, with hackbench by 2.5 %; the minimum by 0.4, 14.3 and 13.3 %. A single
/// tick in a row determines its maximum.
///
/// Paths without system calls are counted exactly: in five builds with changes elsewhere their
/// median varied by at most one instruction. So two or three more are detected in a path of 20 to
/// 50 instructions.
struct Bounds {
    within: f64,
    slack: f64,
    /// `true` if lower values are acceptable.
    upwards: bool,
}

impl Bounds {
    const fn within(within: f64) -> Self {
        Self { within, slack: SLACK, upwards: false }
    }

    fn of(kind: Kind, statistic: &str) -> Self {
        match (kind, statistic) {
            // Twice as much, plus several ticks, whose handlers take 3 000 to 9 000.
            (_, "max") => Self { within: 1.0, slack: 20_000.0, upwards: true },
            (Kind::Loaded, "median") => Self::within(0.1),
            (Kind::Event | Kind::Loaded, "min") => Self::within(0.18),
            (Kind::Event | Kind::Loaded, "p99") => Self::within(0.35),
            _ => Self::within(WITHIN),
        }
    }

    fn hold(&self, expected: f64, now: f64) -> bool {
        let more = now - expected;
        let allowed = expected.abs() * self.within + self.slack;
        more <= allowed && (self.upwards || -more <= allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(rows: &[(&str, [f64; 5])]) -> Figures {
        Figures {
            kernel: "6.12.117-rt".to_owned(),
            rows: rows.iter().map(|&(id, spread)| (id.to_owned(), spread)).collect(),
        }
    }

    fn printed(before: &[(&str, [f64; 5])], now: &[(&str, [f64; 5])]) -> Vec<String> {
        let deviations = figures(before).deviations(&figures(now), true);
        deviations.iter().map(Deviation::to_string).collect()
    }

    const LOCK: &str = "rtos/lock/punctual";

    #[test]
    fn lets_three_hundredths_and_an_instruction_pass() {
        let before = [(LOCK, [1000.0; 5])];
        assert!(printed(&before, &[(LOCK, [1031.0; 5])]).is_empty());
        assert!(printed(&before, &[(LOCK, [969.0; 5])]).is_empty());
        let short = |now| printed(&[(LOCK, [25.0; 5])], &[(LOCK, [now; 5])]).len();
        assert_eq!((short(26.0), short(24.0), short(27.0), short(23.0)), (0, 0, 4, 4));
        let longer = printed(&before, &[(LOCK, [1000.0, 1000.0, 1000.0, 1035.0, 1035.0])]);
        assert_eq!(longer, ["rtos/lock/punctual, mean: 1000, now 1035, +3.5 %"]);
        assert_eq!(printed(&before, &[(LOCK, [965.0; 5])]).len(), 4, "a shorter path is another path");
    }

    #[test]
    fn accepts_counter_step() {
        let of =
            |kernel: &str, all: f64| Figures { kernel: kernel.to_owned(), ..figures(&[(LOCK, [all; 5])]) };
        let deviations = |kernel, now| of(kernel, 40.0).deviations(&of(kernel, now), true).len();
        assert_eq!((deviations("6.12.117-rt-arm64", 48.0), deviations("6.12.117-rt-amd64", 48.0)), (0, 4));
        assert_eq!(deviations("6.12.117-rt-arm64", 56.0), 4);
    }

    #[test]
    fn detects_maximum_beyond_a_tick() {
        let with_maximum = |max| [(LOCK, [1000.0, 1000.0, 1000.0, 1000.0, max])];
        assert!(printed(&with_maximum(1000.0), &with_maximum(21_999.0)).is_empty());
        assert_eq!(printed(&with_maximum(1000.0), &with_maximum(22_001.0)).len(), 1);
        assert!(printed(&with_maximum(22_000.0), &with_maximum(1000.0)).is_empty());
    }

    #[test]
    fn treats_p99_of_few_samples_as_maximum() {
        let with_p99 = |row, p99| [(row, [1000.0, 1000.0, p99, 1000.0, p99])];
        let few = "latency/inversion/punctual/load";
        assert!(printed(&with_p99(few, 1000.0), &with_p99(few, 21_999.0)).is_empty());
        assert_eq!(printed(&with_p99(LOCK, 1000.0), &with_p99(LOCK, 1035.0)).len(), 1);
    }

    #[test]
    fn lets_clock_of_guest_determine_p99_of_periods() {
        let (period, path) = ("latency/period/monitored/idle", LOCK);
        let grown = |row, mean, p99| {
            printed(&[(row, [1000.0; 5])], &[(row, [1000.0, 1000.0, p99, mean, 1000.0])]).len()
        };
        assert_eq!((grown(period, 1000.0, 1220.0), grown(path, 1000.0, 1220.0)), (0, 1));
        assert_eq!((grown(period, 1000.0, 1360.0), grown(period, 1040.0, 1000.0)), (1, 1));
    }

    #[test]
    fn detects_regression_of_own_rows() {
        let (ours, peer) = ("latency/instant/punctual/idle", "latency/instant/posix/idle");
        let rows = |ours_now, peer_now| [(ours, [ours_now; 5]), (peer, [peer_now; 5])];
        // Both by 2.5 %, as if the kernel's part has grown.
        assert!(printed(&rows(4000.0, 3900.0), &rows(4100.0, 3997.0)).is_empty());
        let grown = printed(&rows(4000.0, 3900.0), &rows(4100.0, 3900.0));
        assert!(grown.contains(&format!("{ours} - posix, median: 100, now 200")), "{grown:?}");
        // For a peer the tolerance is larger, but limited.
        assert_eq!(printed(&rows(4000.0, 3900.0), &rows(4000.0, 4600.0)).len(), 4);
    }

    #[test]
    fn misses_no_row() {
        let one = [(LOCK, [10.0; 5])];
        assert_eq!(printed(&one, &[]), ["rtos/lock/punctual: no longer measured"]);
        assert_eq!(printed(&[], &one), ["rtos/lock/punctual: it is not in the file"]);
        assert!(figures(&one).deviations(&figures(&[]), false).is_empty());
    }

    #[test]
    fn compares_only_kernels_of_same_series_within_wide_bounds() {
        let before = figures(&[(LOCK, [1000.0; 5])]);
        let on = |kernel: &str, all| Figures { kernel: kernel.to_owned(), ..figures(&[(LOCK, [all; 5])]) };
        before.require(&on("6.12.130-rt", 1200.0), true).unwrap();
        assert!(before.require(&on("6.12.117-rt", 1200.0), true).is_err());
        assert!(before.require(&on("6.12.130-rt", 1300.0), true).is_err());
        let error = before.require(&on("7.0.1-rt", 1000.0), true).unwrap_err().to_string();
        assert!(error.contains("of Linux 6.12.117-rt, and this is 7.0.1-rt"), "{error}");
    }
}
