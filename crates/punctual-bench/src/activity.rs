//! Activity of other processes and of the host: a measurement on an idle machine is disturbed by
//! both.

use std::time::{Duration, Instant};

use punctual_isolate::facts::{Statistics, TICK};
use punctual_isolate::tree::Tree;
use punctual_report::format::format_nanos;

use crate::clock::process_time_ns;
use crate::machine::read;
use crate::model::{Activity, Window};
use crate::rt;

/// Length of the observation before and after a measurement.
const MARGIN: Duration = Duration::from_millis(50);
/// The CPU time of other processes that does not disturb a measurement, in percent of a CPU.
const MAX_OTHERS_PERCENT: f64 = 10.0;
/// The time taken by the host that does not disturb a measurement, in percent.
const MAX_STOLEN_PERCENT: f64 = 1.0;
/// Two readings of counters that advance by ticks may differ by this much from the truth.
const ROUNDING: Duration = Duration::from_millis(20);

/// The counters at an instant.
struct Counters {
    at: Instant,
    statistics: Statistics,
    own_ns: u64,
}

impl Counters {
    fn read() -> Self {
        let statistics = Statistics::read(&Tree::system());
        Self { at: Instant::now(), statistics, own_ns: process_time_ns() }
    }

    /// Returns the activity since `before`.
    fn since(&self, before: &Self) -> Activity {
        let ticks = |ticks: u64| ticks.saturating_mul(TICK.as_nanos() as u64);
        let (old, new) = (before.statistics.all, self.statistics.all);
        let stolen = old.stolen.zip(new.stolen).map(|(old, new)| ticks(new.saturating_sub(old)));
        let busy = ticks(new.busy.saturating_sub(old.busy)).saturating_sub(stolen.unwrap_or(0));
        let others = busy.saturating_sub(self.own_ns.saturating_sub(before.own_ns));
        let length = self.at.duration_since(before.at).as_nanos().max(1) as f64;
        // Without the counters, everything is 0.
        let is_counted = new.busy > 0;
        Activity {
            length_s: length / 1e9,
            runnable: runnable(&read("/proc/loadavg")),
            others_percent: is_counted.then(|| 100.0 * others as f64 / length),
            stolen_ns: stolen,
        }
    }
}

/// Returns the number of runnable threads except the caller, from `/proc/loadavg`.
fn runnable(loadavg: &str) -> Option<u32> {
    let runnable: u32 = loadavg.split_whitespace().nth(3)?.split('/').next()?.parse().ok()?;
    Some(runnable.saturating_sub(1))
}

/// A measurement on an idle machine that is being observed.
pub(crate) struct Observation {
    before: Activity,
    begun: Counters,
}

impl Observation {
    /// Observes the machine before the measurement.
    pub(crate) fn begin() -> Self {
        let before = observe();
        Self { before, begun: Counters::read() }
    }

    /// Ends the observation after the measurement.
    pub(crate) fn end(self, step: &str) -> Window {
        let during = Counters::read().since(&self.begun);
        let mut window =
            Window { step: step.into(), before: self.before, during, after: observe(), disturbed: None };
        window.disturbed = disturbance(&window);
        window
    }
}

fn observe() -> Activity {
    let begun = Counters::read();
    rt::sleep(MARGIN);
    Counters::read().since(&begun)
}

/// Returns the largest disturbances of a measurement that assumes an idle machine.
fn disturbance(window: &Window) -> Option<String> {
    let parts = [("before", &window.before), ("during", &window.during), ("after", &window.after)];
    let largest = |limit: f64, value: &dyn Fn(&Activity) -> f64| {
        let excess = |activity: &Activity| {
            let rounding = 100.0 * ROUNDING.as_secs_f64() / activity.length_s.max(1e-9);
            value(activity) - limit - rounding
        };
        let most = parts.into_iter().max_by(|a, b| excess(a.1).total_cmp(&excess(b.1)));
        most.filter(|(_, activity)| excess(activity) > 0.0)
    };
    let others = |activity: &Activity| activity.others_percent.unwrap_or(0.0);
    let stolen_ns = |activity: &Activity| activity.stolen_ns.unwrap_or(0) as f64;
    let stolen = |activity: &Activity| stolen_ns(activity) / 1e7 / activity.length_s.max(1e-9);
    let causes = [
        largest(MAX_OTHERS_PERCENT, &others).map(|(when, activity)| {
            format!("other processes used {:.0} % of a CPU {when} it", others(activity))
        }),
        largest(MAX_STOLEN_PERCENT, &stolen)
            .map(|(when, activity)| format!("the host took {} {when} it", format_nanos(stolen_ns(activity)))),
    ];
    let causes: Vec<String> = causes.into_iter().flatten().collect();
    (!causes.is_empty()).then(|| causes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(others_percent: f64, stolen_ns: u64) -> Window {
        let idle = Activity { length_s: 0.05, ..Activity::default() };
        let during = Activity {
            length_s: 2.0,
            runnable: Some(0),
            others_percent: Some(others_percent),
            stolen_ns: Some(stolen_ns),
        };
        Window { step: "x, idle".into(), before: idle.clone(), during, after: idle, disturbed: None }
    }

    #[test]
    fn marks_windows_with_other_processes_or_steal_time() {
        assert_eq!(disturbance(&window(3.0, 10_000_000)), None);
        assert_eq!(
            disturbance(&window(60.0, 0)).as_deref(),
            Some("other processes used 60 % of a CPU during it")
        );
        assert_eq!(disturbance(&window(0.0, 300_000_000)).as_deref(), Some("the host took 300 ms during it"));
    }

    #[test]
    fn own_threads_are_no_disturbance() {
        let begun = Counters::read();
        let until = Instant::now() + Duration::from_millis(60);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let own = process_time_ns() - begun.own_ns;
        let end = Counters::read();
        let ticks = end.statistics.all.busy.saturating_sub(begun.statistics.all.busy);
        let activity = end.since(&begun);
        // Whatever else runs here, the time of this process is not part of it.
        let all = ticks as f64 * TICK.as_nanos() as f64;
        let others = activity.others_percent.unwrap_or(0.0) / 100.0 * activity.length_s * 1e9;
        assert!(others <= (all - own as f64).max(0.0) + 1e6, "{activity:?}");
    }

    #[test]
    fn counts_runnable_threads_without_the_reader() {
        assert_eq!(runnable("0.20 0.18 0.12 3/80 11206"), Some(2));
        assert_eq!(runnable(""), None);
    }
}
