//! Explains the response time of a job in sentences, one per term.
//!
//! ```
//! # use punctual_trace::event::{Event, Kind, SwitchOut, Task};
//! # use punctual_trace::jobs::{Config, Decomposer};
//! use punctual_trace_report::explain;
//! use punctual_trace::names::Names;
//!
//! # let (control, idle) = (Task { id: 7, priority: 10 }, Task { id: 0, priority: 120 });
//! # let event = |time, by, kind| Event { time, cpu: 0, by, kind };
//! # let trace = [
//! #     event(100_000, 0, Kind::Waking { task: control, cpu: 0 }),
//! #     event(130_000, 0, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: control }),
//! #     event(150_000, 7, Kind::IrqEntry { irq: 24 }),
//! #     event(170_000, 7, Kind::IrqExit { irq: 24 }),
//! #     event(230_000, 7, Kind::Switch { from: control, reason: SwitchOut::Sleeping, to: idle }),
//! # ];
//! # let mut jobs = Vec::new();
//! # let mut decomposer = Decomposer::new(Config::default());
//! # trace.iter().for_each(|event| decomposer.feed(event, &mut |job| jobs.push(job.clone())));
//! let mut names = Names::new();
//! names.thread(7, "control");
//! names.irq(24, "eth0");
//! let sentences = explain::job(&jobs[0], &names);
//! assert_eq!(sentences[0], "R: control/7 took 130 µs from its wake-up by idle on CPU 0 to its end.");
//! assert_eq!(sentences[1], "J: 30 µs of 130 µs R: released and not yet running, while idle took 30 µs of the CPU.");
//! assert_eq!(sentences[5], "I: 20 µs of 130 µs R: displaced by irq 24 eth0 for 20 µs.");
//! ```

mod calls;
mod chain;
mod wait;

use std::fmt;

use punctual_report::format::{format_count, format_counted, format_part};
use punctual_report::text::listed;
use punctual_trace::event::Section;
use punctual_trace::jobs::{
    Actor, Bounds, Cause, DisabledSection, Flaw, Job, JobKind, ReleasedBy, Reservation, Term,
};
use punctual_trace::names::Names;
use punctual_trace::stats::TaskStats;

pub use calls::{Call, Called, calls, system_calls};
pub use chain::crossing;
pub use wait::blocking;

/// Maximum number of causes that a sentence names.
const NAMED: usize = 3;

/// Formats a bounded value for people.
#[must_use]
pub fn value(value: Bounds) -> String {
    match value {
        Bounds::Exact(ns) => format_part(ns),
        Bounds::Between { lo: 0, hi } => format!("at most {}", format_part(hi)),
        Bounds::Between { lo, hi } => format!("{} to {}", format_part(lo), format_part(hi)),
        Bounds::AtLeast(lo) => format!("at least {}", format_part(lo)),
        Bounds::Unknown => "an unknown time".into(),
    }
}

/// Formats bounds with the likely value between them.
fn likely(bounds: Bounds, likely: Option<u64>) -> String {
    match likely {
        Some(ns) => format!("{} (likely {})", value(bounds), format_part(ns)),
        None => value(bounds),
    }
}

/// A sentence about a job.
pub(crate) struct Sentence {
    /// Subject; `None` for flaws and deadlines.
    pub(crate) term: Option<Term>,
    /// Text, without the letter of the term.
    pub(crate) text: String,
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(term) = self.term {
            write!(f, "{}: ", term.letter())?;
        }
        f.write_str(&self.text)
    }
}

/// Returns one sentence for each [term](Term::ALL), in this order. If the job has a flaw, the first
/// sentence describes it.
#[must_use]
pub fn job(job: &Job, names: &Names) -> Vec<String> {
    sentences(job, names).iter().map(ToString::to_string).collect()
}

/// Like [`job`], with the term of each sentence.
pub(crate) fn sentences(job: &Job, names: &Names) -> Vec<Sentence> {
    let names = &names.at(job.end);
    let flaw = job.flaw.map(|flaw| match flaw {
        Flaw::Cut => "It had not ended; the following covers it up to then.".into(),
        _ => format!("Not to be trusted: {}.", flawed(flaw)),
    });
    let deadline = deadline(job).map(|text| format!("D: {text}."));
    let general = [flaw, deadline].into_iter().flatten().map(|text| Sentence { term: None, text });
    let terms = Term::ALL.map(|term| Sentence { term: Some(term), text: sentence(term, job, names) });
    general.chain(terms).collect()
}

