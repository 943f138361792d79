//! The comparison of declared, measured and proven times, and the verdict that follows from it.

use punctual_analysis::time::Nanos;
use punctual_isolate::doctor::{self, Severity, Source};
use punctual_report::format::{format_count, format_counted, format_nanos, format_part, format_significant};

use crate::status;

/// Maximum number of causes.
pub(super) const MAX_CAUSES: usize = 3;

/// The unknown value of a subject without measurements.
pub(super) const RESPONSE_TIMES: &str = "response times";

/// Kind of subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A Punctual app, which declares and measures its tasks.
    App,
    /// Any other program, which was recorded if that is permitted.
    Program,
    /// A periodic job without work.
    Probe,
    /// A recording.
    Recording,
    /// The settings of a machine, without anything that runs.
    Machine,
}

impl Kind {
    /// Returns the name in the JSON.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Program => "program",
            Self::Probe => "probe",
            Self::Recording => "recording",
            Self::Machine => "machine",
        }
    }
}

/// The times of a task; times in ns, `None` if unknown.
#[derive(Debug, Clone, Default)]
pub(super) struct Task {
    pub(super) name: String,
    /// Declared or inferred.
    pub(super) period: Option<Nanos>,
    pub(super) deadline: Option<Nanos>,
    pub(super) jobs: Option<u64>,
    pub(super) misses: Option<u64>,
    /// Longest measured response.
    pub(super) seen: Option<Nanos>,
    /// Proven bound of the response.
    pub(super) bound: Option<Nanos>,
    /// The same with the cost of the profiler, if the run was profiled: `seen` contains that cost.
    pub(super) profiled_bound: Option<Nanos>,
    /// Number of further jobs whose times are unknown.
    pub(super) unmeasured: u64,
}

impl Task {
    /// Returns the larger of the measured and the proven response.
    pub(super) fn worst(&self) -> Option<Nanos> {
        self.seen.max(self.bound)
    }

    /// Returns the part of the deadline that is left, negative if it is exceeded.
    pub(super) fn margin(&self) -> Option<f64> {
        let (deadline, worst) = (self.deadline? as f64, self.worst()? as f64);
        Some((deadline - worst) / deadline)
    }

    fn has_missed(&self) -> bool {
        self.misses.is_some_and(|misses| misses > 0) || exceeds(self.seen, self.deadline)
    }

    /// Returns the number of missed deadlines as text.
    pub(super) fn missed(&self) -> String {
        match (self.deadline, self.misses, self.jobs) {
            (None, ..) => "–".into(),
            (_, Some(misses), Some(jobs)) => format!("{} of {}", format_count(misses), format_count(jobs)),
            (_, Some(misses), None) => format_count(misses),
            (Some(_), None, _) if self.has_missed() => "at least 1".into(),
            (Some(_), None, Some(jobs)) if self.seen.is_some() => format!("0 of {}", format_count(jobs)),
            (Some(_), None, _) => "unknown".into(),
        }
    }
}

fn exceeds(time: Option<Nanos>, deadline: Option<Nanos>) -> bool {
    time.zip(deadline).is_some_and(|(time, deadline)| time > deadline)
}

/// A cause of delays, and its remedy.
#[derive(Debug, Clone)]
pub(super) struct Cause {
    /// The check of the doctor, or `rta`.
    pub(super) source: &'static str,
    pub(super) what: String,
    pub(super) cost: Option<String>,
    /// Removes the cause; `None` if no command does.
    pub(super) command: Option<String>,
    /// `command` is one for a shell of this machine, and not an instruction in words.
    pub(super) is_command: bool,
    /// Duration of the command's effect.
    pub(super) lasts: Option<&'static str>,
}

impl Cause {
    /// Converts a finding of the doctor. The first remedy acts soonest.
    fn of(finding: &doctor::Finding) -> Self {
        let fix = finding.fixes.first();
        Self {
            source: finding.check,
            what: finding.found.clone(),
            cost: finding.cost.as_ref().map(price),
            // Without the remark after it.
            command: fix.map(|fix| fix.command.split("   # ").next().unwrap_or_default().to_owned()),
            is_command: fix.is_some_and(|fix| fix.is_command),
            lasts: fix.map(|fix| fix.lasts.as_str()),
        }
    }
}

