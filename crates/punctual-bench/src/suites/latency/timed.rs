//! Delays and pulses (tables 4 and 3 of Cunningham): the actual time for each requested one.
//!
//! A kernel timer generates the pulses; their period is measured by counting edges. The rows about
//! GPIO, if there is a line, include the latency of an external signal.

use punctual_report::format::format_nanos;

use super::timers::{Periodic, What, sleep, spawn_after, tasks, threads};
use super::{Condition, Contender, Measure, affordable, alternate, row};
use crate::model::{Published, Row};
use crate::published;
use crate::session::{Step, Unit};
use crate::subject::Subject;

const DELAYS_US: [u64; 9] = [10, 20, 50, 100, 200, 500, 1_000, 5_000, 10_000];
const PULSES_US: [u64; 5] = [20, 40, 160, 1_000, 2_000];

struct Kind {
    slug: &'static str,
    operation: &'static str,
    step: &'static str,
    published: fn(u64) -> Vec<Published>,
    unit: Unit,
    /// Returns the contenders, Punctual's first, for a time in nanoseconds and a CPU.
    measures: fn(u64, usize) -> [Box<Measure<'static>>; 2],
}

const DELAY: Kind = Kind {
    slug: "delay",
    operation: "Delayed by",
    step: "delay of",
    published: published::delay,
    unit: Unit::Ticks,
    measures: |ns, cpu| [Box::new(spawn_after(ns, cpu)), Box::new(sleep(ns, cpu))],
};

const PULSE: Kind = Kind {
    slug: "pulse",
    operation: "Pulses of",
    step: "pulses of",
    published: published::pulse,
    unit: Unit::Nanos,
    measures: |ns, cpu| {
        let periodic = Periodic { interval_ns: ns, what: What::Interval };
        [Box::new(tasks(periodic, cpu)), Box::new(threads(periodic, cpu))]
    },
};

pub(super) fn steps(condition: Condition) -> Vec<Step> {
    let delays = DELAYS_US.map(|us| step(&DELAY, us, condition));
    delays.into_iter().chain(PULSES_US.map(|us| step(&PULSE, us, condition))).collect()
}

fn step(kind: &'static Kind, us: u64, condition: Condition) -> Step {
    let (ns, name) = (us * 1000, condition.name());
    let time = format_nanos(ns as f64);
    Step::new(format!("{} {time}, {name}", kind.step), move |session| {
        let _load = condition.begin(session);
        let measures = (kind.measures)(ns, session.plan.cpu);
        let contenders = [Subject::Punctual, Subject::Posix].into_iter().zip(measures);
        let contenders = contenders.map(|(subject, measure)| {
            let row = Row {
                nominal_ns: Some(ns as f64),
                published: (kind.published)(us),
                ..row(&format!("{}-{us}", kind.slug), format!("{} {time}", kind.operation), subject)
                    .under(name)
            };
            Contender::new(row, kind.unit, measure)
        });
        alternate(session, affordable(session.plan, ns), contenders.collect());
    })
}