/// Returns the sentence about a term.
fn sentence(term: Term, job: &Job, names: &Names) -> String {
    // If only W is known, it is at least as precise.
    let of_response = match job.jitter {
        Bounds::Unknown if job.flaw != Some(Flaw::Cut) => format!("of {} W", value(job.window)),
        _ => format!("of {} R", value(job.response)),
    };
    if term == Term::Response {
        return format!("{}.", response(job, names));
    }
    let predicate = term.definition().predicate;
    let detail = match term {
        Term::Window if !job.started => return format!("none {of_response}: it has not run."),
        Term::Jitter => jitter(job, predicate, names),
        Term::Overhead => overhead(job, predicate),
        Term::Window => window(job),
        Term::Blocking => wait::all(job, names),
        Term::Interference => match job.interference {
            Bounds::Exact(0) => "not displaced".into(),
            Bounds::Unknown => "nothing is known to have displaced it".into(),
            _ => format!("{predicate} by {}", causes(&job.interference_causes, names)),
        },
        Term::Execution => execution(job, predicate),
        _ => predicate.into(),
    };
    format!("{} {of_response}: {detail}.", likely(term.of(job), term.likely(job)))
}

fn overhead(job: &Job, predicate: &str) -> String {
    let (entering, leaving) = (value(job.overhead_entry), value(job.overhead_exit));
    let displaced = match job.preemptions {
        0 => String::new(),
        times => format!(", displaced by threads {}", repeated(times)),
    };
    format!("{predicate}, {entering} entering and {leaving} leaving{displaced}")
}

fn window(job: &Job) -> String {
    let ending = match job.window {
        _ if job.flaw == Some(Flaw::Cut) => "",
        Bounds::AtLeast(_) if may_be_rest(job) => ", unless it is part of a job that slept for a lock",
        Bounds::AtLeast(_) => ", unless it slept for a lock then and went on",
        _ => "",
    };
    let end = if job.flaw == Some(Flaw::Cut) { "now" } else { "its end" };
    let moved = match job.migrations {
        0 => String::new(),
        times => format!(", moved {}", repeated(times)),
    };
    format!("from its first run on CPU {} to {end} on CPU {}{moved}{ending}", job.first_cpu, job.last_cpu)
}

fn execution(job: &Job, predicate: &str) -> String {
    let suspended = match job.suspended {
        0 => String::new(),
        ns => format!(", {} of it in voluntary sleep", format_part(ns)),
    };
    let nmi = match job.nmi {
        0 => String::new(),
        ns => format!(", {} of it and of I in non-maskable interrupts", format_part(ns)),
    };
    format!("{predicate}{suspended}{nmi}")
}

/// Returns one sentence for each assumption about the jobs of a task, with the way to avoid it.
#[must_use]
pub fn assumptions(stats: &TaskStats) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some((overhead, execution, count)) = stats.likely() {
        sentences.push(format!(
            "Likely, not certain: SS at most {} and C at most {} in {}, if the scheduler took as \
             long as where it was observed.",
            format_part(overhead),
            format_part(execution),
            format_counted(count, "job")
        ));
    }
    let mut add = |count: u64, what: &str| {
        if count > 0 {
            let (jobs, s) = (format_count(count), if count == 1 { "" } else { "s" });
            sentences.push(
                what.replace("{n}", &jobs)
                    .replace("{s}", s)
                    .replace("{are}", if count == 1 { "is" } else { "are" }),
            );
        }
    };
    add(
        stats.jobs_with_bounded_switches(),
        "{n} job{s} began or went on by a switch from idle that the kernel did not record: it lies between the last event \
         of the idle thread and the first of the job, which bound J, W, SS and C.",
    );
    add(
        stats.ended_on_likely_conditions(),
        "{n} job{s} ended in a wait on a futex that is taken for a condition or a semaphore; if it is a lock, use --futex \
         block.",
    );
    add(
        stats.waits_for_likely_locks(),
        "{n} wait{s} on a futex whose word is that of a contended mutex {are} taken for blocking; if it is none, use --futex \
         suspend.",
    );
    add(
        stats.waits_for_doubtful_locks(),
        "{n} wait{s} on a futex that looks like a condition or a semaphore {are} taken for blocking; if the task waits for \
         work there, use --futex auto.",
    );
    sentences
}

/// Returns the sentence about the largest elementary term of the job.
#[must_use]
pub fn longest(job: &Job, names: &Names) -> String {
    let elementary = Term::ALL.into_iter().filter(|term| term.summands().is_empty());
    let longest = elementary.max_by_key(|term| term.of(job).lo());
    let mut sentences = sentences(job, names).into_iter();
    sentences.find(|sentence| sentence.term == longest).map_or(String::new(), |found| found.to_string())
}