/// Returns the cost in a few words, with its origin unless the kernel states it.
fn price(cost: &doctor::Cost) -> String {
    let origin = match cost.source {
        Source::Measured => "measured: ",
        Source::Stated => "",
        Source::Typical => "typically ",
    };
    format!("{origin}{} {}", format_nanos(cost.ns as f64), cost.of)
}

/// A value that could not be determined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unknown {
    pub(super) what: String,
    /// The reason, and how to find out.
    pub(super) why: String,
}

impl Unknown {
    pub(super) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }

    /// Returns the missing bound of a task, with the sentence that explains it: "`a` has no bound:
    /// …" or "`a` has no bound, since …".
    pub(super) fn bound(task: &str, sentence: &str) -> Self {
        let reason = sentence.strip_prefix(&format!("`{task}` has no bound"));
        let reason = reason.and_then(|rest| rest.strip_prefix(": ").or(rest.strip_prefix(", ")));
        Self::new(format!("the bound of `{task}`"), reason.unwrap_or(sentence).trim_end_matches('.'))
    }
}

/// The measurements of a subject.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Length of the run.
    pub(super) length: Option<Nanos>,
    pub(super) tasks: Vec<Task>,
    /// Causes within the task set.
    pub(super) causes: Vec<Cause>,
    pub(super) unknown: Vec<Unknown>,
    /// Reason why the measurement does not count, if so.
    pub(super) invalid: Option<String>,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    Unknown,
}

impl Answer {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the exit status.
    pub(super) fn status(self) -> u8 {
        match self {
            Self::Yes => status::GOOD,
            Self::No => status::FINDING,
            Self::Unknown => status::BAD_INPUT,
        }
    }
}

/// The answer with its reasons.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub(super) answer: Answer,
    pub(super) reason: String,
    pub(super) subject: Subject,
    /// The largest causes of delays, the largest first.
    pub(super) causes: Vec<Cause>,
}

impl Verdict {
    /// Judges measurements on a machine with these findings.
    pub(super) fn new(mut subject: Subject, machine: Option<&doctor::Report>) -> Self {
        let by_margin = |task: &Task| (task.deadline.is_none(), task.margin().unwrap_or(f64::INFINITY));
        subject.tasks.sort_by(|a, b| {
            let ((a_none, a), (b_none, b)) = (by_margin(a), by_margin(b));
            a_none.cmp(&b_none).then(a.total_cmp(&b))
        });
        let (answer, reason) = judge(&subject, machine);
        let findings = machine.into_iter().flat_map(|machine| &machine.findings);
        let findings = findings.filter(|finding| finding.severity > Severity::Note).map(Cause::of);
        // Terms of a bound first: they exceed a deadline by themselves.
        let causes = subject.causes.iter().cloned().chain(findings).take(MAX_CAUSES).collect();
        subject.unknown.extend(machine.into_iter().flat_map(|machine| &machine.unknown).map(|unknown| {
            Unknown::new(format!("{}: {}", unknown.check, unknown.what), unknown.why.clone())
        }));
        Self { answer, reason, subject, causes }
    }

    /// Returns the task with the least margin, if any has a deadline and a time.
    pub(super) fn worst(&self) -> Option<&Task> {
        self.subject.tasks.iter().find(|task| task.margin().is_some())
    }
}

