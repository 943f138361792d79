//! The five cases: policies, affinities and expected results.

use std::fmt;

use crate::model::Published;

/// The real-time priority of all cases.
pub(super) const PRIORITY: i32 = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Fifo,
    RoundRobin,
    Ordinary,
}

impl Policy {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fifo => "SCHED_FIFO",
            Self::RoundRobin => "SCHED_RR",
            Self::Ordinary => "SCHED_OTHER",
        }
    }
}

/// The workload of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Canny,
    Busy,
}

#[derive(Debug)]
pub(super) struct App {
    pub(super) kind: Kind,
    pub(super) policy: Policy,
    /// The published end, in seconds.
    ended_s: f64,
    /// The published duration of the work, if any.
    worked_s: Option<f64>,
}

impl App {
    pub(super) fn describe(&self) -> String {
        let kind = match self.kind {
            Kind::Canny => "Canny",
            Kind::Busy => "busy",
        };
        format!("{kind}, {}", self.policy.name())
    }

    /// Returns the published figures, for the app with this number in its case.
    pub(super) fn published(&self, number: usize) -> Vec<Published> {
        let line = |what: &str, seconds: f64| Published {
            source:
                "Lin, Real-Time Thread Programming on Raspberry Pi with PREEMPT RT (Linux 6.6), section 3"
                    .into(),
            system: format!("app {number}, {}{what}", self.describe()),
            mean_ns: seconds * 1e9,
            sigma_ns: None,
            min_ns: None,
            max_ns: None,
        };
        let worked = self.worked_s.map(|seconds| line(", its workload", seconds));
        [line("", self.ended_s)].into_iter().chain(worked).collect()
    }
}

#[derive(Debug)]
pub(super) struct Case {
    pub(super) number: u32,
    pub(super) title: &'static str,
    /// `true` if all share one CPU.
    pub(super) pinned: bool,
    pub(super) apps: [App; 3],
}

const fn canny(policy: Policy, ended_s: f64, worked_s: Option<f64>) -> App {
    App { kind: Kind::Canny, policy, ended_s, worked_s }
}

const fn busy(policy: Policy, ended_s: f64, worked_s: Option<f64>) -> App {
    App { kind: Kind::Busy, policy, ended_s, worked_s }
}

use Policy::{Fifo, Ordinary, RoundRobin};

pub(super) static CASES: [Case; 5] = [
    Case {
        number: 1,
        title: "one FIFO and two ordinary threads on one CPU",
        pinned: true,
        // The end of app 3 is not in the log; the text has both at 12.5 s.
        apps: [
            canny(Fifo, 8.361, Some(8.353)),
            busy(Ordinary, 12.554, Some(12.48)),
            busy(Ordinary, 12.5, Some(12.48)),
        ],
    },
    Case {
        number: 2,
        title: "one FIFO and two ordinary threads on any CPU",
        pinned: false,
        apps: [canny(Fifo, 8.275, Some(8.266)), busy(Ordinary, 8.271, None), busy(Ordinary, 8.267, None)],
    },
    Case {
        number: 3,
        title: "two FIFO threads and an ordinary one on one CPU",
        pinned: true,
        // The values of apps 1 and 2 are from the text.
        apps: [canny(Fifo, 10.8, None), busy(Fifo, 2.3, None), busy(Ordinary, 12.704, Some(10.807))],
    },
    Case {
        number: 4,
        title: "two round-robin threads and an ordinary one on one CPU",
        pinned: true,
        apps: [
            canny(RoundRobin, 10.869, Some(10.856)),
            busy(RoundRobin, 10.865, Some(2.965)),
            busy(Ordinary, 12.629, Some(11.587)),
        ],
    },
    Case {
        number: 5,
        title: "two FIFO threads and an ordinary one on any CPU",
        pinned: false,
        apps: [
            canny(Fifo, 8.262, Some(8.252)),
            busy(Fifo, 8.257, Some(2.312)),
            busy(Ordinary, 8.253, Some(2.426)),
        ],
    },
];

