//! `punctual rta --trace trace.dat` alone: infers a model of every real-time thread, and bounds it.

use punctual_analysis::analyze;
use punctual_analysis::bound::{Analysis, Bound, Interferer};
use punctual_analysis::infer::pwcet::{Pwcet, fit};
use punctual_analysis::infer::system::{Handler, Inferred, InferredThread, system};
use punctual_analysis::infer::thread::{Observation, Reading};
use punctual_analysis::margin::{AllExecutions, Margins, margins};
use punctual_analysis::time::Ratio;
use punctual_report::format::{format_clock, format_part};
use punctual_trace::jobs::Actor;
use punctual_trace::names::Names;

use super::super::args::{Jobs, Rta};
use super::super::{limited, page};
use super::observe::{On, Whose};
use super::read::{Recording, read};
use super::{json, text};
use crate::output::{self, message};
use crate::parse::Deadline;
use crate::status::{BAD_INPUT, FINDING};

/// The inferred model of a recording, and its analysis.
pub(crate) struct Result {
    pub(super) head: String,
    pub(super) length: u64,
    pub(crate) threads: Vec<InferredThread>,
    /// Owners of their jobs, by thread.
    pub(crate) owners: Vec<Whose>,
    /// Number of their jobs that are left out because events around them are missing, by thread.
    pub(crate) flawed: Vec<u64>,
    pub(super) handlers: Vec<Handler>,
    pub(super) waits: Vec<Wait>,
    /// Fits of extreme values, by thread, if requested.
    pub(super) fits: Vec<Fit>,
    pub(crate) inferred: Inferred,
    pub(crate) analysis: Analysis,
    pub(super) margins: Margins,
}

/// A fit of a thread, or the reason why there is none.
pub(super) type Fit = std::result::Result<Pwcet, String>;

/// A wait of a thread.
pub(super) struct Wait {
    pub(super) thread: String,
    pub(super) on: String,
    pub(super) holder: Option<String>,
    pub(super) times: u64,
    pub(super) longest: u64,
    pub(super) total: u64,
}

/// Returns the exit code, or an error in the input.
pub(in super::super) fn run(arguments: &Rta, path: &std::path::Path) -> std::result::Result<u8, String> {
    let recording = read(path, arguments.pwcet.is_some(), arguments.futex)?;
    let result = infer(&Assumptions::of(arguments), recording, &path.display().to_string())?;
    if result.threads.is_empty() {
        return Err(format!(
            "{} has no job of a real-time thread; record one that is running, or for longer",
            path.display()
        ));
    }
    let mut is_written = arguments.json.write(|| text::report(&result), || json(&result));
    is_written &= output::write("--html", arguments.html.as_deref(), || {
        page::page(&result.inferred.system, &result.analysis, &result.margins)
    });
    match verdict(arguments, &result) {
        0 if !is_written => Ok(FINDING),
        code => Ok(code),
    }
}

/// Interpretation of a recording.
pub(crate) struct Assumptions<'a> {
    pub(crate) jobs: Jobs,
    pub(crate) deadlines: &'a [Deadline],
    pub(crate) pwcet: Option<f64>,
    pub(crate) scale: Ratio,
}

impl<'a> Assumptions<'a> {
    fn of(arguments: &'a Rta) -> Self {
        let &Rta { jobs, ref deadlines, pwcet, scale, .. } = arguments;
        Self { jobs, deadlines, pwcet, scale }
    }
}

/// Infers the model of a recording, and analyzes it.
pub(crate) fn infer(
    arguments: &Assumptions,
    recording: Recording,
    name: &str,
) -> std::result::Result<Result, String> {
    let Recording { observer, names, length, head, .. } = recording;
    let mut found = observer.threads(&names);
    for (whose, thread) in &mut found {
        thread.reading = match arguments.jobs {
            Jobs::Auto => thread.reading,
            Jobs::Sleeps => Reading::Sleeps,
            Jobs::Timers => Reading::Timers,
        };
        let names = observer.names_of(*whose, &names);
        let deadline = Deadline::find(arguments.deadlines, |task| is_called(*whose, thread, task, &names));
        thread.deadline = deadline;
    }
    let is_used = |task: &&str| {
        let names = |whose| observer.names_of(whose, &names);
        found.iter().any(|(whose, thread)| is_called(*whose, thread, task, &names(*whose)))
    };
    let mut tasks = arguments.deadlines.iter().filter_map(|deadline| deadline.task.as_deref());
    if let Some(stray) = tasks.find(|task| !is_used(task)) {
        return Err(format!("--deadline {stray}: the recording has no job of such a thread"));
    }
    let mut waits: Vec<Wait> = observer
        .waits
        .iter()
        .map(|(key, waits)| Wait {
            thread: found
                .iter()
                .find(|(whose, _)| *whose == key.whose)
                .map_or(String::new(), |(_, it)| it.name.clone()),
            on: match key.on {
                On::Futex(word) => format!("futex {word:#x}"),
                On::Lock(address) => format!("kernel lock {address:#x}"),
                On::Kernel => "the kernel (uninterruptible sleep)".into(),
            },
            holder: key.holder.map(|tid| names.at(waits.last).of(Actor::Thread(tid))),
            times: waits.times,
            longest: waits.longest,
            total: waits.total,
        })
        .collect();
    waits.sort_by(|a, b| {
        (&a.thread, b.longest, &a.on, &a.holder).cmp(&(&b.thread, a.longest, &b.on, &b.holder))
    });
    let mut fits = Vec::new();
    for (whose, thread) in &mut found {
        let Some(probability) = arguments.pwcet else { break };
        // Only jobs between sleeps are stored individually.
        let found = match thread.reading {
            Reading::Sleeps => {
                let jobs = observer.threads[whose].jobs.iter();
                fit(&jobs.filter_map(|run| run.execution).collect::<Vec<u64>>(), probability)
            }
            Reading::Timers => {
                Err("its jobs sleep in the middle; --jobs sleeps fits what lies between sleeps".into())
            }
        };
        thread.execution = found.as_ref().ok().filter(|fit| fit.refusal().is_none()).map(|fit| fit.execution);
        fits.push(found);
    }
    let (owners, threads): (Vec<Whose>, Vec<InferredThread>) = found.into_iter().unzip();
    let flawed = owners.iter().map(|owner| observer.threads[owner].flawed).collect();
    let mut handlers = observer.handlers(&names);
    handlers.extend(observer.throttling(&names));
    let mut inferred = system(name, &threads, &handlers, length);
    if observer.throttling(&names).next().is_some() {
        inferred.system.assumptions.push(
            "`throttling` displaced real-time threads for ordinary ones, as often as in the recording: RT throttling, or since \
             Linux 6.12 the fair server."
                .to_owned(),
        );
    }
    inferred.system.assumptions.extend(observer.assumption());
    inferred.system.scale(arguments.scale);
    let has_deadline = inferred.system.tasks.iter().any(|task| task.deadline.is_some());
    let (analysis, margins) = limited(|| {
        let margins = if has_deadline {
            margins(&inferred.system)
        } else {
            Margins { all: AllExecutions { permille: 0, first: None }, tasks: Vec::new() }
        };
        (analyze(&inferred.system), margins)
    })?;
    Ok(Result { head, length, threads, owners, flawed, handlers, waits, fits, inferred, analysis, margins })
}

