//! Margins: the distance of a schedulable system from one that is not, by bisection with the test
//! that also gives the verdict.
//!
//! *Bini, Di Natale, Buttazzo, "Sensitivity Analysis for Fixed-Priority Real-Time Systems",
//! Real-Time Systems 39, 2008* explains the use of these margins and derives them in closed form,
//! for a model without blocking and jitter.
//!
//! Every margin is attained: with the returned value, all deadlines are met, and with a value
//! larger by the resolution, a thousandth of its size, one is missed. The tests used here are
//! monotonic, so a larger value is never better.

use std::borrow::Cow;
use std::ops::Range;

use crate::analyze::{Probe, analyze};
use crate::arrival::Stream;
use crate::bound::Outcome;
use crate::system::{System, Task};
use crate::time::{MAX_TIME, Nanos, Ratio};
use crate::work;

/// Largest factor to try.
const MAX_FACTOR: u64 = 1_000;

/// Margins of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Margins {
    /// Margin of all execution times together, including all holds.
    pub all: AllExecutions,
    /// Margins of each task; empty if the system is not schedulable.
    pub tasks: Vec<TaskMargins>,
}

/// Common growth of all execution times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllExecutions {
    /// Largest factor with which all deadlines are met, in thousandths; 0 if they are missed in any
    /// case.
    pub permille: u64,
    /// First task to miss beyond the factor; `None` if the factor is the largest one tried.
    pub first: Option<usize>,
}

/// Range of one value while the others stay constant, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// Current value.
    pub now: Nanos,
    /// Limit value.
    pub until: Nanos,
    /// Resolution: one step beyond the limit, a deadline is missed.
    pub step: Nanos,
    /// First task to miss beyond the limit; `None` if every tried value is possible.
    pub first: Option<usize>,
}

/// Margins of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskMargins {
    /// Margin of C.
    pub execution: Limit,
    /// Margin of the least time between releases, if the task has its own; the limit is smaller
    /// than the current value.
    pub period: Option<Limit>,
    /// Margin of J.
    pub jitter: Limit,
    /// Margin of the hold of each section; C and the sections that enclose it grow with it. A
    /// resource that is never locked stays at 0.
    pub holds: Vec<Limit>,
}

impl AllExecutions {
    /// Returns the possible growth in percent; negative if execution times have to shrink.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.permille as f64 / 10.0 - 100.0
    }
}

/// Computes the common margin of all execution times.
#[must_use]
pub fn all_executions(system: &System) -> AllExecutions {
    let mut probe = Probe::new(Cow::Borrowed(system));
    let (tasks, as_it_is) = (0..system.tasks.len(), 1_000);
    let mut now = None;
    let mut meets = |permille: u64, at: usize| {
        if now != Some(permille) {
            now = Some(permille);
            probe.change_all(|scratch| {
                scratch.clone_from(system);
                scratch.scale(Ratio { numerator: permille, denominator: as_it_is });
            });
        }
        probe.meets(at)
    };
    let (low, high) = if tasks.clone().all(|at| meets(as_it_is, at)) {
        (as_it_is, MAX_FACTOR * as_it_is)
    } else {
        (0, as_it_is)
    };
    if let Some(first) = tasks.clone().find(|&at| !meets(low, at)) {
        return AllExecutions { permille: 0, first: Some(first) };
    }
    let (permille, first) = largest(low..high, |_| 1, as_it_is / 8, tasks, meets);
    AllExecutions { permille, first }
}

/// Computes all margins.
#[must_use]
pub fn margins(system: &System) -> Margins {
    let all = all_executions(system);
    let is_schedulable = all.permille >= 1_000;
    let tasks = if is_schedulable { 0..system.tasks.len() } else { 0..0 };
    let mut search = Search { system, probe: Probe::new(Cow::Borrowed(system)), order: by_slack(system) };
    let tasks = tasks.take_while(|_| !work::is_exceeded());
    Margins { all, tasks: tasks.map(|at| search.of_task(at)).collect() }
}