/// Returns the answer and its reason.
fn judge(subject: &Subject, machine: Option<&doctor::Report>) -> (Answer, String) {
    let tasks = || subject.tasks.iter().filter(|task| task.deadline.is_some());
    if let Some(task) = tasks().find(|task| task.has_missed()) {
        let late = task.seen.zip(task.deadline).and_then(|(seen, deadline)| seen.checked_sub(deadline));
        let late = late.filter(|&late| late > 0);
        let latest = late.map_or(String::new(), |late| format!(", the latest by {}", format_part(late)));
        let count = match (task.misses, task.jobs) {
            (Some(misses), Some(jobs)) => {
                format!("{} of {}", format_count(misses), format_counted(jobs, "job"))
            }
            _ => "at least 1 job".into(),
        };
        return (Answer::No, format!("`{}` missed its deadline: {count}{latest}", task.name));
    }
    if let Some(task) = tasks().find(|task| exceeds(task.bound, task.deadline)) {
        let [bound, deadline] = [task.bound, task.deadline].map(|ns| format_part(ns.unwrap_or_default()));
        let reason = format!(
            "`{}` can miss its deadline: its bound is {bound}, its deadline {deadline}; no job of this run missed it",
            task.name
        );
        return (Answer::No, reason);
    }
    let unknown = |reason: String| (Answer::Unknown, reason);
    let unmeasured = subject.unknown.iter().find(|unknown| unknown.what == RESPONSE_TIMES);
    if let (true, Some(unmeasured)) = (subject.tasks.is_empty(), unmeasured) {
        return unknown(format!("no response was measured: {}", unmeasured.why));
    }
    if tasks().next().is_none() {
        return unknown("no task has a deadline; give --deadline [NAME=]TIME".into());
    }
    if let Some(task) = tasks().find(|task| task.seen.is_none()) {
        return unknown(format!("no response of `{}` was measured", task.name));
    }
    if let Some(why) = &subject.invalid {
        return unknown(why.clone());
    }
    if subject.kind == Kind::Probe {
        let releases = subject.tasks.iter().find_map(|task| task.jobs).unwrap_or(0).max(1);
        let percent = punctual_bench::miss_rate_bound(releases) * 100.0;
        let reason = format!(
            "none of {} was late; with 95 % confidence, fewer than {} % are",
            format_counted(releases, "release"),
            format_significant(percent)
        );
        return (Answer::Yes, reason);
    }
    if let Some(task) = tasks().find(|task| task.bound.is_none()) {
        return unknown(format!("no deadline was missed, and `{}` has no proven bound", task.name));
    }
    if let Some(task) = tasks().find(|task| task.unmeasured > 0) {
        let jobs = format_counted(task.unmeasured, "job");
        return unknown(format!(
            "no measured job was late, and the times of {jobs} of `{}` are unknown",
            task.name
        ));
    }
    let Some(machine) = machine else {
        return unknown("every bound meets its deadline, if the machine is fit, which is unknown".into());
    };
    let high = machine.findings.iter().filter(|finding| finding.severity == Severity::High).count();
    if high > 0 {
        return unknown(format!(
            "every deadline was met, but no bound holds on this machine: {} of high severity",
            format_counted(high as u64, "finding")
        ));
    }
    (Answer::Yes, "every deadline was met, and every bound meets its deadline".into())
}

#[cfg(test)]
mod tests {
    use punctual_isolate::doctor::{Scene, examine};
    use punctual_isolate::facts::Machine;
    use punctual_isolate::tree::Tree;

    use super::*;

    fn task(deadline: u64, seen: u64, bound: Option<u64>) -> Task {
        Task {
            name: "control".into(),
            deadline: Some(deadline),
            seen: Some(seen),
            bound,
            jobs: Some(1_000),
            misses: Some(u64::from(seen > deadline)),
            ..Task::default()
        }
    }

    fn subject(kind: Kind, tasks: Vec<Task>) -> Subject {
        let name = "app".into();
        Subject { kind, name, length: None, tasks, causes: Vec::new(), unknown: Vec::new(), invalid: None }
    }

    fn verdict(kind: Kind, task: Task, machine: &doctor::Report) -> Verdict {
        Verdict::new(subject(kind, vec![task]), Some(machine))
    }

    /// Returns the explanation of a missing bound of `a`.
    fn missing_bound(sentence: &str) -> String {
        Unknown::bound("a", sentence).why
    }