/// Returns whether `text` names the thread: by name, by number, or by both as in tables.
fn is_called(whose: Whose, thread: &InferredThread, text: &str, names: &Names) -> bool {
    let by_part = match whose {
        Whose::Thread(tid, _) => text.parse() == Ok(tid) || names.all_of_thread(tid).any(|name| name == text),
        Whose::Task(_) => false,
    };
    by_part || thread.name == text
}

/// Returns the exit code: bad input if nothing has a bound.
fn verdict(arguments: &Rta, result: &Result) -> u8 {
    let Result { inferred, analysis, threads, .. } = result;
    if analysis.tasks.iter().all(std::result::Result::is_err) {
        return BAD_INPUT;
    }
    let has_all = inferred.unbounded.iter().all(|(at, _)| threads[*at].deadline.is_none());
    if !has_all || !analysis.is_schedulable(&inferred.system) || !contradictions(result).is_empty() {
        return FINDING;
    }
    match arguments.fail_under {
        Some(least) if result.margins.all.percent() < least => {
            message!(
                "error: --fail-under: every C may grow by {:.1} %, less than {least} %",
                result.margins.all.percent()
            );
            FINDING
        }
        _ => 0,
    }
}

/// Lists the jobs that took longer than their bound, and the terms that they exceed.
pub(crate) fn contradictions(result: &Result) -> Vec<String> {
    let tasks = result.inferred.threads.iter().zip(&result.analysis.tasks);
    let found = tasks.filter_map(|(&at, outcome)| {
        let (thread, bound) = (&result.threads[at], outcome.as_ref().ok()?);
        contradiction(&thread.name, &thread.seen().slowest?, bound, |peer| {
            peer >= result.inferred.threads.len()
        })
    });
    found.collect()
}

/// Returns the terms of a job that exceed its bound, if it took longer. `is_own` returns whether a
/// peer is part of its own jobs.
pub(super) fn contradiction(
    name: &str,
    job: &Observation,
    bound: &Bound,
    is_own: impl Fn(usize) -> bool,
) -> Option<String> {
    let response = job.response()?;
    let excess = response.checked_sub(bound.response).filter(|&excess| excess > 0)?;
    let is_part =
        |who: Interferer| matches!(who, Interferer::Peer(at) | Interferer::Higher(at) if is_own(at));
    let sum = |own: bool| -> u64 {
        let terms = bound.interference.iter().filter(|term| is_part(term.who) == own);
        terms.map(|term| term.work.time()).sum()
    };
    let displaced = sum(false);
    let own = bound.own.time() - bound.suspension + sum(true);
    let waiting = bound.suspension + bound.blocking.map_or(0, |blocking| blocking.time);
    let terms = [
        ("J", job.lateness, bound.jitter),
        ("C", job.execution, own),
        ("B and waiting", job.waiting.saturating_add(job.suspended), waiting),
        ("I", job.displaced, displaced + bound.not_supplied),
    ];
    let exceeded: Vec<String> = terms
        .iter()
        .filter(|(_, seen, allowed)| seen > allowed)
        .map(|(term, seen, allowed)| {
            format!("{term} was {} and is bounded by {}", format_part(*seen), format_part(*allowed))
        })
        .collect();
    Some(format!(
        "The model is not that of the run: job {} of `{name}`, which ended at {} by the trace's clock, took {}, {} more than its \
         bound: {}.",
        job.number,
        format_clock(job.end),
        format_part(response),
        format_part(excess),
        if exceeded.is_empty() { "no single term exceeds its bound".to_owned() } else { exceeded.join("; ") }
    ))
}