/// Returns tasks with deadlines, least slack first, because these are likely to miss first.
fn by_slack(system: &System) -> Vec<(usize, Nanos)> {
    let analysis = analyze(system);
    let slack = |(at, outcome): (usize, &Outcome)| {
        let deadline = system.tasks[at].deadline?;
        Some((at, deadline.saturating_sub(outcome.as_ref().map_or(0, |bound| bound.response))))
    };
    let mut order: Vec<(usize, Nanos)> = analysis.tasks.iter().enumerate().filter_map(slack).collect();
    order.sort_by_key(|&(_, slack)| slack);
    order
}

struct Search<'a> {
    system: &'a System,
    probe: Probe<'a>,
    /// Tasks with deadlines, and their slack.
    order: Vec<(usize, Nanos)>,
}

impl Search<'_> {
    fn of_task(&mut self, at: usize) -> TaskMargins {
        let system = self.system;
        let task = &system.tasks[at];
        // A thousandth of 0 is no resolution.
        let scale = task.deadline.or(task.arrivals.as_ref().map(Stream::window)).unwrap_or(0);
        let step = |now: Nanos| (now.max(scale) / 1_000).max(1);
        let execution =
            self.grown(at, task.execution, step(task.execution), |it, value| it.execution = value);
        let jitter = self.grown(at, task.jitter, step(task.jitter), |it, value| it.jitter = value);
        let holds = task.sections.iter().enumerate().map(|(index, section)| {
            if section.times == 0 {
                return Limit { now: 0, until: 0, step: 1, first: None };
            }
            self.grown(at, section.hold, step(section.hold), |it, value| {
                let longer = (value - section.hold).saturating_mul(section.times);
                it.sections[index].hold = value;
                for (outer, known) in it.sections.iter_mut().zip(&task.sections) {
                    if section.is_inside(known.resource, &task.sections) {
                        outer.hold = known.hold.saturating_add(longer);
                    }
                }
                it.execution = task.execution.saturating_add(longer);
            })
        });
        let holds = holds.collect();
        let period = task.arrivals.as_ref().map(|arrivals| {
            // Rate relative to the current one, in thousandths.
            let faster = |it: &mut Task, rate: u64| {
                it.arrivals = Some(arrivals.compressed(1_000, rate));
                // With another period, the offset has no meaning.
                it.offset = task.offset.filter(|_| rate == 1_000);
                it.grid = task.grid.filter(|_| rate == 1_000);
            };
            let (rate, first) = self.largest(at, 1_000..MAX_FACTOR * 1_000, |rate| rate / 1_000, faster);
            let until = arrivals.compressed(1_000, rate).window();
            Limit { now: arrivals.window(), until, step: until.div_ceil(1_000) + 1, first }
        });
        TaskMargins { execution, period, jitter, holds }
    }

    fn grown(&mut self, at: usize, now: Nanos, step: Nanos, set: impl Fn(&mut Task, Nanos)) -> Limit {
        let (until, first) = self.largest(at, now..self.most(at).max(now), |_| step, set);
        Limit { now, until, step, first }
    }

    /// Returns the largest time to try for a task. A value past its deadline always misses; a task
    /// without a deadline gets a multiple of all known times. A jitter of hours would create
    /// windows with millions of jobs.
    fn most(&self, at: usize) -> Nanos {
        let times = |task: &Task| [task.deadline, task.arrivals.as_ref().map(Stream::window)];
        let longest = || self.system.tasks.iter().flat_map(times).flatten().max().unwrap_or(MAX_TIME);
        match self.system.tasks[at].deadline {
            Some(deadline) => deadline.saturating_add(1),
            None => longest().saturating_mul(MAX_FACTOR),
        }
        .min(MAX_TIME)
    }

    /// Returns the largest of these values that meets all deadlines when `set` assigns it to a
    /// task.
    fn largest(
        &mut self,
        at: usize,
        values: Range<u64>,
        step: impl Fn(u64) -> u64,
        set: impl Fn(&mut Task, u64),
    ) -> (u64, Option<usize>) {
        let (probe, order) = (&mut self.probe, &self.order);
        // `change` covers every partition that can be affected.
        let stride = order.first().map_or(0, |&(_, slack)| slack / 4).max(values.start / 8);
        let mut now = values.start;
        let found = largest(values.clone(), step, stride, order.iter().map(|&(at, _)| at), |value, other| {
            if now != value {
                now = value;
                probe.change(at, |task| set(task, value));
            }
            probe.meets(other)
        });
        probe.change(at, |task| task.clone_from(&self.system.tasks[at]));
        found
    }
}

