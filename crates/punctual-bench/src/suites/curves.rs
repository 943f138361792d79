//! Latency against load, period and utilization: a job spawned for an instant and a thread that
//! sleeps until one, in turns, at several values of each. The page draws them as curves.

use punctual_report::format::format_nanos;

use super::latency::timers::{nanosleep, spawn_at};
use super::latency::{Contender, affordable, alternate};
use crate::load::Load;
use crate::model::{Quantity, Row};
use crate::options::{Plan, SuiteName};
use crate::rt::SetUpFailed;
use crate::session::{Session, Step, Unit};
use crate::subject::{Subject, X};
use crate::suites::Registration;

/// The period, if it is not the varied parameter.
const PERIOD_US: u64 = 1000;

/// The varied parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Curve {
    /// The period, in µs; the machine is idle.
    Period,
    /// The number of pairs of threads per CPU that wake each other through pipes.
    Load,
    /// The share of each period for which the job works, in %.
    Utilization,
}

impl Curve {
    const ALL: [Self; 3] = [Self::Load, Self::Period, Self::Utilization];

    fn values(self, quick: bool) -> &'static [u64] {
        match (self, quick) {
            (Self::Period, true) => &[250, 1000],
            (Self::Period, false) => &[100, 250, 500, 1000, 2500, 10_000],
            (Self::Load, true) => &[0, 2],
            (Self::Load, false) => &[0, 1, 2, 4, 8, 16],
            (Self::Utilization, true) => &[10, 80],
            (Self::Utilization, false) => &[0, 10, 25, 50, 75, 90],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Period => "period",
            Self::Load => "load",
            Self::Utilization => "utilization",
        }
    }

    /// Formats a value with its unit.
    fn text(self, value: u64) -> String {
        match self {
            Self::Period => format_nanos(value as f64 * 1e3),
            Self::Load => format!("{value} pairs of threads for each CPU"),
            Self::Utilization => format!("{value} %"),
        }
    }

    /// Returns the number of pairs of threads for each CPU that load the machine.
    fn pairs(self, value: u64) -> u64 {
        if self == Self::Load { value } else { 0 }
    }

    /// Returns the position of a value on the horizontal axis.
    fn x(self, value: u64) -> Quantity {
        let (unit, value) = match self {
            Self::Period => ("ns", value * 1000),
            Self::Load => ("", value),
            Self::Utilization => ("%", value),
        };
        Quantity { name: X.into(), value: value as f64, unit: unit.into() }
    }
}

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("curves");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "Latency against load, period and utilization",
    summary: "latency against load, period and utilization",
    is_usual: true,
    has_references: true,
    steps,
};

fn steps(plan: &Plan) -> Vec<Step> {
    let mut steps = Vec::new();
    for curve in Curve::ALL {
        for &value in curve.values(plan.quick) {
            let idle = if curve.pairs(value) == 0 { ", idle" } else { "" };
            let what = format!("latency against {}: {}{idle}", curve.name(), curve.text(value));
            steps.push(Step::new(what, move |session| point(session, curve, value)));
        }
    }
    steps
}

fn point(session: &mut Session<'_>, curve: Curve, value: u64) {
    let period_ns = 1000 * if curve == Curve::Period { value } else { PERIOD_US };
    let work_ns = if curve == Curve::Utilization { period_ns * value / 100 } else { 0 };
    let pairs = curve.pairs(value);
    let load = Load::pairs(pairs as usize);
    let _load =
        load.unwrap_or_else(|error| SetUpFailed(format!("the load did not start: {error}")).end_step());
    let row = |subject| {
        let row =
            Row::new(NAME, curve.name(), format!("Latency of an instant against {}", curve.name()), subject);
        // The slug of the condition is only the number.
        let id = format!("{}/{value}", row.id);
        Row { id, condition: Some(curve.text(value)), quantities: vec![curve.x(value)], ..row }
    };
    let cpu = session.plan.cpu;
    let samples = affordable(session.plan, period_ns).min(AT_MOST);
    let contenders = vec![
        Contender::new(row(Subject::Punctual), Unit::Nanos, spawn_at(period_ns, work_ns, cpu)),
        Contender::new(row(Subject::Posix), Unit::Nanos, nanosleep(period_ns, work_ns, cpu)),
    ];
    alternate(session, samples, contenders);
}

/// The maximum number of samples of a point, since there are many points.
const AT_MOST: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observes_every_point_without_load() {
        let plan = Plan::new(&crate::Options { quick: true, ..crate::Options::default() }).unwrap();
        let names: Vec<String> = steps(&plan).into_iter().map(|step| step.what).collect();
        let loaded: Vec<&String> = names.iter().filter(|name| !name.ends_with(", idle")).collect();
        assert_eq!(loaded, ["latency against load: 2 pairs of threads for each CPU"], "{names:?}");
    }

    #[test]
    fn work_ends_before_next_instant() {
        for quick in [true, false] {
            assert!(Curve::Utilization.values(quick).iter().all(|percent| *percent <= 90));
            for curve in Curve::ALL {
                assert!(curve.values(quick).is_sorted(), "points are joined from left to right");
            }
        }
        assert_eq!(Curve::Period.x(250).value, 250_000.0);
    }
}
