//! The text of a report.

use core::fmt::{self, Write};

use super::task::{COLUMNS, UNKNOWN, any_timed};
use super::{Report, TaskReport, table};
use crate::model::OnEarly;
use crate::port::{Count, Nanos};

/// True if the app is a Linux process, whose clock and tools the text names.
pub(super) const IS_PROCESS: bool = cfg!(feature = "std");

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elapsed = Nanos(u64::try_from(self.elapsed.as_nanos()).unwrap_or(u64::MAX));
        write!(f, "{}: {} after {elapsed}", self.app, self.outcome)?;
        match self.virtual_time {
            true => f.write_str(" of virtual time\n")?,
            false if IS_PROCESS => f.write_str(" of real time\n")?,
            false => f.write_char('\n')?,
        }
        if !self.tasks.is_empty() {
            f.write_char('\n')?;
            if any_timed(&self.tasks) {
                f.write_str(
                    "J: release to start, R: release to end, C: start to end without preemption and suspension\n\n",
                )?;
            }
            table::write(f, &COLUMNS, &self.tasks)?;
            if self.virtual_time && !any_timed(&self.tasks) {
                f.write_str(
                    "no job took any time: in virtual time, a job takes as long as its task declares by `execution`\n",
                )?;
            }
        }
        if self.tasks.iter().any(|task| !task.measured) {
            let why = if cfg!(feature = "monitoring") {
                "the app sets `monitor = false`"
            } else {
                "`punctual` was built without its feature `monitoring`"
            };
            writeln!(f, "{UNKNOWN} was not measured, because {why}")?;
        }
        self.tasks.iter().try_for_each(|task| explain_misses(f, task))?;
        if !self.virtual_time && self.tasks.iter().any(is_late_by_others) {
            super::write_trace_command(f)?;
        }
        for task in self.tasks.iter().filter(|task| task.early > 0) {
            explain_early(f, task)?;
        }
        for task in self.tasks.iter().filter(|task| task.idle_releases > 0) {
            writeln!(
                f,
                "{} of the jobs of {} found no data, because its event source is at its end; \
                 replace the source, or declare `on_idle_source = once` or `stop`",
                Count(task.idle_releases),
                task.name
            )?;
        }
        self.tasks.iter().try_for_each(|task| super::explain_clock(f, task))?;
        self.tasks.iter().try_for_each(|task| super::explain_findings(f, task))?;
        if self.dropped_jobs > 0 {
            let jobs = counted(self.dropped_jobs, "released job");
            writeln!(f, "{jobs} not run, because the app ended first")?;
        }
        if self.unbound_interrupts > 0 {
            writeln!(f, "{} that no task binds", counted(self.unbound_interrupts, "interrupt"))?;
        }
        super::write_helpers(f, self)?;
        if self.virtual_time { Ok(()) } else { super::write_settings(f, self) }
    }
}

/// "1 job", "2 jobs".
pub(crate) fn counted(count: u64, noun: &'static str) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "{} {noun}{}", Count(count), if count == 1 { "" } else { "s" }))
}

/// Prints a line on the early releases of a task.
fn explain_early(f: &mut fmt::Formatter<'_>, task: &TaskReport) -> fmt::Result {
    let interval = task.min_interval.map_or(0, |interval| interval.as_ticks());
    let became = match task.on_early {
        Some(OnEarly::Delay) => " and waited",
        Some(OnEarly::Reject) if task.early == 1 => " and was rejected",
        Some(OnEarly::Reject) => " and were rejected",
        _ => "",
    };
    let (name, releases) = (task.name, counted(task.early, "release"));
    writeln!(f, "{name}: {releases} came too early{became}: more than {} in {}", task.burst, Nanos(interval))
}

/// Returns whether the task missed deadlines for reasons other than its own suspension.
fn is_late_by_others(task: &TaskReport) -> bool {
    task.misses > 0 && task.deadline.is_some_and(|deadline| task.suspension_max <= deadline.as_ticks())
}