/// The start and the end of an app, in ticks, and the CPU time of its work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) cpu_ns: u64,
}

impl Times {
    pub(super) fn since(self, start: u64) -> Self {
        Self { begin: self.begin.saturating_sub(start), end: self.end.saturating_sub(start), ..self }
    }
}

/// The expected result of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// App 1 ends before the others.
    OneFirst,
    /// All start before one ends, and they end at about the same time.
    Together,
    /// App 1 has a CPU, and the others share the other one until it has ended. So the last ends
    /// later than app 1 by half of the work or by all of it, depending on whether the others take
    /// turns or run one after the other. The order of the others is irrelevant, since their work is
    /// equal.
    TwoShareOne,
    /// They end in the order in which they start, and app 2 starts after app 1 has ended.
    OneByOne,
    /// Apps 1 and 2 take turns, app 3 ends last.
    TurnsThenThree,
    /// App 3 ends last.
    ThreeLast,
}

impl Case {
    /// Returns the expected result with this many CPUs.
    pub(super) fn expected(&self, cpus: usize) -> Expected {
        match (self.number, cpus) {
            (1, _) => Expected::OneFirst,
            (3, _) => Expected::OneByOne,
            (4, _) => Expected::TurnsThenThree,
            (_, 3..) => Expected::Together,
            // Fewer CPUs than apps: as if pinned, with one more CPU for the real-time apps.
            (2, 2) => Expected::TwoShareOne,
            (2, _) => Expected::OneFirst,
            _ => Expected::ThreeLast,
        }
    }
}

/// The maximum end of the last app relative to the first if each has a CPU.
const TOGETHER: f64 = 1.5;
/// The end of the last app relative to app 1 if the others share a CPU: 1.5 to 2 on an otherwise
/// idle machine.
const SHARING: std::ops::RangeInclusive<f64> = 1.2..=2.5;

/// The minimum share of the CPUs that the apps must have received for their times to be meaningful.
const QUIET: f64 = 0.6;

impl Expected {
    /// Returns `true` if times decide rather than an order: other activity then spoils a run, and
    /// only half of the runs must hold.
    pub(super) fn is_of_times(self) -> bool {
        matches!(self, Self::Together | Self::TwoShareOne)
    }

    /// Returns `true` if other programs used so much of the CPUs that the times are meaningless:
    /// without them, the apps would have used at least three quarters of all CPUs' time.
    pub(super) fn is_disturbed(self, times: &[Times; 3], cpus: usize, clock_ns: impl Fn(u64) -> f64) -> bool {
        let worked: f64 = times.iter().map(|times| times.cpu_ns as f64).sum();
        let last = times.iter().map(|times| clock_ns(times.end)).fold(0.0, f64::max);
        self.is_of_times() && worked < QUIET * last * cpus.min(times.len()) as f64
    }

    pub(super) fn holds(self, [one, two, three]: &[Times; 3]) -> bool {
        let ends = [one.end, two.end, three.end].map(|end| end as f64);
        let (first, last) =
            (ends.into_iter().fold(f64::INFINITY, f64::min), ends.into_iter().fold(0.0, f64::max));
        match self {
            Self::OneFirst => one.end < two.end.min(three.end),
            Self::Together => {
                let begun = one.begin.max(two.begin).max(three.begin);
                (begun as f64) < first && last <= TOGETHER * first
            }
            Self::TwoShareOne => SHARING.contains(&(last / ends[0])),
            Self::OneByOne => one.end <= two.begin && two.end < three.end,
            Self::TurnsThenThree => {
                two.begin < one.end && one.begin < two.end && one.end.max(two.end) < three.end
            }
            Self::ThreeLast => one.end.max(two.end) < three.end,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneFirst => "app 1 ends first",
            Self::Together => {
                "all begin before one ends, the last after at most 1.5 times as long as the first"
            }
            Self::TwoShareOne => "the last ends after 1.2 to 2.5 times as long as app 1",
            Self::OneByOne => "app 2 begins when app 1 has ended, app 3 ends last",
            Self::TurnsThenThree => "apps 1 and 2 take turns, app 3 ends last",
            Self::ThreeLast => "app 3 ends last",
        })
    }
}

