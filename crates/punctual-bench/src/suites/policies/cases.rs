//! The five cases: who runs by which policy where, and what has to come of it.

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

/// What an app does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Canny,
    Busy,
}

#[derive(Debug)]
pub(super) struct App {
    pub(super) kind: Kind,
    pub(super) policy: Policy,
    /// When it ended, as published, in seconds.
    published_s: f64,
}

impl App {
    pub(super) fn describe(&self) -> String {
        let kind = match self.kind {
            Kind::Canny => "Canny",
            Kind::Busy => "busy",
        };
        format!("{kind}, {}", self.policy.name())
    }

    /// What was published of it, as the app of this number in its case.
    pub(super) fn published(&self, number: usize) -> Vec<Published> {
        vec![Published {
            source:
                "Lin, Real-Time Thread Programming on Raspberry Pi with PREEMPT RT (Linux 6.6), section 3"
                    .into(),
            system: format!("app {number}, {}", self.describe()),
            mean_ns: self.published_s * 1e9,
            sigma_ns: None,
            min_ns: None,
            max_ns: None,
        }]
    }
}

#[derive(Debug)]
pub(super) struct Case {
    pub(super) number: u32,
    pub(super) title: &'static str,
    /// Whether all share one CPU.
    pub(super) pinned: bool,
    pub(super) apps: [App; 3],
}

const fn canny(policy: Policy, published_s: f64) -> App {
    App { kind: Kind::Canny, policy, published_s }
}

const fn busy(policy: Policy, published_s: f64) -> App {
    App { kind: Kind::Busy, policy, published_s }
}

use Policy::{Fifo, Ordinary, RoundRobin};

pub(super) static CASES: [Case; 5] = [
    Case {
        number: 1,
        title: "one FIFO and two ordinary threads on one CPU",
        pinned: true,
        // The end of app 3 is not in the log; the text has both at 12.5 s.
        apps: [canny(Fifo, 8.361), busy(Ordinary, 12.554), busy(Ordinary, 12.5)],
    },
    Case {
        number: 2,
        title: "one FIFO and two ordinary threads on any CPU",
        pinned: false,
        apps: [canny(Fifo, 8.275), busy(Ordinary, 8.271), busy(Ordinary, 8.267)],
    },
    Case {
        number: 3,
        title: "two FIFO threads and an ordinary one on one CPU",
        pinned: true,
        // Those of apps 1 and 2 are from the text.
        apps: [canny(Fifo, 10.8), busy(Fifo, 2.3), busy(Ordinary, 12.704)],
    },
    Case {
        number: 4,
        title: "two round-robin threads and an ordinary one on one CPU",
        pinned: true,
        apps: [canny(RoundRobin, 10.869), busy(RoundRobin, 10.865), busy(Ordinary, 12.629)],
    },
    Case {
        number: 5,
        title: "two FIFO threads and an ordinary one on any CPU",
        pinned: false,
        apps: [canny(Fifo, 8.262), busy(Fifo, 8.257), busy(Ordinary, 8.253)],
    },
];

/// When an app began and ended, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) begin: u64,
    pub(super) end: u64,
}

impl Times {
    pub(super) fn since(self, start: u64) -> Self {
        Self { begin: self.begin.saturating_sub(start), end: self.end.saturating_sub(start) }
    }
}

/// What has to come of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// App 1 ends before the others.
    OneFirst,
    /// All begin before one ends.
    Together,
    /// They end in the order in which they begin, and app 2 begins when app 1 has ended.
    OneByOne,
    /// Apps 1 and 2 take turns, app 3 ends last.
    TurnsThenThree,
    /// App 3 ends last.
    ThreeLast,
}

impl Case {
    /// What has to come of it on so many CPUs.
    pub(super) fn expected(&self, cpus: usize) -> Expected {
        match (self.number, cpus) {
            (1, _) => Expected::OneFirst,
            (3, _) => Expected::OneByOne,
            (4, _) => Expected::TurnsThenThree,
            (_, 3..) => Expected::Together,
            // Fewer CPUs than apps: as if pinned, with one more CPU for the real-time ones.
            (2, _) => Expected::OneFirst,
            _ => Expected::ThreeLast,
        }
    }
}

impl Expected {
    pub(super) fn holds(self, [one, two, three]: &[Times; 3]) -> bool {
        match self {
            Self::OneFirst => one.end < two.end.min(three.end),
            Self::Together => one.begin.max(two.begin).max(three.begin) < one.end.min(two.end).min(three.end),
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
            Self::Together => "all begin before one ends",
            Self::OneByOne => "app 2 begins when app 1 has ended, app 3 ends last",
            Self::TurnsThenThree => "apps 1 and 2 take turns, app 3 ends last",
            Self::ThreeLast => "app 3 ends last",
        })
    }
}

/// Beginnings and ends in their order: `1 begins, 1 ends, …`.
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
        all.map(|(begin, end)| Times { begin, end })
    }

    #[test]
    fn tells_finishing_orders_apart() {
        let one_by_one = times([(0, 10), (10, 20), (15, 30)]);
        let turns = times([(0, 18), (5, 20), (15, 30)]);
        let together = times([(0, 10), (1, 9), (2, 8)]);
        assert!(Expected::OneByOne.holds(&one_by_one) && !Expected::OneByOne.holds(&turns));
        assert!(Expected::TurnsThenThree.holds(&turns) && !Expected::TurnsThenThree.holds(&one_by_one));
        assert!(Expected::Together.holds(&together) && !Expected::Together.holds(&one_by_one));
        assert!(Expected::OneFirst.holds(&one_by_one) && !Expected::OneFirst.holds(&together));
        assert!(Expected::ThreeLast.holds(&turns) && !Expected::ThreeLast.holds(&together));
        assert_eq!(order(&turns), "1 begins, 2 begins, 3 begins, 1 ends, 2 ends, 3 ends");
    }

    #[test]
    fn expects_orders_that_suit_number_of_cpus() {
        let expected = |cpus| CASES.each_ref().map(|case| case.expected(cpus));
        use Expected::{OneByOne, OneFirst, ThreeLast, Together, TurnsThenThree};
        assert_eq!(expected(8), [OneFirst, Together, OneByOne, TurnsThenThree, Together]);
        assert_eq!(expected(2), [OneFirst, OneFirst, OneByOne, TurnsThenThree, ThreeLast]);
    }
}