    #[test]
    fn names_task_without_bound_once() {
        assert_eq!(missing_bound("`a` has no bound: `b` needs it."), "`b` needs it");
        assert_eq!(missing_bound("`a` has no bound, since `b` has none."), "since `b` has none");
        let other = "`a` has no bound that can be computed: 99 % of the CPU is used.";
        assert_eq!(missing_bound(other), other.trim_end_matches('.'));
    }

    #[test]
    fn answers_no_if_a_deadline_was_missed_or_a_bound_exceeds_it() {
        let fit = doctor::Report::default();
        let missed = verdict(Kind::App, task(100_000, 112_300, Some(90_000)), &fit);
        assert_eq!(missed.answer, Answer::No);
        assert_eq!(missed.reason, "`control` missed its deadline: 1 of 1 000 jobs, the latest by 12 µs");
        let possible = verdict(Kind::App, task(100_000, 50_000, Some(130_000)), &fit);
        assert_eq!(possible.answer, Answer::No);
        assert!(possible.reason.contains("its bound is 130 µs, its deadline 100 µs"), "{}", possible.reason);
        assert_eq!(possible.worst().and_then(Task::margin), Some(-0.3));
    }

    #[test]
    fn answers_yes_for_an_app_only_with_bounds_on_a_fit_machine() {
        let fit = doctor::Report::default();
        assert_eq!(verdict(Kind::App, task(100_000, 50_000, Some(60_000)), &fit).answer, Answer::Yes);
        assert_eq!(verdict(Kind::App, task(100_000, 50_000, None), &fit).answer, Answer::Unknown);
        let guest = Tree::parse("")
            .with("/sys/devices/system/cpu/online", "0-3")
            .with("/proc/cpuinfo", "flags : hypervisor");
        let machine = Machine::read(guest);
        let unfit = examine(&Scene::new(&machine));
        let unfit = verdict(Kind::App, task(100_000, 50_000, Some(60_000)), &unfit);
        assert_eq!(unfit.answer, Answer::Unknown);
        assert!(
            unfit.reason.contains("no bound holds on this machine: 1 finding of high severity"),
            "{}",
            unfit.reason
        );
        assert_eq!((unfit.causes.len(), unfit.causes[0].source), (MAX_CAUSES, "steal"));
    }

    #[test]
    fn bounds_the_miss_rate_of_a_probe_by_its_sample_size() {
        let fit = doctor::Report::default();
        let held = verdict(Kind::Probe, task(1_000_000, 50_000, None), &fit);
        assert_eq!(held.answer, Answer::Yes);
        assert_eq!(
            held.reason,
            "none of 1 000 releases was late; with 95 % confidence, fewer than 0.300 % are"
        );
        let mut ordinary = subject(Kind::Probe, vec![task(1_000_000, 50_000, None)]);
        ordinary.invalid = Some("the probe had no real-time priority".into());
        assert_eq!(Verdict::new(ordinary, Some(&fit)).answer, Answer::Unknown);
    }

    #[test]
    fn answers_unknown_without_deadlines_or_measurements() {
        let none = Verdict::new(subject(Kind::Program, Vec::new()), None);
        assert_eq!((none.answer, none.answer.status()), (Answer::Unknown, 2));
        assert!(none.reason.contains("--deadline"));
        let mut refused = subject(Kind::Program, Vec::new());
        refused.unknown.push(Unknown::new(RESPONSE_TIMES, "permission denied"));
        let refused = Verdict::new(refused, None);
        assert_eq!(refused.reason, "no response was measured: permission denied");
        let unmeasured = Task { seen: None, jobs: None, misses: None, ..task(1_000, 0, None) };
        assert_eq!(unmeasured.missed(), "unknown");
        let flawed = Task { unmeasured: 3, ..task(100_000, 50_000, Some(60_000)) };
        let flawed = verdict(Kind::Program, flawed, &doctor::Report::default());
        assert_eq!(flawed.answer, Answer::Unknown);
        assert!(flawed.reason.contains("the times of 3 jobs of `control` are unknown"), "{}", flawed.reason);
        let machine = Verdict::new(subject(Kind::Machine, vec![unmeasured]), None);
        assert_eq!(machine.reason, "no response of `control` was measured");
    }
}
