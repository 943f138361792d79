//! Section of a task: its table, its worst jobs and its charts.

use std::fmt::Write as _;

use punctual_report::escape::{Code, Escaped, NoBreak};
use punctual_report::format::{format_clock, format_count, format_part};
use punctual_report::page::{legend, note};
use punctual_trace::jobs::{Actor, Bounds, Job, JobKind, Phase, Reservation};
use punctual_trace::priority;
use punctual_trace::stats::{CapturedJob, TaskStats, Term};

use super::{Report, charts, page, timeline};
use crate::explain;
use crate::export::table;

/// A section under construction: the fixed parts, and the timelines.
pub(super) struct Section<'a> {
    index: usize,
    task: &'a TaskStats,
    /// The worst jobs, followed by the sampled jobs that are not among them.
    retained: Vec<&'a CapturedJob>,
    head: String,
    /// With the maximum number of points that link to jobs.
    charts: String,
    slots: usize,
    jobs: String,
    timelines: usize,
    full: bool,
}

impl<'a> Section<'a> {
    pub(super) fn new(index: usize, task: &'a TaskStats, report: &Report<'_>, slots: usize) -> Self {
        let names = task.names(report.names);
        let report = &Report { names: &names, ..report.clone() };
        let mut head = String::new();
        heading(index, task, report, &mut head);
        head += &table::terms(task).class("terms").html("Terms of response-time analysis");
        let mut retained: Vec<&CapturedJob> = task.worst().iter().collect();
        let is_worst = |captured: &&CapturedJob| task.worst().iter().any(|worst| worst.job == captured.job);
        retained.extend(task.sampled().iter().filter(|captured| !is_worst(captured)));
        let charts = charts::draw(task, report, slots, &points(index, &retained));
        Self { index, task, retained, head, charts, slots, jobs: String::new(), timelines: 0, full: false }
    }

    /// Returns the number of jobs that may have a timeline.
    pub(super) fn retained(&self) -> usize {
        self.retained.len()
    }

    /// Returns its size, including the notes that it may get.
    pub(super) fn len(&self) -> usize {
        self.head.len() + self.charts.len() + 1_500
    }

    /// Adds the timeline of one of the captured jobs if there is room; returns its size.
    pub(super) fn add(&mut self, rank: usize, report: &Report<'_>, room: usize) -> usize {
        let Some(captured) = self.retained.get(rank) else { return 0 };
        if self.full {
            return 0;
        }
        let names = self.task.names(report.names);
        let report = &Report { names: &names, ..report.clone() };
        let (worst, ordinary) = (self.task.worst().len(), self.retained.len() - self.task.worst().len());
        let place = match rank.checked_sub(worst) {
            None => format!("{} of the {worst} worst", rank + 1),
            Some(after) => format!("ordinary job {} of {ordinary}", after + 1),
        };
        let job = job(self.index, rank, &place, captured, report);
        if job.len() > room {
            self.full = true;
            return 0;
        }
        self.timelines += 1;
        self.jobs += &job;
        job.len()
    }

    pub(super) fn timelines(&self) -> usize {
        self.timelines
    }

    pub(super) fn finish(self, report: &Report<'_>) -> String {
        let mut out = self.head;
        let retained = self.retained.len();
        if retained > 0 {
            let title = if retained > self.task.worst().len() {
                "The worst jobs, and ordinary ones"
            } else {
                "The worst jobs"
            };
            let _ = write!(out, "<h3>{title}</h3><figure class=\"worst\">");
            out += &phases();
            if self.timelines > 1 {
                let _ = write!(
                    out,
                    "<div class=\"scrub\" hidden><button type=\"button\" aria-label=\"previous job\">←</button>\
                     <input type=\"range\" min=\"1\" max=\"{}\" value=\"1\" aria-label=\"which job\">\
                     <button type=\"button\" aria-label=\"next job\">→</button><output></output></div>",
                    self.timelines
                );
            }
            out += &self.jobs;
            if self.timelines < retained {
                let missing = retained - self.timelines;
                out += &note(&format!(
                    "{missing} of the {retained} jobs kept have no timeline here: the page would be too large."
                ));
            }
            out += "</figure>";
        }
        out += &match self.timelines < retained {
            // Points link only to timelines on the page.
            true => {
                let names = self.task.names(report.names);
                let report = &Report { names: &names, ..report.clone() };
                charts::draw(
                    self.task,
                    report,
                    self.slots,
                    &points(self.index, &self.retained[..self.timelines]),
                )
            }
            false => self.charts,
        };
        out += "</section>\n";
        out
    }
}

pub(super) fn kind_label(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Thread => "thread",
        JobKind::IrqThread => "IRQ thread",
        JobKind::Irq => "interrupt",
        JobKind::Vector => "vector",
        JobKind::Softirq => "softirq",
        JobKind::Offline => "without Linux",
    }
}