/// Prints a line on the deadlines that a task missed, with the causes that are certain.
fn explain_misses(f: &mut fmt::Formatter<'_>, task: &TaskReport) -> fmt::Result {
    let Some(deadline) = task.deadline.filter(|_| task.misses > 0) else { return Ok(()) };
    let deadline = deadline.as_ticks();
    let (name, misses, jobs) = (task.name, Count(task.misses), counted(task.jobs, "job"));
    write!(f, "{name}: {misses} of {jobs} missed the deadline of {}", Nanos(deadline))?;
    let suspends = task.suspended > 0;
    if task.jitter.max > deadline {
        write!(f, "; one of them started {} late", Nanos(task.jitter.max))?;
    } else if task.suspension_max > deadline {
        write!(f, "; one of them was suspended for {}", Nanos(task.suspension_max))?;
    } else if task.execution.max > deadline {
        write!(f, "; one of them took {} from start to end", Nanos(task.execution.max))?;
    } else if task.suspension_max > 0 {
        let jobs = counted(task.suspended, "job");
        write!(f, "; {jobs} suspended themselves, for up to {}", Nanos(task.suspension_max))?;
    }
    writeln!(f)?;
    if suspends {
        writeln!(f, "    PUNCTUAL_GUARD=report names the calls in which its jobs wait")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use punctual_core::Duration;

    use super::*;
    use crate::report::{Outcome, Summary};

    /// Returns the lines of a report on a task with a deadline of 80 µs, of which two jobs of ten
    /// missed it.
    fn lines_on(jitter: u64, execution: u64) -> Vec<String> {
        let summary = |max| Summary { max, ..Summary::default() };
        let task = TaskReport {
            name: "late",
            jobs: 10,
            misses: 2,
            deadline: Some(Duration::from_micros(80)),
            jitter: summary(jitter),
            response: summary(jitter + execution),
            execution: summary(execution),
            ..TaskReport::default()
        };
        let text = Report { tasks: vec![task].into(), virtual_time: true, ..Report::default() }.to_string();
        text.lines().filter(|line| line.starts_with("late:")).map(str::to_owned).collect()
    }

    #[test]
    fn omits_times_if_all_are_zero() {
        let report = |max| {
            let response = Summary { max, ..Summary::default() };
            let task = TaskReport { name: "t", jobs: 3, measured: true, response, ..TaskReport::default() };
            Report { tasks: vec![task].into(), virtual_time: true, ..Report::default() }.to_string()
        };
        let [without, with] = [report(0), report(5)];
        assert!(!without.contains("R max") && without.contains("no job took any time"), "{without}");
        assert!(with.contains("R max") && !with.contains("no job took any time"), "{with}");
    }

    #[test]
    fn explains_misses_by_certain_causes() {
        let missed = "late: 2 of 10 jobs missed the deadline of 80.0 µs";
        assert_eq!(lines_on(90_000, 5_000), [format!("{missed}; one of them started 90.0 µs late")]);
        assert_eq!(
            lines_on(5_000, 90_000),
            [format!("{missed}; one of them took 90.0 µs from start to end")]
        );
        assert_eq!(lines_on(50_000, 50_000), [missed]);
    }

    #[test]
    fn reports_early_releases_and_their_handling() {
        let line = |on_early, early| {
            let min_interval = Some(Duration::from_millis(5));
            let task = TaskReport {
                name: "button",
                burst: 2,
                min_interval,
                early,
                on_early: Some(on_early),
                ..TaskReport::default()
            };
            let text =
                Report { tasks: vec![task].into(), virtual_time: true, ..Report::default() }.to_string();
            text.lines().find(|line| line.starts_with("button:")).map(str::to_owned)
        };
        let expected = "button: 7 releases came too early and were rejected: more than 2 in 5.00 ms";
        assert_eq!(line(OnEarly::Reject, 7).as_deref(), Some(expected));
        assert_eq!(line(OnEarly::Delay, 7), Some(expected.replace("were rejected", "waited")));
        assert_eq!(line(OnEarly::Count, 7), Some(expected.replace(" and were rejected", "")));
        assert_eq!(line(OnEarly::Count, 0), None);
    }

    #[test]
    fn reports_suspensions_only_if_present() {
        let with = |suspended| {
            let task = TaskReport { suspended, ..TaskReport::default() };
            Report { tasks: vec![task].into(), ..Report::default() }.to_string()
        };
        assert!(with(1).contains("suspended  ") && !with(0).contains("suspended  "));
        let row = |suspension_max| {
            let task = TaskReport {
                name: "t",
                measured: true,
                suspended: 1,
                suspension_max,
                ..TaskReport::default()
            };
            let text = Report { tasks: vec![task].into(), ..Report::default() }.to_string();
            let row = text.lines().find(|line| line.starts_with("t ")).map(str::to_owned);
            row.unwrap_or_else(|| panic!("{text}"))
        };
        assert!(row(5).ends_with(" 5 ns") && row(0).ends_with(UNKNOWN), "{}", row(0));
    }

    #[test]
    fn explains_sleep_miss_by_guard_not_trace() {
        let task = |suspension_max, execution| TaskReport {
            name: "t",
            jobs: 4,
            misses: 4,
            suspended: 4,
            suspension_max,
            deadline: Some(Duration::from_millis(10)),
            execution: Summary { max: execution, ..Summary::default() },
            ..TaskReport::default()
        };
        let explained = |task| {
            let text = Report { tasks: vec![task].into(), ..Report::default() }.to_string();
            let lines = text.lines().skip_while(|line| !line.starts_with("t: "));
            lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
        };
        let slept = explained(task(20_000_000, 100_000));
        assert!(slept.contains("one of them was suspended for 20.0 ms\n"), "{slept}");
        assert!(slept.contains("PUNCTUAL_GUARD=report") && !slept.contains("punctual trace"), "{slept}");
        let both = explained(task(6_000_000, 5_000_000));
        assert!(both.contains("; 4 jobs suspended themselves, for up to 6.00 ms\n"), "{both}");
        assert!(both.contains("PUNCTUAL_GUARD=report") && both.contains("punctual trace"), "{both}");
    }

    #[test]
    fn reports_unknown_instead_of_zero() {
        let time = Summary { p999: Some(0), p50: Some(0), ..Summary::default() };
        let task = |measured| TaskReport {
            name: "t",
            measured,
            overruns: 7,
            jitter: time.clone(),
            response: time.clone(),
            ..TaskReport::default()
        };
        let shows = |measured| Report { tasks: vec![task(measured)].into(), ..Report::default() }.to_string();
        assert!(shows(true).contains("0 ns") && !shows(true).contains(UNKNOWN));
        let unknown = shows(false);
        assert!(unknown.contains("– was not measured"), "{unknown}");
        let row = unknown.lines().find(|line| line.starts_with("t ")).expect("the row of the task");
        let row: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(row[..2], ["t", "0"], "{unknown}");
        assert_eq!(row[2..], [&[UNKNOWN; 8][..], &["7", UNKNOWN]].concat(), "{unknown}");
    }

    #[test]
    fn shows_a_dash_for_quantiles_of_tasks_without_a_histogram() {
        let jitter = Summary { max: 1, ..Summary::default() };
        let task = TaskReport { name: "t", measured: true, jobs: 1, jitter, ..TaskReport::default() };
        let text = Report { tasks: vec![task].into(), ..Report::default() }.to_string();
        let row: Vec<&str> = text.lines().find(|line| line.starts_with("t ")).unwrap().split("  ").collect();
        let row: Vec<&str> = row.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect();
        let (max, none) = ("0 ns", UNKNOWN);
        assert_eq!(row[1..], ["0", "1", "1 ns", none, none, max, none, none, max, "0", "0"], "{text}");
    }

    #[test]
    fn exit_codes() {
        let ended = |outcome| Report { outcome, ..Report::default() }.exit_code();
        assert_eq!(ended(Outcome::Signal(15)), 0);
        assert_eq!(ended(Outcome::Overrun { task: "t" }), 1);
        assert_eq!(ended(Outcome::IdleSource { task: "t" }), 1);
        assert_eq!(ended(Outcome::Guard { task: "t" }), 1);
        assert_eq!(ended(Outcome::Panicked { task: "t".into(), message: "m".into() }), 101);
    }
}
