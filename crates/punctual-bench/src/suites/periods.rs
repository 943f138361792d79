//! Does this machine hold a period? A periodic task without work is released for a while at usual
//! rates, on the idle and on the loaded machine. A release is missed if the task starts after the
//! next one.

use std::time::Duration;

use punctual_report::format::format_part;

use crate::load::Load;
use crate::model::Answer;
use crate::options::{Plan, SuiteName};
use crate::probe::{self, miss_rate_bound};
use crate::session::{Session, Step};
use crate::suites::Registration;

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("periods");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "Does this machine hold a period?",
    summary: "a verdict for 100 Hz, 1 kHz, 10 kHz and --period, idle and under load",
    is_usual: true,
    has_references: false,
    steps,
};

const USUAL: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_millis(1), Duration::from_micros(100)];

/// Names of the conditions.
const IDLE: &str = "idle";
const LOAD: &str = "load";

fn steps(plan: &Plan) -> Vec<Step> {
    let periods = USUAL.into_iter().chain(plan.period.filter(|period| !USUAL.contains(period)));
    let conditions = periods.flat_map(|period| [(period, IDLE), (period, LOAD)]);
    let step = |(period, condition)| {
        let name = format!("a period of {}, {condition}", format_part(nanos(period)));
        Step::new(name, move |session| hold(session, period, condition))
    };
    conditions.map(step).collect()
}

fn hold(session: &mut Session<'_>, period: Duration, condition: &str) {
    let mut answer = Answer { period_ns: nanos(period), condition: condition.into(), ..Answer::default() };
    match releases(session, period, condition) {
        Ok(probe) => {
            answer.releases = probe.lateness_ns.len() as u64;
            answer.misses = probe.misses(answer.period_ns);
            answer.worst_ns = probe.worst_ns();
            answer.miss_rate_bound = (answer.misses == 0).then(|| miss_rate_bound(answer.releases));
            answer.why = probe.refused;
        }
        Err(why) => answer.why.push(format!("not measured: {why}")),
    }
    session.suite.answers.push(answer);
}

fn releases(session: &Session<'_>, period: Duration, condition: &str) -> Result<probe::Probe, String> {
    let kind = session.plan.load;
    let load = (condition == LOAD).then(|| Load::start(kind)).transpose();
    let _load = load.map_err(|error| format!("the load {} did not start: {error}", kind.as_str()))?;
    // Half of the time of the other long measurement, for twice as many of them. A period that is
    // longer gets one release.
    let length = (session.plan.hourglass / 2).max(period);
    probe::releases(period, length, session.plan.cpu, session.stop)
}

fn nanos(period: Duration) -> u64 {
    u64::try_from(period.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn measures_each_period_idle_and_under_load() {
        let plan = |period| Plan::new(&Options { period, ..Options::default() }).unwrap();
        let names = |plan: &Plan| steps(plan).into_iter().map(|step| step.what).collect::<Vec<_>>();
        let usual = names(&plan(None));
        assert_eq!(usual[..2], ["a period of 10 ms, idle", "a period of 10 ms, load"]);
        assert_eq!(usual.len(), 6);
        assert_eq!(names(&plan(Some(Duration::from_millis(1)))), usual, "it is one of the usual");
        let more = names(&plan(Some(Duration::from_micros(250))));
        assert_eq!(more[6..], ["a period of 250 µs, idle", "a period of 250 µs, load"]);
    }
}