/// Returns starts and ends in order: `1 begins, 1 ends, …`.
pub(super) fn order(times: &[Times; 3]) -> String {
    let mut events: Vec<(u64, String)> = Vec::new();
    for (index, times) in times.iter().enumerate() {
        events.push((times.begin, format!("{} begins", index + 1)));
        events.push((times.end, format!("{} ends", index + 1)));
    }
    events.sort();
    let names: Vec<String> = events.into_iter().map(|(_, name)| name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(all: [(u64, u64); 3]) -> [Times; 3] {
        all.map(|(begin, end)| Times { begin, end, cpu_ns: 0 })
    }

    #[test]
    fn distinguishes_finishing_orders() {
        let one_by_one = times([(0, 10), (10, 20), (15, 30)]);
        let turns = times([(0, 18), (5, 20), (15, 30)]);
        let together = times([(0, 10), (1, 9), (2, 8)]);
        assert!(Expected::OneByOne.holds(&one_by_one) && !Expected::OneByOne.holds(&turns));
        assert!(Expected::TurnsThenThree.holds(&turns) && !Expected::TurnsThenThree.holds(&one_by_one));
        assert!(Expected::Together.holds(&together) && !Expected::Together.holds(&one_by_one));
        assert!(Expected::OneFirst.holds(&one_by_one) && !Expected::OneFirst.holds(&together));
        // Two CPUs, mostly used by others.
        let busy = [(0, 100), (1, 2000), (1, 2100)].map(|(begin, end)| Times { begin, end, cpu_ns: 100 });
        assert!(Expected::TwoShareOne.is_disturbed(&busy, 2, |ticks| ticks as f64));
        let quiet = [(0, 100), (1, 149), (1, 150)].map(|(begin, end)| Times { begin, end, cpu_ns: 100 });
        assert!(!Expected::TwoShareOne.is_disturbed(&quiet, 2, |ticks| ticks as f64));
        assert!(
            !Expected::OneFirst.is_disturbed(&busy, 2, |ticks| ticks as f64),
            "it does not rest on times"
        );
        // One after the other on three CPUs is not together, although all have started.
        assert!(!Expected::Together.holds(&times([(0, 10), (1, 20), (2, 30)])));
        // Two CPUs: the others take turns, in either order, or run one after the other.
        for others in [[(1, 149), (1, 150)], [(1, 150), (1, 149)], [(1, 99), (1, 199)]] {
            assert!(Expected::TwoShareOne.holds(&times([(0, 100), others[0], others[1]])), "{others:?}");
        }
        for wrong in [[(1, 100), (1, 101)], [(1, 150), (1, 300)]] {
            assert!(!Expected::TwoShareOne.holds(&times([(0, 100), wrong[0], wrong[1]])), "{wrong:?}");
        }
        assert!(Expected::ThreeLast.holds(&turns) && !Expected::ThreeLast.holds(&together));
        assert_eq!(order(&turns), "1 begins, 2 begins, 3 begins, 1 ends, 2 ends, 3 ends");
    }

    #[test]
    fn expects_orders_for_number_of_cpus() {
        let expected = |cpus| CASES.each_ref().map(|case| case.expected(cpus));
        use Expected::{OneByOne, OneFirst, ThreeLast, Together, TurnsThenThree, TwoShareOne};
        assert_eq!(expected(8), [OneFirst, Together, OneByOne, TurnsThenThree, Together]);
        assert_eq!(expected(2), [OneFirst, TwoShareOne, OneByOne, TurnsThenThree, ThreeLast]);
        assert_eq!(expected(1), [OneFirst, OneFirst, OneByOne, TurnsThenThree, ThreeLast]);
    }
}
