//! Delayed execution (table 4 of Cunningham): the actual delay for each requested one.

use punctual_report::format::format_nanos;

use super::timers::{sleep, spawn_after};
use super::{Condition, Contender, affordable, alternate, row};
use crate::model::Row;
use crate::options::Plan;
use crate::published;
use crate::session::{Step, Unit};
use crate::subject::Subject;

const DELAYS_US: [u64; 9] = [10, 20, 50, 100, 200, 500, 1_000, 5_000, 10_000];

pub(super) fn steps(_: &Plan, condition: Condition) -> Vec<Step> {
    let step = |us: u64| {
        let ns = us * 1000;
        Step::new(format!("delay of {}, {}", format_nanos(ns as f64), condition.name()), move |session| {
            let _load = condition.begin(session);
            let row = |subject| Row {
                nominal_ns: Some(ns as f64),
                published: published::delay(us),
                ..row(&format!("delay-{us}"), format!("Delayed by {}", format_nanos(ns as f64)), subject)
                    .under(condition.name())
            };
            let (cpu, stop) = (session.plan.cpu, session.stop);
            let contenders = vec![
                Contender::new(row(Subject::Punctual), Unit::Ticks, spawn_after(ns, cpu, stop)),
                Contender::new(row(Subject::Posix), Unit::Ticks, sleep(ns, cpu, stop)),
            ];
            alternate(session, affordable(session.plan, ns), contenders);
        })
    };
    DELAYS_US.into_iter().map(step).collect()
}
