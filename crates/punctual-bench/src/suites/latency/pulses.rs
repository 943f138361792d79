//! Pulses (table 3 of Cunningham): the period of a signal as measured by counting its edges.
//!
//! A kernel timer generates the signal. The rows about GPIO, if there is a line, include the
//! latency of an external signal.

use punctual_report::format::format_nanos;

use super::timers::{Periodic, What, tasks, threads};
use super::{Condition, Contender, affordable, alternate, row};
use crate::model::Row;
use crate::options::Plan;
use crate::published;
use crate::session::{Step, Unit};
use crate::subject::Subject;

const PERIODS_US: [u64; 5] = [20, 40, 160, 1_000, 2_000];

pub(super) fn steps(_: &Plan, condition: Condition) -> Vec<Step> {
    let step = |us: u64| {
        let ns = us * 1000;
        Step::new(format!("pulses of {}, {}", format_nanos(ns as f64), condition.name()), move |session| {
            let _load = condition.begin(session);
            let row = |subject| Row {
                nominal_ns: Some(ns as f64),
                published: published::pulse(us),
                ..row(&format!("pulse-{us}"), format!("Pulses of {}", format_nanos(ns as f64)), subject)
                    .under(condition.name())
            };
            let periodic = Periodic { interval_ns: ns, what: What::Interval };
            let (cpu, stop) = (session.plan.cpu, session.stop);
            let contenders = vec![
                Contender::new(row(Subject::Punctual), Unit::Nanos, tasks(periodic, cpu, stop)),
                Contender::new(row(Subject::Posix), Unit::Nanos, threads(periodic, cpu, stop)),
            ];
            alternate(session, affordable(session.plan, ns), contenders);
        })
    };
    PERIODS_US.into_iter().map(step).collect()
}