fn heading(index: usize, task: &TaskStats, report: &Report<'_>, out: &mut String) {
    let key = task.key();
    let name = page::name(task, report.names);
    let _ = write!(out, "<section class=\"task\" id=\"t{index}\"><h2>{}</h2>", Escaped(&name));
    let mut facts = vec![match key.actor {
        Actor::Task(_) => "task of a Punctual app".to_owned(),
        _ => kind_label(key.kind).to_owned(),
    }];
    let gathered = report.collector.task(task.id());
    if key.kind == JobKind::Offline {
        facts.push("on a CPU without Linux".to_owned());
    } else if let (Actor::Thread(_) | Actor::Task(_), Some(known)) = (key.actor, task.priorities()) {
        facts.push(priority::range(known.0, known.1));
    }
    if let Some(Reservation { runtime, deadline, period }) = task.reservation() {
        let [runtime, deadline, period] = [runtime, deadline, period].map(format_part);
        facts.push(format!("{runtime} in {period}, deadline {deadline}"));
    }
    for (count, what) in [
        (task.jobs(), "job"),
        (task.throttled(), "throttled job"),
        (task.migrations(), "migration"),
        (task.preemptions(), "preemption"),
    ] {
        match count {
            0 => {}
            1 => facts.push(format!("1 {what}")),
            count => facts.push(format!("{} {what}s", format_count(count))),
        }
    }
    let _ = write!(out, "<p class=\"facts\">{}", Code(&facts.join(" · ")));
    if task.misses() > 0 {
        let _ = write!(out, " · <b class=\"fault\">{} deadline misses</b>", format_count(task.misses()));
    }
    if task.flawed() > 0 {
        let [lost, contradiction, cut] = gathered.map_or([0; 3], |gathered| gathered.flawed);
        let why = [
            (lost, "with lost events"),
            (contradiction, "with missing or contradictory events"),
            (cut, "not ended"),
        ];
        let why = why
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, why)| format!("{} {why}", format_count(*count)));
        let why: Vec<String> = why.collect();
        let _ = write!(
            out,
            " · <b class=\"fault\">{} more left out</b> ({})",
            format_count(task.flawed()),
            why.join(", ")
        );
    }
    *out += "</p>";
    for assumption in explain::assumptions(task) {
        *out += &note(&assumption);
    }
    for job in task.unended() {
        let words = explain::job(job, report.names);
        *out += &note(&format!("A job had not ended. {} {}", words[1], explain::longest(job, report.names)));
    }
}

/// Returns the color legend of timelines.
pub(super) fn phases() -> String {
    let phases = [
        (Phase::Jitter, "J not running yet"),
        (Phase::Execution, "C executes"),
        (Phase::ExecutionOrOverhead, "C or SS"),
        (Phase::Overhead, "SS in the scheduler"),
        (Phase::Blocking, "B waits for a lock"),
        (Phase::Interference, "I displaced"),
    ];
    let phases = phases.map(|(phase, text)| (timeline::style(phase).0, text));
    legend(&[&phases[..], &[("ran", "others"), ("waits", "ready"), ("held", "holds the lock")]].concat())
}

/// Returns the anchor of each job.
fn points<'a>(index: usize, retained: &[&'a CapturedJob]) -> Vec<(String, &'a Job)> {
    let points = retained.iter().enumerate().map(|(rank, captured)| (id(index, rank), &captured.job));
    points.collect()
}

/// Returns the ID of the element of a job.
fn id(index: usize, rank: usize) -> String {
    format!("t{index}-j{rank}")
}

/// Returns a job's heading, timeline and explanation.
fn job(index: usize, rank: usize, place: &str, captured: &CapturedJob, report: &Report<'_>) -> String {
    let job = &captured.job;
    let hidden = if rank > 0 { " hidden" } else { "" };
    let took = match job.response {
        Bounds::Unknown => format!("W {}", explain::value(job.window)),
        response => format!("R {}", explain::value(response)),
    };
    let mut out = format!(
        "<div class=\"job\" id=\"{}\"{hidden}><p class=\"which\"><b>{}</b> · {place} · {}</p>",
        id(index, rank),
        NoBreak(&took),
        Code(&facts(job, report))
    );
    out += &timeline::draw(captured, report.names, |tid| report.watch.must_observe(tid));
    if captured.truncated {
        out += &note(
            "Events of this job are missing: it was longer than what is remembered, so the rows of the others are incomplete.",
        );
    }
    if job.segments.is_empty() {
        out += &note("The phases of jobs were not kept.");
    }
    out += "<dl class=\"words\">";
    for explain::Sentence { term, text } in explain::sentences(job, report.names) {
        let _ = match term.map(Term::letter) {
            Some(letter) => {
                write!(out, "<dt><i class=\"sign {letter}\">{letter}</i></dt><dd>{}</dd>", Code(&text))
            }
            None => write!(out, "<dt></dt><dd>{}</dd>", Code(&text)),
        };
    }
    if let Some(calls) = explain::system_calls(captured, report.names) {
        let _ = write!(out, "<dt></dt><dd>{}</dd>", Code(&calls));
    }
    out += "</dl></div>";
    out
}

/// "ended 1.234567 s into the recording · CPU 0 · job 1234"
fn facts(job: &Job, report: &Report<'_>) -> String {
    let into = job.end.saturating_sub(report.collector.span().map_or(0, |span| span.0));
    let cpus = match job.first_cpu == job.last_cpu {
        true => format!("CPU {}", job.first_cpu),
        false => format!("CPU {} → {}", job.first_cpu, job.last_cpu),
    };
    format!("ended {} s into the recording · {cpus} · job {}", format_clock(into), job.number)
}