/// Describes the outcome of a SCHED_DEADLINE thread's reservation.
fn deadline(job: &Job) -> Option<String> {
    let throttled = match (job.throttles, job.reservation) {
        (0, _) => None,
        (times, reserved) => {
            let why = match reserved {
                Some(Reservation { runtime, period, .. }) => {
                    format!("its runtime of {} in {}", format_part(runtime), format_part(period))
                }
                None => "its runtime".into(),
            };
            let throttled = format!("throttled {} for {}", repeated(times), format_part(job.throttled));
            Some(format!("{throttled} in all, as it had used up {why}"))
        }
    };
    let Some(Reservation { deadline, .. }) = job.reservation else { return throttled };
    let by = format!("deadline of {}", format_part(deadline));
    let met = match job.missed() {
        _ if job.response.lo().is_none() => format!("whether it met its {by} is not known"),
        Some(true) => {
            let late = job.response.lo().unwrap_or(deadline) - deadline;
            let least = if matches!(job.response, Bounds::Exact(_)) { "" } else { "at least " };
            format!("missed its {by} by {least}{}", format_part(late))
        }
        Some(false) => format!("met its {by}"),
        None => format!("whether it met its {by} is not certain"),
    };
    Some([Some(met), throttled].into_iter().flatten().collect::<Vec<_>>().join("; "))
}

fn response(job: &Job, names: &Names) -> String {
    let who = match job.task {
        Some(task) => format!("{} on {}", names.of(Actor::Task(task)), names.of(job.actor)),
        None => names.of(job.actor),
    };
    let took = match job.response {
        Bounds::Unknown => format!("{who} took {}", value(Bounds::AtLeast(job.window.lo().unwrap_or(0)))),
        response => format!("{who} took {}", value(response)),
    };
    let woken = |job: &Job| match job.waker {
        Some(waker) => format!("its wake-up by {} on CPU {}", names.of(waker.actor), waker.cpu),
        None => "its wake-up".into(),
    };
    let from = match job.released_by {
        ReleasedBy::Timer => "when its timer was due".into(),
        ReleasedBy::Mark => "its release by the app".into(),
        ReleasedBy::Wake => woken(job),
        ReleasedBy::New => "its creation".into(),
        ReleasedBy::Budget => "the beginning of its period".into(),
        ReleasedBy::Unseen if matches!(job.kind, JobKind::Thread | JobKind::IrqThread) => {
            "a release not seen".into()
        }
        ReleasedBy::Unseen => "an interrupt or request not seen".into(),
    };
    let to = if job.flaw == Some(Flaw::Cut) { "until now" } else { "to its end" };
    format!("{took} from {from} {to}")
}

/// Returns true if the apparent release may have ended a wait for a lock.
fn may_be_rest(job: &Job) -> bool {
    job.jitter == Bounds::Unknown && job.released.is_some()
}

fn jitter(job: &Job, predicate: &str, names: &Names) -> String {
    match job.jitter {
        Bounds::Unknown if may_be_rest(job) => {
            return "it may be the rest of a job that slept for a lock".into();
        }
        Bounds::Unknown => return "nothing in the trace shows the release".into(),
        Bounds::Exact(0) => return "it ran at once".into(),
        _ => {}
    }
    let mut parts = Vec::new();
    if matches!(job.released_by, ReleasedBy::Timer | ReleasedBy::Mark | ReleasedBy::Budget)
        && let Some(late) = job.lateness().filter(|&late| late > 0)
    {
        let is_exact = job.released.is_some_and(|(earliest, latest)| earliest == latest);
        let most = if is_exact { "" } else { "at most " };
        parts.push(format!("woken {most}{} late", format_part(late)));
    }
    if job.jitter_causes.is_empty() {
        parts.push(predicate.into());
    } else {
        let causes = causes(&job.jitter_causes, names).replace(" for ", " took ");
        parts.push(format!("{predicate}, while {causes} of the CPU"));
    }
    let mut text = parts.join(", then ");
    if let Some(DisabledSection { section, caller, ns }) = job.disabled {
        let what = match section {
            Section::Interrupts => "interrupts were",
            Section::Preemption => "preemption was",
        };
        text += &format!(
            "; {what} off for {} of it, by the kernel's code at _stext{caller:+#x}",
            format_part(ns)
        );
    }
    text
}

fn flawed(flaw: Flaw) -> &'static str {
    match flaw {
        Flaw::Lost => "events were lost",
        Flaw::Contradiction => "events contradict each other or are missing",
        Flaw::Cut => "it had not ended",
    }
}

fn repeated(times: u32) -> String {
    match times {
        1 => "once".into(),
        2 => "twice".into(),
        times => format!("{times} times"),
    }
}

/// Lists the largest causes, each with its time.
pub(crate) fn causes(causes: &[Cause], names: &Names) -> String {
    let mut causes = causes.to_vec();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
    let rest: u64 = causes.iter().skip(NAMED).map(|cause| cause.ns).sum();
    let mut parts: Vec<String> = causes
        .iter()
        .take(NAMED)
        .map(|cause| format!("{} for {}", names.of(cause.actor), format_part(cause.ns)))
        .collect();
    if rest > 0 {
        let others = causes.len() - NAMED;
        parts.push(format!("{others} other{} for {}", if others == 1 { "" } else { "s" }, format_part(rest)));
    }
    if parts.is_empty() { "somebody unseen".into() } else { listed(&parts) }
}