/// Returns the largest value with which all tasks pass, to within `step`, and the task that fails
/// first above it. All tasks pass with the first value; `stride` is the first increment to try.
///
/// A task that passes with the largest value of the tasks before it needs no search, so few tasks
/// do.
fn largest(
    values: Range<u64>,
    step: impl Fn(u64) -> u64,
    stride: u64,
    tasks: impl Iterator<Item = usize>,
    mut passes: impl FnMut(u64, usize) -> bool,
) -> (u64, Option<usize>) {
    let (mut largest, mut first) = (values.end, None);
    for task in tasks {
        if work::is_exceeded() {
            break;
        }
        if passes(largest, task) {
            continue;
        }
        let (mut good, mut bad) = (values.start, largest);
        let mut stride = stride.max(step(good));
        while let Some(next) = good.checked_add(stride).filter(|&next| next < bad) {
            if passes(next, task) {
                good = next;
                stride = stride.saturating_mul(2);
            } else {
                bad = next;
            }
        }
        while bad - good > step(good) {
            let middle = good + (bad - good) / 2;
            if passes(middle, task) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        (largest, first) = (good, Some(task));
    }
    (largest, first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::TAKEN;
    use crate::schema;
    use crate::system::Suspension;
    use crate::work::TooMuchWork;

    /// Deadlines of many periods make long busy windows, in which every job counts; returns a
    /// system of 60 such tasks.
    fn system_of_60_tasks() -> System {
        let mut seed = 1_u64;
        let mut random = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        let tasks: String = (1..=60)
            .map(|level| {
                let period = 1_000 * (1 + random(100));
                let (execution, jitter, deadline) = (period * (5 + random(20)), period / 5, 20 * period);
                format!(
                    "[[task]]\nname = \"t{level}\"\nlevel = {level}\nexecution = \"{execution}ns\"\n\
                     period = \"{period}us\"\njitter = \"{jitter}us\"\ndeadline = \"{deadline}us\"\n"
                )
            })
            .collect();
        schema::read("m.toml", &format!("schema = \"punctual-taskset/1\"\n{tasks}")).unwrap()
    }

    /// Computes the margins, and returns how many steps that takes, of which about 10 million take
    /// a second: their time depends on the machine.
    fn steps_of_margins(system: &System) -> u64 {
        let before = TAKEN.get();
        assert_eq!(margins(system).tasks.len(), 60);
        TAKEN.get() - before
    }

    #[test]
    fn searches_margins_of_60_tasks_with_long_deadlines_in_few_steps() {
        let steps = steps_of_margins(&system_of_60_tasks());
        assert!(steps < 2_000_000, "{steps} steps");
    }

    /// Each bound has a separate limit; this one is for all tasks and tried values together.
    #[test]
    fn limits_work_of_all_margins_together() {
        let system = system_of_60_tasks();
        let before = TAKEN.get();
        assert_eq!(work::limited(1_000_000, || margins(&system)), Err(TooMuchWork { limit: 1_000_000 }));
        assert!(TAKEN.get() - before < 1_000_000);
        assert_eq!(work::limited(work::MAX_WORK / 10, || margins(&system)), Ok(margins(&system)));
    }

    /// The responses of the suspending tasks determine those of lower tasks, for each tried value.
    #[test]
    fn searches_margins_of_60_tasks_with_suspensions_in_few_steps() {
        let mut system = system_of_60_tasks();
        for at in [10, 50] {
            system.tasks[at].suspension = Some(Suspension { total: 10_000, times: 1 });
        }
        let steps = steps_of_margins(&system);
        assert!(steps < 20_000_000, "{steps} steps");
    }
}
